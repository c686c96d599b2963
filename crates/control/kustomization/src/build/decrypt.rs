//! SOPS in sources and objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_runtime::{KnownSecrets, Reconciled as _};
use fl_sops::service::{
    AwsCredentials, AzureCredentials, Destinations, Endpoints, GcpCredentials, KeyServices,
    ServiceCredentials, Token,
};
use fl_sops::{AgeIdentities, Document, Format, Mac, PgpKeys};
use fl_types::Secret;
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::{Map, Value};

use super::tree::{View, clean};
use super::{Request, generate, key_services};

/// Larger files are not decrypted.
const LARGEST: usize = 5 << 20;
const DISABLE: &str = "kustomize.toolkit.fluxcd.io/decrypt";

/// The keys of one Kustomization.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyMaterial {
    age: AgeIdentities,
    pgp: PgpKeys,
    services: ServiceCredentials,
}

impl KeyMaterial {
    /// From the data of a Secret (`place` is what messages call it); keys of other kinds are ignored.
    ///
    /// # Errors
    /// A key that cannot be read, named but not shown.
    pub(crate) fn import(data: &BTreeMap<String, Secret<Vec<u8>>>, place: &str) -> Result<Self, String> {
        let mut keys = KeyMaterial::default();
        for (name, value) in data {
            let bytes = value.expose();
            let add = keys.add(name, bytes);
            add.map_err(|e| {
                let what = if name.ends_with(".agekey") {
                    "failed to parse and add to age identities: "
                } else {
                    ""
                };
                format!("failed to import '{name}' data from {place}: {what}{e}")
            })?;
        }
        Ok(keys)
    }

    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), fl_sops::Error> {
        let text = || String::from_utf8_lossy(bytes).into_owned();
        let services = &mut self.services;
        match name {
            "sops.vault-token" => {
                let token = Secret::new(text().trim().to_owned());
                services.vault_token = Some(Token::new(token, Destinations::Any));
            }
            "sops.aws-kms" => services.aws = Some(AwsCredentials::from_yaml(bytes)?),
            "sops.gcp-kms" => services.gcp = Some(GcpCredentials::from_json(bytes)?),
            "sops.azure-kv" => services.azure = Some(AzureCredentials::from_yaml(bytes)?),
            _ if name.ends_with(".agekey") => self.age.import(&text())?,
            _ if name.ends_with(".asc") => self.pgp.import(bytes)?,
            _ => {}
        }
        Ok(())
    }

    /// Only the age keys of a Secret, for the engine's own.
    pub(crate) fn import_age(data: &BTreeMap<String, Secret<Vec<u8>>>, place: &str) -> Result<Self, String> {
        let only = data.iter().filter(|(k, _)| k.ends_with(".agekey")).map(|(k, v)| (k.clone(), v.clone()));
        Self::import(&only.collect(), place)
    }
}

/// Opens data keys with what a Kustomization has.
pub(crate) struct Decryptor<'a> {
    keys: &'a KeyMaterial,
    credentials: ServiceCredentials,
    endpoints: &'a Endpoints,
    secrets: KnownSecrets,
    /// On whose behalf key services are asked.
    owner: fl_http::Owner,
}

impl<'a> Decryptor<'a> {
    pub(crate) fn new(keys: &'a KeyMaterial, request: &Request<'a>) -> Self {
        let engine = request.key_services;
        let credentials = keys.services.clone().or(&engine.credentials);
        let owner = fl_http::Owner::namespace(request.object.namespace());
        Decryptor { keys, credentials, endpoints: &engine.endpoints, secrets: request.secrets.clone(), owner }
    }

    fn open(&self, bytes: &[u8], input: Format, output: Format) -> Result<Vec<u8>, String> {
        let document = Document::parse(bytes, input).map_err(|e| e.to_string())?;
        let services = KeyServices {
            credentials: &self.credentials,
            endpoints: self.endpoints,
            network: key_services::Http(self.owner.clone()),
        };
        let key =
            document.data_key(&[&self.keys.age, &self.keys.pgp, &services]).map_err(|e| e.to_string())?;
        // kustomize has changed the object since it was encrypted, so the MAC over all of it cannot hold.
        let plain = document.decrypt(&key, output, Mac::Ignore).map_err(|e| e.to_string())?;
        self.learn(bytes, &plain);
        Ok(plain)
    }

    /// Makes the decrypted values known, so that no message of the pass shows them.
    fn learn(&self, encrypted: &[u8], plain: &[u8]) {
        let parse = |bytes: &[u8]| fl_yaml::parse_first(bytes, &fl_yaml::Options::sigs()).ok().flatten();
        match (parse(encrypted), parse(plain)) {
            (Some(encrypted), Some(plain)) if plain.as_map().is_some() && encrypted.as_map().is_some() => {
                learn_values(&self.secrets, &encrypted, &plain);
            }
            _ => self.secrets.learn_bytes(plain),
        }
    }
}

/// Learns the values of a document that were encrypted; what stood there in the open is no secret.
fn learn_values(secrets: &KnownSecrets, encrypted: &Node, plain: &Node) {
    if let (Some(before), Some(after)) = (encrypted.as_map(), plain.as_map()) {
        for entry in after.iter() {
            let value = entry.key.as_text().and_then(|key| before.get(key));
            if let Some(value) = value {
                learn_values(secrets, value, &entry.value);
            }
        }
    } else if let (Some(before), Some(after)) = (encrypted.as_seq(), plain.as_seq()) {
        before.iter().zip(after).for_each(|(before, after)| learn_values(secrets, before, after));
    } else if let Some(value) = plain.as_text()
        && encrypted.as_text().is_some_and(|text| text.starts_with("ENC["))
    {
        secrets.learn_bytes(value.as_bytes());
        // The data of a Secret.
        if let Ok(decoded) = STANDARD.decode(value.trim()) {
            secrets.learn_bytes(&decoded);
        }
    }
}

