//! CertificateSigningRequests.

use base64::Engine as _;
use serde_json::Value;

use crate::field::{Errors, Path, list, text};
use crate::validate::common_rules::messages;

/// The key usages of a certificate.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Conditions that decide about a request: they have status True and cannot be removed.
const APPROVAL_CONDITIONS: [&str; 3] = ["Approved", "Denied", "Failed"];

pub(crate) fn signing_request(errors: &mut Errors, object: &Value) {
    let (spec, path) = (&object["spec"], Path::new("spec"));
    if !has_block(spec, "request", "CERTIFICATE REQUEST") {
        let given = spec.get("request").cloned().unwrap_or_default();
        errors.invalid(&path.child("request"), given, "PEM block type must be CERTIFICATE REQUEST");
    }
    let usages = list(spec, "usages");
    if usages.is_empty() {
        errors.required(&path.child("usages"), "");
    }
    for (at, usage) in usages.iter().enumerate() {
        let path = path.child("usages").index(at);
        if !usage.as_str().is_some_and(|usage| USAGES.contains(&usage)) {
            errors.not_supported(&path, usage.clone(), USAGES);
        }
        if usages[..at].contains(usage) {
            errors.duplicate(&path, usage.clone());
        }
    }
    let signer = text(spec, "signerName");
    if signer == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        errors.invalid(&path.child("signerName"), signer, why);
    } else {
        signer_name(errors, &path.child("signerName"), signer);
    }
    if let Some(seconds) = spec["expirationSeconds"].as_i64().filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&path.child("expirationSeconds"), seconds, why);
    }
    conditions(errors, object);
}

/// The name of a signer: a domain and a path, `example.com/signer`.
fn signer_name(errors: &mut Errors, path: &Path, name: &str) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let [domain, rest] = name.split('/').collect::<Vec<_>>()[..] else {
        errors.invalid(
            path,
            name,
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        );
        return;
    };
    let labels: Vec<&str> = domain.split('.').collect();
    if labels.len() < 2 {
        errors.invalid(path, domain, "should be a domain with at least two segments separated by dots");
    }
    for label in labels {
        for why in messages(fl_types::check_dns1123_label(label)) {
            errors.invalid(path, domain, format!("validating label {label:?}: {why}"));
        }
    }
    for segment in rest.split('.') {
        for why in crate::name_validation::dns1123_subdomain(segment, false) {
            errors.invalid(path, rest, format!("validating label {segment:?}: {why}"));
        }
    }
    const MAX_SIGNER_NAME_LEN: usize = 253 + 1 + 63 + 1 + 253;
    if name.len() > MAX_SIGNER_NAME_LEN {
        errors.too_long(path, MAX_SIGNER_NAME_LEN);
    }
}

fn has_block(parent: &Value, field: &str, kind: &str) -> bool {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text(parent, field)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains(&format!("-----BEGIN {kind}-----"))
}

fn conditions(errors: &mut Errors, object: &Value) {
    let path = Path::new("status.conditions");
    let all = list(&object["status"], "conditions");
    for (at, condition) in all.iter().enumerate() {
        let here = path.index(at);
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        if kind.is_empty() {
            errors.required(&here.child("type"), "");
        }
        let allowed: &[&str] =
            if APPROVAL_CONDITIONS.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            errors.required(&here.child("status"), "");
        } else if !allowed.contains(&status) {
            errors.not_supported(&here.child("status"), status, allowed);
        }
        let earlier = |wanted: &str| all[..at].iter().any(|c| text(c, "type") == wanted);
        if earlier(kind) {
            errors.duplicate(&here.child("type"), kind);
        }
        if kind == "Approved" && earlier("Denied") || kind == "Denied" && earlier("Approved") {
            errors.invalid(&path, kind, "Approved and Denied conditions are mutually exclusive");
        }
    }
}

/// Rules of every update of a request.
pub(crate) fn signing_request_approval(errors: &mut Errors, new: &Value, old: &Value) {
    let path = Path::new("status.conditions");
    for kind in APPROVAL_CONDITIONS {
        if conditions_of_type(new, kind).len() < conditions_of_type(old, kind).len() {
            errors.forbidden(&path, format!("updates may not remove a condition of type {kind:?}"));
        }
    }
}

/// Only updates through `approval` may change the approval conditions.
pub(crate) fn signing_request_status(errors: &mut Errors, new: &Value, old: &Value) {
    let certificate = &new["status"]["certificate"];
    if !certificate.is_null() && !has_block(&new["status"], "certificate", "CERTIFICATE") {
        let why = "must contain at least one CERTIFICATE PEM block";
        errors.invalid(&Path::new("status.certificate"), "<certificate data>", why);
    }
    conditions(errors, new);
    signing_request_approval(errors, new, old);
    let path = Path::new("status.conditions");
    for kind in ["Approved", "Denied"] {
        let (now, before) = (conditions_of_type(new, kind), conditions_of_type(old, kind));
        if now.len() > before.len() {
            errors.forbidden(&path, format!("updates may not add a condition of type {kind:?}"));
        } else if now.len() == before.len() && now != before {
            errors.forbidden(&path, format!("updates may not modify a condition of type {kind:?}"));
        }
    }
    let before = &old["status"]["certificate"];
    if !before.is_null() && before != certificate {
        let why = "updates may not modify existing certificate content";
        errors.forbidden(&Path::new("status.certificate"), why);
    }
}

fn conditions_of_type<'a>(object: &'a Value, kind: &str) -> Vec<&'a Value> {
    list(&object["status"], "conditions").iter().filter(|c| text(c, "type") == kind).collect()
}
