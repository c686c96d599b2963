//! Conversion between the versions of a custom resource by the webhook of its definition.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::object;
use crate::resource_type::ResourceType;
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};
use crate::store::Entry;
use crate::webhook::Remote;

/// Timeout of one conversion request.
const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Limit of the cache of converted objects. Conversion is deterministic, so that the result for a revision
/// can be reused.
const MAX_CACHE_BYTES: usize = 4 << 20;

/// The conversion webhook of one definition, shared by its versions.
#[derive(Debug)]
pub(crate) struct Webhook {
    remote: Remote,
    /// The first version of ConversionReview that both sides know.
    review: Option<&'static str>,
    /// `group/version` of every version of the definition.
    versions: Vec<String>,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// By revision and target version.
    entries: HashMap<(u64, String), Arc<Entry>>,
    bytes: usize,
}

impl Webhook {
    /// The webhook of a definition whose conversion strategy is `Webhook`.
    pub(super) fn read(definition: &Value) -> Option<Self> {
        let conversion = definition.pointer("/spec/conversion")?;
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let reviews = conversion.pointer("/webhook/conversionReviewVersions").and_then(Value::as_array);
        let group = definition.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        Some(Self {
            remote: Remote::read(conversion.pointer("/webhook/clientConfig").unwrap_or(&Value::Null)),
            review: reviews.into_iter().flatten().find_map(|v| match v.as_str() {
                Some("v1") => Some("v1"),
                Some("v1beta1") => Some("v1beta1"),
                _ => None,
            }),
            versions: versions
                .into_iter()
                .flatten()
                .filter_map(|v| v["name"].as_str())
                .map(|v| format!("{group}/{v}"))
                .collect(),
            cache: Mutex::default(),
        })
    }

    /// Converts objects of this definition, each from its own `apiVersion`, in one request.
    async fn convert(&self, inner: &Inner, objects: &[Value], to: &str) -> Result<Vec<Value>, String> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        if let Some(odd) =
            objects.iter().map(object::api_version).find(|v| !self.versions.iter().any(|k| k == v))
        {
            return Err(format!("request to convert CR from an invalid group/version: {odd}"));
        }
        let Some(review) = self.review else {
            return Err("no supported conversion review versions".to_owned());
        };
        let subject = format!("{}, Kind={}", object::api_version(first), object::kind(first));
        let uid = uuid::Uuid::new_v4().to_string();
        let request = json!({
            "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{review}"),
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": objects},
            "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}}
        });
        let failed = |why: String| format!("conversion webhook for {subject} failed: {why}");
        let body = self.remote.post(inner, &request, CONVERSION_TIMEOUT).await.map_err(failed)?;
        let converted = read_response(&body, review, &uid).map_err(failed)?;
        if converted.len() != objects.len() {
            return Err(format!(
                "conversion webhook for {subject} returned {} objects, expected {}",
                converted.len(),
                objects.len()
            ));
        }
        let pairs = objects.iter().zip(converted).enumerate();
        pairs
            .map(|(i, (old, new))| {
                check_converted(old, new, to).map_err(|why| {
                    let at = if objects.len() > 1 { format!(" at index {i}") } else { String::new() };
                    match why {
                        InvalidConversion::Type(why) => format!(
                            "conversion webhook for {subject} returned invalid object at index {i}: {why}"
                        ),
                        InvalidConversion::Object(why) => {
                            format!("conversion webhook for {subject} returned invalid object{at}: {why}")
                        }
                        InvalidConversion::Metadata(why) => {
                            format!("conversion webhook for {subject} returned invalid metadata{at}: {why}")
                        }
                    }
                })
            })
            .collect()
    }

    fn cached(&self, revision: u64, version: &str) -> Option<Arc<Entry>> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.entries.get(&(revision, version.to_owned())).cloned()
    }

    fn insert(&self, version: &str, entry: &Arc<Entry>) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.bytes + entry.bytes.len() > MAX_CACHE_BYTES {
            *cache = Cache::default();
        }
        cache.bytes += entry.bytes.len();
        cache.entries.insert((entry.revision, version.to_owned()), entry.clone());
    }
}