/// Whether an object is a Secret that nobody decrypted.
pub(crate) fn is_encrypted_secret(object: &Value) -> bool {
    let disabled = object["metadata"]["annotations"][DISABLE]
        .as_str()
        .is_some_and(|v| v.eq_ignore_ascii_case("disabled"));
    object["kind"] == "Secret" && object["apiVersion"] == "v1" && object.get("sops").is_some() && !disabled
}

/// Decrypts one built object: as a whole when it is encrypted, or the values of a Secret that are.
pub(super) fn object(node: Node, decryptor: &Decryptor<'_>) -> Result<Node, String> {
    let disabled = node.at(&["metadata", "annotations", DISABLE]).and_then(Node::as_text);
    if disabled.is_some_and(|v| v.eq_ignore_ascii_case("disabled")) {
        return Ok(node);
    }
    let text = |path: &[&str]| node.at(path).and_then(Node::as_text).unwrap_or_default().to_owned();
    let (kind, name, namespace) =
        (text(&["kind"]), text(&["metadata", "name"]), text(&["metadata", "namespace"]));
    if !text(&["sops", "mac"]).is_empty() {
        let json = fl_yaml::to_json(&node, Dialect::V3, JsonStyle::default()).map_err(|e| e.to_string())?;
        let plain = decryptor
            .open(json.as_bytes(), Format::Json, Format::Json)
            .map_err(|e| format!("failed to decrypt and format '{namespace}/{name}' {kind} data: {e}"))?;
        let plain = String::from_utf8(plain).map_err(|_| "the decrypted object is not text".to_owned())?;
        return fl_yaml::from_json(&plain).map_err(|_| "the decrypted object is not JSON".to_owned());
    }
    if kind != "Secret" {
        return Ok(node);
    }
    let mut node = node;
    let Some(data) = node.get_mut("data").and_then(Node::as_map_mut) else { return Ok(node) };
    for entry in data.iter_mut() {
        let key = entry.key.as_text().unwrap_or_default().to_owned();
        let Some(bytes) = entry.value.as_text().and_then(|v| STANDARD.decode(v.trim()).ok()) else {
            continue;
        };
        let Some(input) = Format::detect(&bytes) else { continue };
        let plain = decryptor.open(&bytes, input, Format::of_path(&key)).map_err(|e| {
            format!("failed to decrypt and format '{namespace}/{name}' Secret field '{key}': {e}")
        })?;
        entry.value = Node::string(STANDARD.encode(plain));
    }
    Ok(node)
}

/// Decrypts the files that generators and patches of a kustomization, and of those it is made of, refer to.
pub(super) fn sources(view: &mut View, directory: &Path, decryptor: &Decryptor<'_>) -> Result<(), String> {
    let (mut visited, mut decrypted) = (BTreeSet::new(), BTreeSet::new());
    visit(view, directory, decryptor, &mut visited, &mut decrypted)
}

fn visit(
    view: &mut View,
    directory: &Path,
    decryptor: &Decryptor<'_>,
    visited: &mut BTreeSet<PathBuf>,
    decrypted: &mut BTreeSet<PathBuf>,
) -> Result<(), String> {
    if !view.is_directory(directory) || !visited.insert(directory.to_owned()) {
        return Ok(());
    }
    let names = generate::NAMES.iter().map(|n| directory.join(n));
    let Some(file) = names.into_iter().find(|f| view.file(f).is_some()) else { return Ok(()) };
    let kustomization = generate::read(&file, view.file(&file).unwrap_or_default())?;
    for (path, format) in references(&kustomization) {
        let path = clean(&directory.join(path));
        if !path.starts_with(view.tree().root()) || !decrypted.insert(path.clone()) {
            continue;
        }
        let Some(bytes) = view.file(&path) else { continue };
        if bytes.len() > LARGEST {
            let size = bytes.len();
            return Err(format!("cannot decrypt file with size ({size} bytes) exceeding limit ({LARGEST})"));
        }
        if format.is_encrypted(bytes) {
            let plain = decryptor.open(bytes, format, format)?;
            view.put(path, plain);
        }
    }
    let lists =
        ["resources", "components"].iter().filter_map(|f| kustomization.get(*f).and_then(Value::as_array));
    let next: Vec<PathBuf> =
        lists.flatten().filter_map(Value::as_str).map(|entry| clean(&directory.join(entry))).collect();
    for path in next {
        visit(view, &path, decryptor, visited, decrypted)?;
    }
    Ok(())
}

/// Files that may be encrypted, and as what.
fn references(kustomization: &Map<String, Value>) -> Vec<(String, Format)> {
    let mut found = Vec::new();
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    for generator in list(kustomization.get("secretGenerator")) {
        for file in list(generator.get("files")).iter().filter_map(Value::as_str) {
            let (key, path) = file.split_once('=').unwrap_or((file, file));
            found.push((path.to_owned(), Format::of_path(key)));
        }
        for file in list(generator.get("envs")).iter().filter_map(Value::as_str) {
            let format = match Format::of_path(file) {
                Format::Binary => Format::Dotenv,
                other => other,
            };
            found.push((file.to_owned(), format));
        }
    }
    for patch in list(kustomization.get("patches")) {
        let path = patch["path"].as_str().unwrap_or_default();
        if !path.is_empty() && !path.contains("://") {
            found.push((path.to_owned(), Format::of_path(path)));
        }
    }
    found
}
