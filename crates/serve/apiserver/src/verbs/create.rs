//! The `create` verb.

use std::sync::Arc;

use super::identity::check_namespace;
use super::pipeline::Tracking;
use super::{decode, metadata, options, persist};
use crate::object;
use crate::response::{ApiResponse, to_bytes};
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use rand::RngExt as _;

pub(crate) async fn run(inner: &Arc<Inner>, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    let options = options::read(ctx, "CreateOptions", false)?;
    let mut object = decode::body(inner, ctx, rt, options.validation)?;
    check_namespace(&mut object, target)?;
    metadata::merge_owners(ctx, &mut object);
    let shared = rt.strategy.shares_labels(&object);
    rt.strategy.default(&mut object);
    rt.strategy.normalize(&mut object);
    // The server sets these fields; values from the client are ignored.
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object::remove_meta(&mut object, field);
    }
    let generated = object::name(&object).is_empty() && !object::meta_str(&object, "generateName").is_empty();
    let tries = if generated { 8 } else { 1 };
    let prefix = object::meta_str(&object, "generateName").to_owned();
    let mut last = ApiError::internal("no name was tried");
    for _ in 0..tries {
        let mut attempt = object.clone();
        if generated {
            object::set_meta(&mut attempt, "name", generate_name(&prefix));
        }
        match persist::create(inner, ctx, target, (attempt, shared), &options, Tracking::Update).await {
            Err(mut error) if !prefix.is_empty() && error.reason == "AlreadyExists" => {
                error.message += ", the server was not able to generate a unique name for the object";
                if let Some(details) = &mut error.details {
                    details["retryAfterSeconds"] = serde_json::json!(1);
                }
                last = error;
            }
            Err(error) => return Err(error),
            Ok(stored) => {
                return Ok(ApiResponse::Object { code: 201, rt: rt.clone(), bytes: to_bytes(&stored) });
            }
        }
    }
    Err(last)
}

/// Appends five random characters to a prefix; none of them are vowels, so that they do not form words.
pub(crate) fn generate_name(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let stem: String = prefix.chars().take(58).collect();
    let mut random = rand::rng();
    let tail: String = (0..5).map(|_| LETTERS[random.random_range(0..LETTERS.len())] as char).collect();
    format!("{stem}{tail}")
}
