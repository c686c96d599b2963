//! The `sops` part of a file: who may open it, and which values are encrypted.

use regex::Regex;

use crate::tree::Item;

/// A key that can open the data key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterKey {
    /// An age recipient; the data key as an armored age file.
    Age {
        /// `age1…`
        recipient: String,
        /// The armored file.
        encrypted: String,
    },
    /// An OpenPGP key.
    Pgp {
        /// Its fingerprint.
        fingerprint: String,
        /// The armored message.
        encrypted: String,
    },
    /// A transit key of Vault or OpenBao.
    Vault {
        /// `https://host:port`
        address: String,
        /// The path of the engine.
        engine_path: String,
        /// The key.
        key_name: String,
        /// `vault:v1:…`
        encrypted: String,
    },
    /// A key service of a cloud.
    Cloud {
        /// `kms`, `gcp_kms` or `azure_kv`.
        service: &'static str,
        /// What names the key there.
        id: String,
        /// The data key.
        encrypted: String,
    },
}

impl MasterKey {
    /// What names it, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            MasterKey::Age { recipient, .. } => recipient.clone(),
            MasterKey::Pgp { fingerprint, .. } => fingerprint.clone(),
            MasterKey::Vault { address, engine_path, key_name, .. } => {
                format!("{address}/v1/{engine_path}/keys/{key_name}")
            }
            MasterKey::Cloud { id, .. } => id.clone(),
        }
    }
}

/// The part as a whole.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// All keys; when there are groups, one of each up to the threshold is needed, which is not supported.
    pub keys: Vec<MasterKey>,
    pub(crate) groups: usize,
    pub(crate) mac: String,
    pub(crate) last_modified: String,
    pub(crate) mac_only_encrypted: bool,
    rules: Rules,
}

#[derive(Clone, Debug, Default)]
struct Rules {
    unencrypted_suffix: String,
    encrypted_suffix: String,
    unencrypted_regex: Option<Regex>,
    encrypted_regex: Option<Regex>,
}

impl Metadata {
    pub(crate) fn read(sops: &Item) -> Result<Self, String> {
        let text = |key: &str| sops.get(key).and_then(Item::text).unwrap_or_default().to_owned();
        for rule in ["unencrypted_comment_regex", "encrypted_comment_regex"] {
            if !text(rule).is_empty() {
                return Err(format!("{rule} is not supported"));
            }
        }
        let regex = |key: &str| match text(key).as_str() {
            "" => Ok(None),
            pattern => Regex::new(pattern).map(Some).map_err(|_| format!("{key} is no regular expression")),
        };
        let mut keys = Vec::new();
        collect_keys(sops, &mut keys);
        let groups = sops.get("key_groups").and_then(Item::items).unwrap_or_default();
        for group in groups {
            collect_keys(group, &mut keys);
        }
        Ok(Metadata {
            keys,
            groups: groups.len(),
            mac: text("mac"),
            last_modified: text("lastmodified"),
            mac_only_encrypted: matches!(sops.get("mac_only_encrypted"), Some(Item::Bool(true)))
                || text("mac_only_encrypted") == "true",
            rules: Rules {
                unencrypted_suffix: text("unencrypted_suffix"),
                encrypted_suffix: text("encrypted_suffix"),
                unencrypted_regex: regex("unencrypted_regex")?,
                encrypted_regex: regex("encrypted_regex")?,
            },
        })
    }

    /// Whether the value at a path is encrypted.
    pub(crate) fn is_encrypted(&self, path: &[String]) -> bool {
        let rules = &self.rules;
        let mut encrypted = true;
        if !rules.unencrypted_suffix.is_empty() && path.iter().any(|p| p.ends_with(&rules.unencrypted_suffix))
        {
            encrypted = false;
        }
        if !rules.encrypted_suffix.is_empty() {
            encrypted = path.iter().any(|p| p.ends_with(&rules.encrypted_suffix));
        }
        if let Some(regex) = &rules.unencrypted_regex
            && path.iter().any(|p| regex.is_match(p))
        {
            encrypted = false;
        }
        if let Some(regex) = &rules.encrypted_regex {
            encrypted = path.iter().any(|p| regex.is_match(p));
        }
        encrypted
    }
}

fn collect_keys(from: &Item, keys: &mut Vec<MasterKey>) {
    let list = |name: &str| from.get(name).and_then(Item::items).unwrap_or_default();
    let text = |entry: &Item, key: &str| entry.get(key).and_then(Item::text).unwrap_or_default().to_owned();
    for entry in list("age") {
        keys.push(MasterKey::Age { recipient: text(entry, "recipient"), encrypted: text(entry, "enc") });
    }
    for entry in list("pgp") {
        keys.push(MasterKey::Pgp { fingerprint: text(entry, "fp"), encrypted: text(entry, "enc") });
    }
    for name in ["hc_vault", "vault"] {
        for entry in list(name) {
            keys.push(MasterKey::Vault {
                address: text(entry, "vault_address"),
                engine_path: text(entry, "engine_path"),
                key_name: text(entry, "key_name"),
                encrypted: text(entry, "enc"),
            });
        }
    }
    for (service, id) in [("kms", "arn"), ("gcp_kms", "resource_id"), ("azure_kv", "vault_url")] {
        for entry in list(service) {
            keys.push(MasterKey::Cloud { service, id: text(entry, id), encrypted: text(entry, "enc") });
        }
    }
}
