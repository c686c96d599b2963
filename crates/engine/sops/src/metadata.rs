//! The `sops` metadata of a file: its keys, and which values are encrypted.

use std::collections::BTreeMap;

use regex::Regex;

use crate::error::LoadError;
use crate::tree::Item;

/// A master key, which encrypts the data key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterKey {
    /// An age recipient; the data key is an armored age file.
    Age {
        /// `age1…`
        recipient: String,
        /// The armored file.
        encrypted: String,
    },
    /// An OpenPGP key.
    Pgp {
        /// Fingerprint.
        fingerprint: String,
        /// The armored message.
        encrypted: String,
    },
    /// A transit key of Vault or OpenBao.
    Vault {
        /// `https://host:port`
        address: String,
        /// Path of the transit engine.
        engine_path: String,
        /// Name of the key.
        key_name: String,
        /// `vault:v1:…`
        encrypted: String,
    },
    /// A key of AWS KMS.
    AwsKms {
        /// `arn:aws:kms:region:account:key/id`
        arn: String,
        /// A role to assume first.
        role: String,
        /// Encryption context.
        context: BTreeMap<String, String>,
        /// The encrypted data key in base64.
        encrypted: String,
    },
    /// A key of Google's KMS.
    GcpKms {
        /// `projects/…/locations/…/keyRings/…/cryptoKeys/…`
        resource_id: String,
        /// The encrypted data key in base64.
        encrypted: String,
    },
    /// A key of an Azure Key Vault.
    AzureKeyVault {
        /// `https://name.vault.azure.net`
        vault_url: String,
        /// Name of the key.
        name: String,
        /// Version of the key.
        version: String,
        /// The encrypted data key in URL-safe base64.
        encrypted: String,
    },
    /// A key of Huawei's KMS, which is not supported.
    HuaweiKms {
        /// `region:id`
        key_id: String,
    },
}

impl MasterKey {
    /// The name in messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            MasterKey::Age { recipient, .. } => recipient.clone(),
            MasterKey::Pgp { fingerprint, .. } => fingerprint.clone(),
            MasterKey::Vault { address, engine_path, key_name, .. } => {
                format!("{address}/v1/{engine_path}/keys/{key_name}")
            }
            MasterKey::AwsKms { arn, .. } => arn.clone(),
            MasterKey::GcpKms { resource_id, .. } => resource_id.clone(),
            MasterKey::AzureKeyVault { vault_url, name, version, .. } => {
                format!("{vault_url}/keys/{name}/{version}")
            }
            MasterKey::HuaweiKms { key_id } => key_id.clone(),
        }
    }
}

/// The metadata of a file.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// Groups of keys. One key decrypts the share of its group; with only one group, that is the data key.
    pub groups: Vec<Vec<MasterKey>>,
    /// Number of groups needed.
    pub(crate) threshold: usize,
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

/// Whether a text is a time such as `2024-01-01T00:00:00Z`, as SOPS parses it.
fn is_time(text: &str) -> bool {
    let form = "0000-00-00T00:00:00";
    let digit = |shown: char, found: char| if shown == '0' { found.is_ascii_digit() } else { found == shown };
    let Some((date, zone)) = text.split_at_checked(form.len()) else { return false };
    let fits = form.chars().zip(date.chars()).all(|(shown, found)| digit(shown, found));
    let fraction = zone.strip_prefix('.').map(|z| z.trim_start_matches(|c: char| c.is_ascii_digit()));
    let zone = fraction.unwrap_or(zone);
    let offset = |z: &str| z.len() == 6 && "+00:00".chars().zip(z.chars()).skip(1).all(|(s, f)| digit(s, f));
    fits && (zone == "Z" || (zone.starts_with(['+', '-']) && offset(zone)))
}

