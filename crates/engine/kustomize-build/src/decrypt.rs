//! SOPS in files and objects.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_kustomize::Files as _;
use fl_sops::Format;
use fl_yaml::{Dialect, JsonStyle, Node};
use serde_json::{Map, Value};

use crate::error::{ObjectDecryptError, SourceDecryptError};
use crate::files::{Overlay, clean};
use crate::generate::{self, kustomization_file};

/// Flux's limit of the size of an encrypted file.
const MAX_FILE_BYTES: usize = 5 << 20;
const DECRYPT: &str = "kustomize.toolkit.fluxcd.io/decrypt";

/// Decrypts SOPS documents. Keys and requests to key services are the implementor's.
pub trait Decrypt {
    /// Decrypts a document of the format `input`, and writes it in the format `output`. The MAC is not checked: kustomize
    /// has changed objects since they were encrypted.
    ///
    /// # Errors
    /// It is not a SOPS document, or no key opens it.
    fn decrypt(&self, bytes: &[u8], input: Format, output: Format) -> Result<Vec<u8>, fl_sops::Error>;
}

/// Whether an object is a Secret that is still encrypted.
#[must_use]
pub fn is_encrypted_secret(object: &Value) -> bool {
    let disabled = object["metadata"]["annotations"][DECRYPT]
        .as_str()
        .is_some_and(|v| v.eq_ignore_ascii_case("disabled"));
    object["kind"] == "Secret" && object["apiVersion"] == "v1" && object.get("sops").is_some() && !disabled
}

/// Decrypts one built object: all of it, or the encrypted values of a Secret.
pub(crate) fn object(node: Node, decryptor: &dyn Decrypt) -> Result<Node, ObjectDecryptError> {
    let disabled = node.at(&["metadata", "annotations", DECRYPT]).and_then(Node::as_text);
    if disabled.is_some_and(|v| v.eq_ignore_ascii_case("disabled")) {
        return Ok(node);
    }
    let text = |path: &[&str]| node.at(path).and_then(Node::as_text).unwrap_or_default().to_owned();
    let (kind, name, namespace) =
        (text(&["kind"]), text(&["metadata", "name"]), text(&["metadata", "namespace"]));
    if !text(&["sops", "mac"]).is_empty() {
        let json = fl_yaml::to_json(&node, Dialect::V3, JsonStyle::default())?;
        let plain = decryptor
            .decrypt(json.as_bytes(), Format::Json, Format::Json)
            .map_err(|source| ObjectDecryptError::Object { namespace, name, kind, source })?;
        let plain = String::from_utf8(plain).map_err(|_| ObjectDecryptError::NotText)?;
        return fl_yaml::from_json(&plain).map_err(|_| ObjectDecryptError::NotJson);
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
        let plain = decryptor.decrypt(&bytes, input, Format::of_path(&key)).map_err(|source| {
            let (namespace, name) = (namespace.clone(), name.clone());
            ObjectDecryptError::Field { namespace, name, key, source }
        })?;
        entry.value = Node::string(STANDARD.encode(plain));
    }
    Ok(node)
}

/// Decrypts the files that generators and patches refer to, in a kustomization and in those it is made of.
pub(crate) fn sources(
    files: &mut Overlay<'_>,
    directory: &Path,
    boundary: Option<&Path>,
    decryptor: &dyn Decrypt,
) -> Result<(), SourceDecryptError> {
    let (visited, decrypted) = (BTreeSet::new(), BTreeSet::new());
    Sources { files, boundary, decryptor, visited, decrypted }.visit(directory)
}

struct Sources<'a, 'f> {
    files: &'a mut Overlay<'f>,
    boundary: Option<&'a Path>,
    decryptor: &'a dyn Decrypt,
    visited: BTreeSet<PathBuf>,
    decrypted: BTreeSet<PathBuf>,
}

impl Sources<'_, '_> {
    fn visit(&mut self, directory: &Path) -> Result<(), SourceDecryptError> {
        if !self.files.is_directory(directory) || !self.visited.insert(directory.to_owned()) {
            return Ok(());
        }
        let Some(file) = kustomization_file(self.files, directory) else { return Ok(()) };
        let kustomization = generate::read(self.files, &file)?;
        for (path, format) in references(&kustomization) {
            let path = clean(&directory.join(path));
            let outside = self.boundary.is_some_and(|root| !path.starts_with(root));
            if outside || !self.decrypted.insert(path.clone()) {
                continue;
            }
            let Ok(bytes) = self.files.read(&path) else { continue };
            if bytes.len() > MAX_FILE_BYTES {
                return Err(SourceDecryptError::TooLarge { size: bytes.len(), limit: MAX_FILE_BYTES });
            }
            if format.is_encrypted(&bytes) {
                let plain = self.decryptor.decrypt(&bytes, format, format)?;
                self.files.put(path, plain);
            }
        }
        let lists = ["resources", "components"]
            .iter()
            .filter_map(|field| kustomization.get(*field).and_then(Value::as_array));
        let next: Vec<PathBuf> =
            lists.flatten().filter_map(Value::as_str).map(|entry| clean(&directory.join(entry))).collect();
        next.iter().try_for_each(|path| self.visit(path))
    }
}

/// The files of a kustomization that may be encrypted, and their formats.
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