/// The converted objects of a response to the request `uid`.
fn read_response(body: &Value, review: &str, uid: &str) -> Result<Vec<Value>, String> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let response = body.get("response").filter(|r| !r.is_null());
    if review == "v1" {
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        if version != "apiextensions.k8s.io/v1" || kind != "ConversionReview" {
            let got = object::split_api_version(version);
            return Err(format!(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {}/{}, Kind={kind}",
                got.0, got.1
            ));
        }
    }
    let Some(response) = response else { return Err("no response provided".to_owned()) };
    if review == "v1" && text("/response/uid") != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", text("/response/uid")));
    }
    let status = text("/response/result/status");
    if status != "Success" {
        return Err(match text("/response/result/message") {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    Ok(response.get("convertedObjects").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// Why a converted object is rejected.
enum InvalidConversion {
    Type(String),
    Object(String),
    Metadata(String),
}

/// Checks that a conversion kept the identity of an object: only labels and annotations of the metadata may
/// change.
fn check_converted(old: &Value, mut new: Value, to: &str) -> Result<Value, InvalidConversion> {
    if object::api_version(&new) != to {
        let got = object::api_version(&new);
        return Err(InvalidConversion::Type(format!("invalid groupVersion (expected {to}, received {got})")));
    }
    if object::kind(&new) != object::kind(old) {
        let (expected, got) = (object::kind(old), object::kind(&new));
        return Err(InvalidConversion::Type(format!("invalid kind (expected {expected}, received {got})")));
    }
    for (what, before, after) in [
        ("name", object::name(old), object::name(&new)),
        ("namespace", object::namespace(old), object::namespace(&new)),
        ("UID", object::uid(old), object::uid(&new)),
    ] {
        if before != after {
            return Err(InvalidConversion::Object(format!("must have the same {what}: {before} != {after}")));
        }
    }
    let mut metadata = old.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let Some(given) = new.get("metadata") else {
        return Err(InvalidConversion::Metadata("missing metadata in converted object".to_owned()));
    };
    let Some(given) = given.as_object() else {
        let what = fl_go::type_name(given);
        return Err(InvalidConversion::Metadata(format!(
            "invalid metadata of type {what} in converted object"
        )));
    };
    for field in ["labels", "annotations"] {
        match given.get(field) {
            None | Some(Value::Null) => {
                if let Some(map) = metadata.as_object_mut() {
                    map.remove(field);
                }
            }
            Some(Value::Object(map)) => {
                if let Some((key, value)) = map.iter().find(|(_, v)| !v.is_string()) {
                    let what = fl_go::type_name(value);
                    return Err(InvalidConversion::Metadata(format!(
                        "metadata.{field}[{key}] must be a string, but is {what} in converted object"
                    )));
                }
                metadata[field] = Value::Object(map.clone());
            }
            Some(other) => {
                let what = fl_go::type_name(other);
                return Err(InvalidConversion::Metadata(format!(
                    "invalid metadata.{field} of type {what} in converted object"
                )));
            }
        }
    }
    new["metadata"] = metadata;
    Ok(new)
}

fn internal_error(why: String) -> ApiError {
    ApiError::new(500, "", why)
}

/// Stored objects in the version of `rt`, with their revisions. The webhook converts all of them in one
/// request.
pub(crate) async fn entries(
    inner: &Inner,
    rt: &ResourceType,
    stored: Vec<Arc<Entry>>,
) -> ApiResult<Vec<Arc<Entry>>> {
    let Some(webhook) = &rt.conversion else { return Ok(stored) };
    let version = rt.api_version();
    let mut out = stored;
    let (mut at, mut objects) = (Vec::new(), Vec::new());
    for (i, entry) in out.iter_mut().enumerate() {
        if let Some(cached) = webhook.cached(entry.revision, &version) {
            *entry = cached;
            continue;
        }
        let value = entry.value();
        if object::api_version(&value) != version {
            at.push(i);
            objects.push(value);
        }
    }
    for (i, value) in
        at.into_iter().zip(webhook.convert(inner, &objects, &version).await.map_err(internal_error)?)
    {
        let entry = Arc::new(Entry { revision: out[i].revision, bytes: crate::response::to_bytes(&value) });
        webhook.insert(&version, &entry);
        out[i] = entry;
    }
    Ok(out)
}

/// One stored object in the version of `rt`.
pub(crate) async fn entry(inner: &Inner, rt: &ResourceType, stored: Arc<Entry>) -> ApiResult<Arc<Entry>> {
    if rt.conversion.is_none() {
        return Ok(stored);
    }
    let mut one = entries(inner, rt, vec![stored]).await?;
    one.pop().ok_or_else(|| ApiError::internal("a conversion lost its object"))
}

/// A served object in its stored form.
pub(crate) async fn to_storage(inner: &Inner, rt: &ResourceType, object: Value) -> ApiResult<Value> {
    let object = match &rt.conversion {
        Some(_) => to_version(inner, rt, object, &rt.storage.api_version).await?,
        None => object,
    };
    Ok(rt.strategy.to_storage(object))
}

/// An object in another version of its type, converted by the webhook if there is one.
pub(crate) async fn to_version(
    inner: &Inner,
    rt: &ResourceType,
    object: Value,
    to: &str,
) -> ApiResult<Value> {
    let Some(webhook) = rt.conversion.as_ref().filter(|_| object::api_version(&object) != to) else {
        return Ok(object);
    };
    let mut one = webhook.convert(inner, &[object], to).await.map_err(internal_error)?;
    one.pop().ok_or_else(|| ApiError::internal("a conversion lost its object"))
}
