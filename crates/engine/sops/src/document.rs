//! A file as a whole.

use fl_types::Secret;
use sha2::{Digest as _, Sha512};

use crate::report::{Tried, report};
use crate::tree::Item;
use crate::{Error, Format, MasterKey, Metadata, cipher, read, shamir, write};

/// Hashed first when only encrypted values count for the MAC, so that the two kinds of MAC differ.
const MAC_ONLY_ENCRYPTED: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// Holds keys.
pub trait KeyService {
    /// The data key behind a master key; none when this service has nothing to do with such keys.
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, String>>;
}

/// Whether the MAC over all values is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mac {
    /// It is. For files that nobody changed.
    Check,
    /// It is not: kustomize has changed the object since. Each value is authenticated by itself.
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
    /// Reads a file.
    ///
    /// # Errors
    /// When it is not of the format, or not encrypted.
    pub fn parse(bytes: &[u8], format: Format) -> Result<Self, Error> {
        let bad = |problem: String| Error::Load { format: format.as_str(), problem };
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

    /// Who could open it: one key of the only group, or one of each of as many groups as the threshold says.
    pub fn master_keys(&self) -> impl Iterator<Item = &MasterKey> {
        self.metadata.groups.iter().flatten()
    }

    /// The data key. Of each group the first key counts that a service can open; several groups hold shares of it.
    ///
    /// # Errors
    /// Why nobody has it.
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

    /// Opens all values and writes the plain file.
    ///
    /// # Errors
    /// A value that cannot be opened, a wrong MAC, or a format that cannot hold the content.
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
                // One that does not open was written before comments were encrypted; none counts for the MAC.
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
            let wrong = |problem: String| Error::Value { path: path.join("."), problem };
            let Item::Text(text) = &*item else {
                return Err(wrong("an encrypted value was expected".to_owned()));
            };
            *item = cipher::open(text, key, &format!("{}:", path.join(":"))).map_err(wrong)?;
        }
        if encrypted || !self.metadata.mac_only_encrypted {
            hash.update(item.mac_bytes());
        }
        Ok(())
    }
}

/// What the first key of a group opens that can be opened, and what came of those that were asked; local keys are asked first, as
/// they need no network.
fn from_group(group: &[MasterKey], services: &[&dyn KeyService]) -> (Option<Secret<Vec<u8>>>, Vec<Tried>) {
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
                Some(Err(why)) => problem = why,
                None => {}
            }
        }
        tried.push((key.name(), Some(problem)));
    }
    (None, tried)
}