impl Metadata {
    pub(crate) fn read(sops: &Item) -> Result<Self, LoadError> {
        let text = |key: &str| sops.get(key).and_then(Item::text).unwrap_or_default().to_owned();
        for rule in ["unencrypted_comment_regex", "encrypted_comment_regex"] {
            if !text(rule).is_empty() {
                return Err(LoadError::UnsupportedRule(rule));
            }
        }
        let regex = |key: &'static str| match text(key).as_str() {
            "" => Ok(None),
            pattern => fl_go::regexp::compile(pattern).map(Some).map_err(|_| LoadError::Regex(key)),
        };
        const RULES: [&str; 4] =
            ["unencrypted_suffix", "encrypted_suffix", "unencrypted_regex", "encrypted_regex"];
        let rules = RULES.iter().filter(|rule| !text(rule).is_empty()).count();
        if rules > 1 {
            return Err(LoadError::SeveralRules);
        }
        // Keys of the file itself take precedence over groups.
        let mut groups = vec![collect_keys(sops)];
        if groups[0].is_empty() {
            groups = sops
                .get("key_groups")
                .and_then(Item::items)
                .unwrap_or_default()
                .iter()
                .map(collect_keys)
                .collect();
        }
        if groups.is_empty() {
            return Err(LoadError::NoKeys);
        }
        let modified = text("lastmodified");
        if !is_time(&modified) {
            return Err(LoadError::LastModified(modified));
        }
        let threshold = match sops.get("shamir_threshold") {
            Some(Item::Int(number)) => usize::try_from(*number).ok(),
            Some(Item::Text(number)) => number.parse().ok(),
            _ => Some(0),
        };
        Ok(Metadata {
            groups,
            threshold: threshold.ok_or(LoadError::Threshold)?,
            mac: text("mac"),
            last_modified: modified,
            mac_only_encrypted: matches!(sops.get("mac_only_encrypted"), Some(Item::Bool(true)))
                || text("mac_only_encrypted") == "true",
            rules: Rules {
                unencrypted_suffix: if rules == 0 {
                    "_unencrypted".to_owned()
                } else {
                    text("unencrypted_suffix")
                },
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

/// The keys of a group, in the order in which they are used.
fn collect_keys(from: &Item) -> Vec<MasterKey> {
    let list = |name: &str| from.get(name).and_then(Item::items).unwrap_or_default();
    let text = |entry: &Item, key: &str| entry.get(key).and_then(Item::text).unwrap_or_default().to_owned();
    let mut keys = Vec::new();
    for entry in list("kms") {
        let context = match entry.get("context") {
            Some(Item::Map(pairs)) => {
                pairs.iter().filter_map(|(k, v)| Some((k.clone(), v.text()?.to_owned()))).collect()
            }
            _ => BTreeMap::new(),
        };
        keys.push(MasterKey::AwsKms {
            arn: text(entry, "arn"),
            role: text(entry, "role"),
            context,
            encrypted: text(entry, "enc"),
        });
    }
    for entry in list("gcp_kms") {
        keys.push(MasterKey::GcpKms {
            resource_id: text(entry, "resource_id"),
            encrypted: text(entry, "enc"),
        });
    }
    for entry in list("hckms") {
        keys.push(MasterKey::HuaweiKms { key_id: text(entry, "key_id") });
    }
    for entry in list("azure_kv") {
        keys.push(MasterKey::AzureKeyVault {
            vault_url: text(entry, "vault_url"),
            name: text(entry, "name"),
            version: text(entry, "version"),
            encrypted: text(entry, "enc"),
        });
    }
    for entry in list("hc_vault") {
        keys.push(MasterKey::Vault {
            address: text(entry, "vault_address"),
            engine_path: text(entry, "engine_path"),
            key_name: text(entry, "key_name"),
            encrypted: text(entry, "enc"),
        });
    }
    for entry in list("pgp") {
        keys.push(MasterKey::Pgp { fingerprint: text(entry, "fp"), encrypted: text(entry, "enc") });
    }
    for entry in list("age") {
        keys.push(MasterKey::Age { recipient: text(entry, "recipient"), encrypted: text(entry, "enc") });
    }
    keys
}
