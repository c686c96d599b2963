//! A file as a whole.

use fl_types::Secret;
use fl_yaml::{Dialect, Node};
use sha2::{Digest as _, Sha512};

use crate::tree::Item;
use crate::{Error, Format, MasterKey, Metadata, cipher};

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
        let mut branches = match format {
            Format::Yaml => yaml(bytes).map_err(bad)?,
            Format::Json | Format::Binary => {
                let node = std::str::from_utf8(bytes).map_err(|_| bad("it is not text".to_owned()))?;
                let node = fl_yaml::from_json(node).map_err(|e| bad(format!("line {}: not JSON", e.line)))?;
                vec![item(&node, Dialect::V3)]
            }
            Format::Dotenv => vec![dotenv(bytes).map_err(bad)?],
            Format::Ini => vec![ini(bytes).map_err(bad)?],
        };
        let mut found = None;
        for branch in &mut branches {
            let sops = match format {
                Format::Dotenv => Some(unflatten(branch, "sops_")),
                Format::Ini => branch.remove("sops").map(|mut flat| unflatten(&mut flat, "")),
                _ => branch.remove("sops"),
            };
            found = found.or(sops.filter(|s| s.get("mac").is_some()));
        }
        let sops = found.ok_or(Error::NoMetadata { format: format.as_str() })?;
        let metadata = Metadata::read(&sops).map_err(bad)?;
        Ok(Document { format, branches, metadata })
    }

    /// Who could open it.
    #[must_use]
    pub fn master_keys(&self) -> &[MasterKey] {
        &self.metadata.keys
    }

    /// The data key, from the first service that has it.
    ///
    /// # Errors
    /// Why none has it.
    pub fn data_key(&self, services: &[&dyn KeyService]) -> Result<Secret<Vec<u8>>, Error> {
        if self.metadata.groups > 1 {
            return Err(Error::DataKey("files with several key groups are not supported".to_owned()));
        }
        let mut problems = Vec::new();
        for key in &self.metadata.keys {
            for service in services {
                match service.data_key(key) {
                    Some(Ok(data_key)) => return Ok(data_key),
                    Some(Err(problem)) => problems.push(format!("{}: {problem}", key.name())),
                    None => {}
                }
            }
        }
        if problems.is_empty() {
            problems.push("no key service can open it".to_owned());
        }
        Err(Error::DataKey(problems.join("; ")))
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
        emit(&branches, self.format, output)
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
                    path.push(name.clone());
                    self.walk(value, path, key, hash)?;
                    path.pop();
                }
                return Ok(());
            }
            Item::List(items) => {
                return items.iter_mut().try_for_each(|value| self.walk(value, path, key, hash));
            }
            _ => {}
        }
        let encrypted = self.metadata.is_encrypted(path);
        if encrypted {
            let wrong = |problem| Error::Value { path: path.join("."), problem };
            let Item::Text(text) = &*item else {
                return Err(wrong("an encrypted value was expected"));
            };
            *item = cipher::open(text, key, &format!("{}:", path.join(":"))).map_err(wrong)?;
        }
        if encrypted || !self.metadata.mac_only_encrypted {
            hash.update(item.mac_bytes());
        }
        Ok(())
    }
}

fn yaml(bytes: &[u8]) -> Result<Vec<Item>, String> {
    let nodes = fl_yaml::parse_all(bytes, &fl_yaml::Options::v3())
        .map_err(|e| format!("line {}: not YAML", e.line))?;
    Ok(nodes.iter().map(|n| item(n, Dialect::V3)).collect())
}

fn item(node: &Node, dialect: Dialect) -> Item {
    use fl_yaml::{Scalar, Value};
    match &node.value {
        Value::Seq(items) => Item::List(items.iter().map(|n| item(n, dialect)).collect()),
        Value::Map(map) => Item::Map(
            map.iter()
                .map(|e| (e.key.as_text().unwrap_or_default().to_owned(), item(&e.value, dialect)))
                .collect(),
        ),
        _ => match node.scalar(dialect) {
            Some(Scalar::Null) => Item::Null,
            Some(Scalar::Bool(value)) => Item::Bool(value),
            Some(Scalar::Int(number)) => Item::Int(number),
            Some(Scalar::Float(number)) => Item::Float(number),
            _ => Item::Text(node.as_text().unwrap_or_default().to_owned()),
        },
    }
}

fn dotenv(bytes: &[u8]) -> Result<Item, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let mut entries = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) =
            line.split_once('=').ok_or_else(|| format!("invalid dotenv input line {}", number + 1))?;
        entries.push((key.to_owned(), Item::Text(value.replace("\\n", "\n"))));
    }
    Ok(Item::Map(entries))
}

fn ini(bytes: &[u8]) -> Result<Item, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let mut sections: Vec<(String, Vec<(String, Item)>)> = vec![("DEFAULT".to_owned(), Vec::new())];
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            sections.push((name.to_owned(), Vec::new()));
            continue;
        }
        let (key, value) = line.split_once('=').ok_or_else(|| format!("line {}: not a pair", number + 1))?;
        let value = value.trim().trim_matches('`').trim_matches('"');
        if let Some((_, entries)) = sections.last_mut() {
            entries.push((key.trim().to_owned(), Item::Text(value.to_owned())));
        }
    }
    Ok(Item::Map(sections.into_iter().map(|(name, entries)| (name, Item::Map(entries))).collect()))
}

