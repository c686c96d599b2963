//! Encrypted files.

use fl_types::Secret;
use sha2::{Digest as _, Sha512};

use crate::key_errors::{KeyResult, report};
use crate::tree::Item;
use crate::{Error, Format, KeyError, MasterKey, Metadata, ValueError, cipher, read, shamir, write};

/// Hashed first if the MAC covers only encrypted values, so that the two kinds of MAC differ.
const MAC_ONLY_ENCRYPTED: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// Decrypts data keys.
pub trait KeyService {
    /// Decrypts the data key with a master key; `None` if this service does not handle such keys.
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, KeyError>>;
}

/// Whether the MAC over all values is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mac {
    /// Verify it, for unmodified files.
    Check,
    /// Ignore it, for objects that kustomize has modified. Each value is still authenticated by itself.
    Ignore,
}

/// An encrypted file.
#[derive(Clone, Debug)]
pub struct Document {
    format: Format,
    branches: Vec<Item>,
    metadata: Metadata,
}

impl Document {
    /// Parses a file.
    ///
    /// # Errors
    /// The file does not have the format or is not encrypted.
    pub fn parse(bytes: &[u8], format: Format) -> Result<Self, Error> {
        let bad = |problem| Error::Load { format: format.as_str(), problem };
        let mut branches = read::branches(bytes, format).map_err(bad)?;
        let mut found = None;
        for branch in &mut branches {
            let sops = read::metadata(branch, format);
            found = found.or(sops.filter(|s| s.get("mac").is_some()));
        }
        let sops = found.ok_or(Error::NoMetadata { format: format.as_str() })?;
        let metadata = Metadata::read(&sops).map_err(bad)?;
        Ok(Document { format, branches, metadata })
    }

    /// All master keys: one key of the only group, or one key each of as many groups as the threshold says,
    /// can decrypt the file.
    pub fn master_keys(&self) -> impl Iterator<Item = &MasterKey> {
        self.metadata.groups.iter().flatten()
    }

    /// Decrypts the data key. The first key of each group that a service can use counts; several groups hold
    /// shares of the data key.
    ///
    /// # Errors
    /// No key can decrypt it; the message lists the error of each key.
    pub fn data_key(&self, services: &[&dyn KeyService]) -> Result<Secret<Vec<u8>>, Error> {
        let (mut shares, mut tried) = (Vec::new(), Vec::new());
        for group in &self.metadata.groups {
            let (share, keys) = from_group(group, services);
            shares.extend(share);
            tried.push(keys);
        }
        let threshold = self.metadata.threshold;
        match (self.metadata.groups.len(), shares.len()) {
            (1, 1) => return Ok(shares.remove(0)),
            (2.., found) if found >= threshold.max(2) => {
                let combined = shamir::combine(&shares).map_err(|e| Error::DataKey(e.to_owned()))?;
                return Ok(combined);
            }
            _ => {}
        }
        let needed = if self.metadata.groups.len() > 1 { threshold.max(2) } else { 0 };
        Err(Error::DataKey(report(&tried, needed)))
    }

    /// Decrypts all values and writes the plain file.
    ///
    /// # Errors
    /// A value cannot be decrypted, the MAC is wrong, or the format cannot represent the content.
    pub fn decrypt(mut self, key: &Secret<Vec<u8>>, output: Format, mac: Mac) -> Result<Vec<u8>, Error> {
        let mut hash = Sha512::new();
        if self.metadata.mac_only_encrypted {
            hash.update(MAC_ONLY_ENCRYPTED);
        }
        let mut branches = std::mem::take(&mut self.branches);
        for branch in &mut branches {
            self.walk(branch, &mut Vec::new(), key.expose(), &mut hash)?;
        }
        if mac == Mac::Check {
            let wanted = cipher::open(&self.metadata.mac, key.expose(), &self.metadata.last_modified)
                .map_err(|_| Error::Mac)?;
            let found: String = hash.finalize().iter().map(|b| format!("{b:02X}")).collect();
            if wanted.text() != Some(found.as_str()) {
                return Err(Error::Mac);
            }
        }
        write::emit(&branches, self.format, output)
    }

    fn walk(
        &self,
        item: &mut Item,
        path: &mut Vec<String>,
        key: &[u8],
        hash: &mut Sha512,
    ) -> Result<(), Error> {
        match item {
            Item::Null => return Ok(()),
            Item::Map(entries) => {
                for (name, value) in entries {
                    if matches!(value, Item::Comment(_)) {
                        self.walk(value, path, key, hash)?;
                        continue;
                    }
                    path.push(name.clone());
                    self.walk(value, path, key, hash)?;
                    path.pop();
                }
                return Ok(());
            }
            Item::List(items) => {
                return items.iter_mut().try_for_each(|value| self.walk(value, path, key, hash));
            }
            Item::Comment(text) => {
                // A comment that cannot be decrypted was written before comments were encrypted; comments are
                // not part of the MAC.
                if self.metadata.is_encrypted(path)
                    && let Ok(Item::Text(plain)) = cipher::open(text, key, &format!("{}:", path.join(":")))
                {
                    *text = plain;
                }
                return Ok(());
            }
            _ => {}
        }
        let encrypted = self.metadata.is_encrypted(path);
        if encrypted {
            let wrong = |problem| Error::Value { path: path.join("."), problem };
            let Item::Text(text) = &*item else {
                return Err(wrong(ValueError::NotEncrypted));
            };
            *item = cipher::open(text, key, &format!("{}:", path.join(":"))).map_err(wrong)?;
        }
        if encrypted || !self.metadata.mac_only_encrypted {
            hash.update(item.mac_bytes());
        }
        Ok(())
    }
}

/// Decrypts the data key with the first usable key of a group; also returns the errors of the keys used before.
/// Local keys come first, since they need no network.
fn from_group(
    group: &[MasterKey],
    services: &[&dyn KeyService],
) -> (Option<Secret<Vec<u8>>>, Vec<KeyResult>) {
    let mut keys: Vec<&MasterKey> = group.iter().collect();
    keys.sort_by_key(|key| match key {
        MasterKey::Age { .. } => 0,
        MasterKey::Pgp { .. } => 1,
        _ => 2,
    });
    let mut tried = Vec::new();
    for key in keys {
        let mut problem = "no key service can open it".to_owned();
        for service in services {
            match service.data_key(key) {
                Some(Ok(data_key)) => {
                    tried.push((key.name(), None));
                    return (Some(data_key), tried);
                }
                Some(Err(error)) => problem = error.to_string(),
                None => {}
            }
        }
        tried.push((key.name(), Some(problem)));
    }
    (None, tried)
}
