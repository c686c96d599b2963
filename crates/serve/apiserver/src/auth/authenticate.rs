//! Authentication by bearer token.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::User;
use super::token::Signer;
use crate::object;
use crate::store::Store;

/// The issuer and default audience of tokens.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// Authenticates requests.
#[derive(Debug)]
pub(crate) struct Authenticator {
    store: Store,
    tokens: HashMap<String, User>,
    pub(crate) signer: Signer,
}

impl Authenticator {
    pub(crate) fn new(store: &Store, tokens: HashMap<String, User>, signer: Signer) -> Self {
        Self { store: store.clone(), tokens, signer }
    }

    /// The user of a bearer token; `None` if the token is not valid.
    pub(crate) fn token(&self, token: &str, audiences: &[String], now: i64) -> Option<User> {
        if token.is_empty() {
            return None;
        }
        if let Some(user) = self.tokens.get(token) {
            return Some(user.clone());
        }
        let claims = self.signer.verify(token)?;
        let text = |pointer: &str| claims.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| claims.get(name).and_then(Value::as_i64);
        if number("exp")? <= now || number("nbf").is_some_and(|nbf| nbf > now + 5) || text("/iss") != ISSUER {
            return None;
        }
        let carried = claims.get("aud").and_then(Value::as_array)?;
        let own = [ISSUER.to_owned()];
        let wanted = if audiences.is_empty() { &own[..] } else { audiences };
        if !carried.iter().filter_map(Value::as_str).any(|a| wanted.iter().any(|w| w == a)) {
            return None;
        }
        let namespace = text("/kubernetes.io/namespace");
        let name = text("/kubernetes.io/serviceaccount/name");
        let uid = text("/kubernetes.io/serviceaccount/uid");
        let account = self.store.get("/serviceaccounts", &object::key(namespace, name))?.value();
        if object::uid(&account) != uid || object::is_deleting(&account) {
            return None;
        }
        for (field, table) in [("pod", "/pods"), ("secret", "/secrets")] {
            let bound = text(&format!("/kubernetes.io/{field}/name"));
            if !bound.is_empty() {
                let object = self.store.get(table, &object::key(namespace, bound))?.value();
                if object::uid(&object) != text(&format!("/kubernetes.io/{field}/uid")) {
                    return None;
                }
            }
        }
        let mut extra = BTreeMap::new();
        if let Some(jti) = claims.get("jti").and_then(Value::as_str) {
            extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("JTI={jti}")]);
        }
        Some(User { extra, ..service_account(namespace, name, uid) })
    }
}

/// The user of a service account.
pub(crate) fn service_account(namespace: &str, name: &str, uid: &str) -> User {
    User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
        uid: uid.to_owned(),
        extra: BTreeMap::new(),
    }
}

/// The claims of a new token for a service account.
pub(crate) fn claims(
    account: &Value,
    audiences: &[String],
    bound: Option<Value>,
    now: i64,
    seconds: i64,
) -> Value {
    let (namespace, name) = (object::namespace(account), object::name(account));
    let mut private = json!({
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": object::uid(account)}
    });
    if let (Some(map), Some(Value::Object(bound))) = (private.as_object_mut(), bound) {
        map.extend(bound);
    }
    json!({
        "aud": audiences, "exp": now + seconds, "iat": now, "nbf": now, "iss": ISSUER,
        "jti": uuid::Uuid::new_v4().to_string(),
        "kubernetes.io": private,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    })
}