/// `age__list_0__map_enc` back into lists and maps. What does not begin with the prefix stays.
fn unflatten(from: &mut Item, prefix: &str) -> Item {
    let Item::Map(entries) = from else { return Item::Null };
    let (flat, rest): (Vec<_>, Vec<_>) =
        std::mem::take(entries).into_iter().partition(|(k, _)| k.starts_with(prefix));
    *entries = rest;
    let mut root = Item::Map(Vec::new());
    for (key, value) in flat {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = &key[prefix.len()..];
        loop {
            let next = [rest.find("__list_"), rest.find("__map_")].into_iter().flatten().min();
            let Some(at) = next else {
                parts.push(rest.to_owned());
                break;
            };
            parts.push(rest[..at].to_owned());
            let list = rest[at..].starts_with("__list_");
            parts.push(if list { "[]" } else { "{}" }.to_owned());
            rest = &rest[at + if list { "__list_".len() } else { "__map_".len() }..];
        }
        let text = match value {
            Item::Text(text) => Item::Text(text.replace("\\n", "\n")),
            other => other,
        };
        place(&mut root, &parts, text);
    }
    root
}

fn place(at: &mut Item, parts: &[String], value: Item) {
    let [name, rest @ ..] = parts else { return };
    let slot = match at {
        Item::List(items) => {
            let index = name.parse::<usize>().unwrap_or_default().min(1024);
            while items.len() <= index {
                items.push(Item::Null);
            }
            &mut items[index]
        }
        other => {
            if !matches!(other, Item::Map(_)) {
                *other = Item::Map(Vec::new());
            }
            let Item::Map(entries) = other else { return };
            let index = entries.iter().position(|(k, _)| k == name).unwrap_or_else(|| {
                entries.push((name.clone(), Item::Null));
                entries.len() - 1
            });
            &mut entries[index].1
        }
    };
    match rest {
        [] => *slot = value,
        [how, rest @ ..] => {
            if matches!(slot, Item::Null) {
                *slot = if how == "[]" { Item::List(Vec::new()) } else { Item::Map(Vec::new()) };
            }
            place(slot, rest, value);
        }
    }
}

fn emit(branches: &[Item], input: Format, output: Format) -> Result<Vec<u8>, Error> {
    let refuse = |problem| Error::Emit { input: input.as_str(), output: output.as_str(), problem };
    let first = branches.first().ok_or_else(|| refuse("there is nothing in it"))?;
    match output {
        Format::Binary => match first.get("data") {
            Some(Item::Text(text)) => Ok(text.clone().into_bytes()),
            Some(Item::Bytes(bytes)) => Ok(bytes.clone()),
            _ => Err(refuse("no binary data found in tree")),
        },
        Format::Json => {
            let mut text = serde_json::to_string_pretty(&first.to_json()).map_err(|_| refuse("not JSON"))?;
            // SOPS indents with tabs.
            text = text.lines().map(tabs).collect::<Vec<_>>().join("\n");
            text.push('\n');
            Ok(text.into_bytes())
        }
        Format::Yaml => {
            let mut out = String::new();
            for (i, branch) in branches.iter().enumerate() {
                if i > 0 {
                    out.push_str("---\n");
                }
                let json = branch.to_json().to_string();
                let node = fl_yaml::from_json(&json).map_err(|_| refuse("not YAML"))?;
                fl_yaml::write_sigs_yaml(&mut out, &node, Dialect::V3).map_err(|_| refuse("not YAML"))?;
            }
            Ok(out.into_bytes())
        }
        Format::Dotenv => {
            let Item::Map(entries) = first else { return Err(refuse("it is no map")) };
            let mut out = String::new();
            for (key, value) in entries {
                let value =
                    value.plain_text().ok_or_else(|| refuse("a value is no text"))?.replace('\n', "\\n");
                out.push_str(&format!("{key}={value}\n"));
            }
            Ok(out.into_bytes())
        }
        Format::Ini => {
            let Item::Map(sections) = first else { return Err(refuse("it is no map")) };
            let mut out = String::new();
            for (name, section) in sections {
                let Item::Map(entries) = section else { return Err(refuse("a section is no map")) };
                if name == "DEFAULT" && entries.is_empty() {
                    continue;
                }
                if name != "DEFAULT" {
                    out.push_str(&format!("[{name}]\n"));
                }
                for (key, value) in entries {
                    let value = value.plain_text().ok_or_else(|| refuse("a value is no text"))?;
                    out.push_str(&format!("{key} = {value}\n"));
                }
                out.push('\n');
            }
            Ok(out.into_bytes())
        }
    }
}

fn tabs(line: &str) -> String {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", "\t".repeat(spaces / 2), &line[spaces..])
}
