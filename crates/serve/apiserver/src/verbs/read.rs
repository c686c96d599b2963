//! The `get` and `list` verbs.

use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::crd::convert;
use crate::object;
use crate::resource_type::ResourceType;
use crate::response::{ApiResponse, to_bytes};
use crate::selector::{FieldSelector, LabelSelector};
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use crate::store::{Entry, Item, StoreError};

/// The served bytes of a stored object; one of a converted type must come from [`convert::entry`].
pub(crate) fn served(rt: &ResourceType, entry: &Entry) -> Bytes {
    if rt.strategy.stored_as_served() {
        return entry.bytes.clone();
    }
    to_bytes(&rt.strategy.read_from_storage(entry.value()))
}

/// The served object.
pub(crate) fn served_value(rt: &ResourceType, entry: &Entry) -> Value {
    if rt.strategy.stored_as_served() { entry.value() } else { rt.strategy.read_from_storage(entry.value()) }
}

/// [`served_value`] of the state that the next write will find.
pub(crate) fn current_value(inner: &Inner, rt: &ResourceType, entry: &Entry) -> Arc<Value> {
    if rt.strategy.stored_as_served() { inner.store.value(entry) } else { Arc::new(served_value(rt, entry)) }
}

/// Selection of objects of a collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    pub(crate) fn read(ctx: &RequestContext, target: &Target) -> ApiResult<Self> {
        let labels = LabelSelector::parse(ctx.query.get("labelSelector"))?;
        let mut fields = FieldSelector::parse(ctx.query.get("fieldSelector"))?;
        let rt = &target.rt;
        let known = rt.strategy.selectable_labels();
        for (label, _, _) in &fields.terms {
            let standard = label == "metadata.name"
                || (label == "metadata.namespace" && (rt.namespaced || !rt.is_custom()));
            if !standard && !known.contains(label) {
                return Err(ApiError::bad_request(unknown_field(rt, label)));
            }
        }
        if !target.name.is_empty() {
            fields.terms.push(("metadata.name".to_owned(), target.name.clone(), true));
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, rt: &ResourceType, object: &Value) -> bool {
        if !self.labels.matches(object.pointer("/metadata/labels")) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let extra = rt.strategy.selectable_fields(object);
        self.fields.terms.iter().all(|(label, wanted, equal)| {
            let value = match label.as_str() {
                "metadata.name" => object::name(object),
                "metadata.namespace" => object::namespace(object),
                other => extra.iter().find(|(l, _)| l == other).map_or("", |(_, v)| v.as_str()),
            };
            (value == wanted) == *equal
        })
    }
}

fn unknown_field(rt: &ResourceType, label: &str) -> String {
    if rt.is_custom() {
        return format!("field label not supported: {label}");
    }
    if rt.strategy.selectable_labels().is_empty() {
        return format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
    }
    match (rt.group.as_str(), rt.kind.as_str()) {
        ("batch", "Job") => format!("field label {label:?} not supported for Job"),
        ("", "Namespace") => format!("field label not supported for {}: {label}", rt.kind),
        _ => format!("field label not supported: {label}"),
    }
}

pub(crate) async fn get(inner: &Inner, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let given = ctx.query.get("resourceVersion");
    let wanted = revision_of(given).map_err(|why| ApiError::new(500, "", why))?;
    let newest = inner.store.revision();
    if wanted > newest {
        return Err(ApiError::too_large_revision(wanted, newest).after_timeout());
    }
    let entry = inner
        .store
        .get(target.table(), &target.key())
        .ok_or_else(|| ApiError::not_found(&target.rt, &target.name))?;
    let entry = convert::entry(inner, &target.rt, entry).await?;
    Ok(ApiResponse::Object { code: 200, rt: target.rt.clone(), bytes: served(&target.rt, &entry) })
}

/// Parses a `resourceVersion`; empty is 0.
pub(crate) fn revision_of(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        FieldError::invalid("resourceVersion", &json!(text), why).to_string()
    })
}

/// The `continue` token of a paged list.
#[derive(Debug)]
struct Continue {
    revision: u64,
    start: String,
}

fn encode_continue(revision: u64, start: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{start}\u{0}")});
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string())
}

fn decode_continue(text: &str) -> ApiResult<Continue> {
    let bad = |why: String| {
        ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    // Go ignores trailing bits.
    let lenient = base64::engine::general_purpose::NO_PAD.with_decode_allow_trailing_bits(true);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::URL_SAFE, lenient);
    let bytes = engine.decode(text).map_err(|_| bad("illegal base64 data at input byte 0".to_owned()))?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|_| {
        let first = bytes.iter().copied().find(|b| !b.is_ascii_whitespace());
        match first {
            // Go names the offending byte the way it quotes characters.
            Some(b) if b < 0x20 || (0x7f..0xa1).contains(&b) || b == 0xad => {
                bad(format!("invalid character '\\u{b:04x}' looking for beginning of value"))
            }
            Some(b) => bad(format!("invalid character '{}' looking for beginning of value", b as char)),
            None => bad("unexpected end of JSON input".to_owned()),
        }
    })?;
    let version = token.get("v").and_then(Value::as_str).unwrap_or_default();
    if version != "meta.k8s.io/v1" {
        return Err(bad(format!("server does not recognize this encoded version {version}")));
    }
    let revision = token.get("rv").and_then(Value::as_u64).unwrap_or_default();
    let start =
        token.get("start").and_then(Value::as_str).unwrap_or_default().trim_end_matches('\u{0}').to_owned();
    if revision == 0 {
        return Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned()));
    }
    if start.is_empty() || start.split('/').any(|s| s == "..") {
        return Err(bad("encoded start key empty (version meta.k8s.io/v1)".to_owned()));
    }
    Ok(Continue { revision, start })
}

const EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The validated paging and revision parameters of a list.
#[derive(Debug)]
struct Page {
    limit: usize,
    from: Option<Continue>,
    revision: u64,
    exact: bool,
}

/// An integer parameter, zero if absent.
pub(super) fn integer(ctx: &RequestContext, key: &str) -> ApiResult<i64> {
    let text = ctx.query.get(key);
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        ApiError::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", fl_go::quote(text)))
    })
}

fn page(ctx: &RequestContext) -> ApiResult<Page> {
    let query = &ctx.query;
    let mut errors = Vec::new();
    let limit = usize::try_from(integer(ctx, "limit")?).unwrap_or(0);
    if query.has("sendInitialEvents") {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    let (version, matching, token) =
        (query.get("resourceVersion"), query.get("resourceVersionMatch"), query.get("continue"));
    if !matching.is_empty() {
        if version.is_empty() {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                &json!(matching),
                &["Exact", "NotOlderThan", ""],
            ));
        }
        if matching == "Exact" && version == "0" {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid_kind("meta.k8s.io", "ListOptions", "", &errors));
    }
    let from = if token.is_empty() { None } else { Some(decode_continue(token)?) };
    if from.is_some() && !version.is_empty() && version != "0" {
        return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
    }
    let revision = revision_of(version)
        .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
    integer(ctx, "timeoutSeconds")?;
    // Version 0 is answered from the cache upstream, which ignores `limit`.
    let limit = if version == "0" { 0 } else { limit };
    // A page of an older revision is an exact read, as upstream.
    let exact = matching == "Exact" || (matching.is_empty() && limit > 0 && revision > 0);
    Ok(Page { limit, from, revision, exact })
}

pub(crate) async fn list(inner: &Inner, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    let selection = Selection::read(ctx, target)?;
    let page = page(ctx)?;
    let newest = inner.store.revision();
    if page.revision > newest {
        return Err(ApiError::too_large_revision(page.revision, newest).after_timeout());
    }
    let prefix = if rt.namespaced && !target.namespace.is_empty() {
        format!("{}/", target.namespace)
    } else {
        String::new()
    };
    let at = match (&page.from, page.exact) {
        (Some(from), _) => Some(from.revision),
        (None, true) => Some(page.revision),
        (None, false) => None,
    };
    let (revision, all) = match at {
        Some(revision) if revision < newest => match inner.store.list_at(target.table(), &prefix, revision) {
            Ok(items) => (revision, items),
            Err(StoreError::Compacted { .. }) if page.from.is_some() => {
                return Err(expired_page(inner, &page));
            }
            Err(StoreError::Compacted { .. }) => {
                return Err(ApiError::expired("The resourceVersion for the provided list is too old."));
            }
            Err(StoreError::Future { wanted, newest }) => {
                return Err(ApiError::too_large_revision(wanted, newest));
            }
            Err(other) => return Err(other.into()),
        },
        _ => {
            let (revision, items, _) = inner.store.list(target.table(), &prefix, None, 0);
            (at.unwrap_or(revision), items)
        }
    };
    let start = page.from.as_ref().map_or(0, |from| all.partition_point(|(key, _)| **key <= *from.start));
    let mut rest = all;
    rest.drain(..start);
    if rt.conversion.is_some() {
        // Without a selector, only the page and one more object are converted.
        let needed = if selection.is_empty() && page.limit > 0 { page.limit } else { rest.len() };
        let wanted = rest.iter().take(needed).map(|(_, entry)| entry.clone()).collect();
        for (slot, entry) in rest.iter_mut().zip(convert::entries(inner, rt, wanted).await?) {
            slot.1 = entry;
        }
    }
    let (items, meta) = cut(rt, &rest, &selection, page.limit, revision);
    Ok(ApiResponse::List { rt: rt.clone(), meta, items, kind: None })
}

/// Takes the selected objects up to the limit, and sets `continue`.
fn cut(
    rt: &Arc<ResourceType>,
    all: &[Item],
    selection: &Selection,
    limit: usize,
    revision: u64,
) -> (Vec<Bytes>, Value) {
    let mut items = Vec::new();
    let mut meta = json!({"resourceVersion": revision.to_string()});
    let mut last: Option<&str> = None;
    for (i, (key, entry)) in all.iter().enumerate() {
        let chosen = selection.is_empty() || selection.matches(rt, &served_value(rt, entry));
        if !chosen {
            continue;
        }
        if limit > 0 && items.len() == limit {
            meta["continue"] = json!(encode_continue(revision, last.unwrap_or_default()));
            if selection.is_empty() {
                meta["remainingItemCount"] = json!(all.len() - i);
            }
            break;
        }
        items.push(served(rt, entry));
        last = Some(key);
    }
    // With a selector, upstream does not look past the page: there may be more whenever objects are left.
    (items, meta)
}

fn expired_page(inner: &Inner, page: &Page) -> ApiError {
    let mut error = ApiError::expired(EXPIRED);
    if let Some(from) = &page.from {
        let token = encode_continue(inner.store.revision(), &from.start);
        let mut status = error.to_status();
        status["metadata"] = json!({"continue": token});
        error.whole = Some(Box::new(status));
    }
    error
}
