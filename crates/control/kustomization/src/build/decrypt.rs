//! SOPS in sources and objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_http::Method;
use fl_sops::{AgeIdentities, Document, Format, KeyService, Mac, MasterKey, PgpKeys};
use fl_types::Secret;
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::{Map, Value, json};

use super::generate;
use super::tree::{View, clean};

/// Larger files are not decrypted.
const LARGEST: usize = 5 << 20;
const DISABLE: &str = "kustomize.toolkit.fluxcd.io/decrypt";

/// The keys of one Kustomization.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyMaterial {
    age: AgeIdentities,
    vault_token: Option<Secret<String>>,
    pgp: PgpKeys,
}

impl KeyMaterial {
    /// From the data of a Secret; keys of other kinds are ignored.
    ///
    /// # Errors
    /// A key that cannot be read, named but not shown.
    pub(crate) fn import(data: &BTreeMap<String, Secret<Vec<u8>>>) -> Result<Self, String> {
        let mut keys = KeyMaterial::default();
        for (name, value) in data {
            let text = || String::from_utf8_lossy(value.expose()).into_owned();
            if name.ends_with(".agekey") {
                keys.age.import(&text()).map_err(|e| format!("failed to import '{name}' data: {e}"))?;
            } else if name.ends_with(".asc") {
                let import = keys.pgp.import(value.expose());
                import.map_err(|e| format!("failed to import '{name}' data: {e}"))?;
            } else if name == "sops.vault-token" {
                keys.vault_token = Some(Secret::new(text().trim().to_owned()));
            }
        }
        Ok(keys)
    }

    /// Only the age keys of a Secret, for the engine's own.
    pub(crate) fn import_age(data: &BTreeMap<String, Secret<Vec<u8>>>) -> Result<Self, String> {
        let only = data.iter().filter(|(k, _)| k.ends_with(".agekey")).map(|(k, v)| (k.clone(), v.clone()));
        Self::import(&only.collect())
    }
}

/// Opens data keys with what a Kustomization has.
pub(crate) struct Decryptor<'a> {
    keys: &'a KeyMaterial,
    vault: Option<Vault>,
}

impl<'a> Decryptor<'a> {
    pub(crate) fn new(keys: &'a KeyMaterial) -> Self {
        let token = keys.vault_token.clone().or_else(|| std::env::var("VAULT_TOKEN").ok().map(Secret::new));
        Decryptor { keys, vault: token.map(|token| Vault { token }) }
    }

    fn open(&self, bytes: &[u8], input: Format, output: Format) -> Result<Vec<u8>, String> {
        let document = Document::parse(bytes, input).map_err(|e| e.to_string())?;
        let mut services: Vec<&dyn KeyService> = vec![&self.keys.age, &self.keys.pgp, self];
        services.extend(self.vault.as_ref().map(|v| v as &dyn KeyService));
        let key = document.data_key(&services).map_err(|e| e.to_string())?;
        // kustomize has changed the object since it was encrypted, so the MAC over all of it cannot hold.
        document.decrypt(&key, output, Mac::Ignore).map_err(|e| e.to_string())
    }
}

/// What this engine has no keys for says so instead of staying silent.
impl KeyService for Decryptor<'_> {
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, String>> {
        match key {
            MasterKey::AwsKms { .. }
            | MasterKey::GcpKms { .. }
            | MasterKey::AzureKeyVault { .. }
            | MasterKey::HuaweiKms { .. } => {
                Some(Err("this key service is not supported by this engine".to_owned()))
            }
            MasterKey::Vault { .. } if self.vault.is_none() => {
                Some(Err("no Vault token is configured".to_owned()))
            }
            _ => None,
        }
    }
}

struct Vault {
    token: Secret<String>,
}

impl KeyService for Vault {
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, String>> {
        let MasterKey::Vault { address, engine_path, key_name, encrypted } = key else { return None };
        let url = format!("{}/v1/{engine_path}/decrypt/{key_name}", address.trim_end_matches('/'));
        Some(self.transit(&url, encrypted))
    }
}

impl Vault {
    fn transit(&self, url: &str, encrypted: &str) -> Result<Secret<Vec<u8>>, String> {
        let handle = tokio::runtime::Handle::try_current().map_err(|e| e.to_string())?;
        let body = json!({"ciphertext": encrypted}).to_string().into_bytes();
        let answer = handle.block_on(async {
            let client = fl_http::Client::new(fl_http::Settings::default())?;
            let request = fl_http::Request::new(Method::POST, url)?
                .header(fl_http::HeaderName::from_static("x-vault-token"), self.token.expose())?
                .header(fl_http::header::CONTENT_TYPE, "application/json")?
                .body(body);
            let answer = client.send(request).await?;
            let status = answer.status().as_u16();
            Ok::<_, fl_http::Error>((status, answer.bytes(1 << 20).await?))
        });
        let (status, bytes) = answer.map_err(|e| e.to_string())?;
        if status != 200 {
            return Err(format!("the Vault answered with status {status}"));
        }
        let body: Value =
            serde_json::from_slice(&bytes).map_err(|_| "the Vault's answer is not JSON".to_owned())?;
        let plain = body["data"]["plaintext"].as_str().and_then(|t| STANDARD.decode(t).ok());
        plain.map(Secret::new).ok_or_else(|| "the Vault's answer holds no key".to_owned())
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
    let kustomization = generate::read(view.file(&file).unwrap_or_default())?;
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
