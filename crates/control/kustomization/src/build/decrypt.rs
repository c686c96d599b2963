//! Decryption with the keys of a Kustomization.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_http::Owner;
use fl_kustomize_build::Decrypt;
use fl_runtime::KnownSecrets;
use fl_sops::kms::{
    AwsCredentials, AzureCredentials, Destinations, GcpCredentials, KeyServices, ServiceCredentials, Token,
};
use fl_sops::{AgeIdentities, Document, Format, Mac, PgpKeys};
use fl_types::Secret;
use fl_yaml::Node;

use super::kms::{EngineKeyServices, HttpNetwork};

/// A key of a Secret that cannot be read. Names the key and does not show it.
#[derive(Debug, thiserror::Error)]
#[error("failed to import '{name}' data from {place}: {step}{source}")]
pub(crate) struct KeyMaterialError {
    name: String,
    place: String,
    step: &'static str,
    source: fl_sops::Error,
}

/// The keys of one Kustomization.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyMaterial {
    age: AgeIdentities,
    pgp: PgpKeys,
    services: ServiceCredentials,
}

impl KeyMaterial {
    /// From the data of a Secret (`place` is what messages call it); keys of other kinds are ignored.
    pub(crate) fn import(
        data: &BTreeMap<String, Secret<Vec<u8>>>,
        place: &str,
    ) -> Result<Self, KeyMaterialError> {
        let mut keys = KeyMaterial::default();
        for (name, value) in data {
            let bytes = value.expose();
            keys.add(name, bytes).map_err(|source| {
                let step = if name.ends_with(".agekey") {
                    "failed to parse and add to age identities: "
                } else {
                    ""
                };
                KeyMaterialError { name: name.clone(), place: place.to_owned(), step, source }
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
    pub(crate) fn import_age(
        data: &BTreeMap<String, Secret<Vec<u8>>>,
        place: &str,
    ) -> Result<Self, KeyMaterialError> {
        let only = data.iter().filter(|(k, _)| k.ends_with(".agekey")).map(|(k, v)| (k.clone(), v.clone()));
        Self::import(&only.collect(), place)
    }
}

/// Decrypts with the keys of a Kustomization and the engine's credentials for key services.
pub(crate) struct Decryptor<'a> {
    keys: &'a KeyMaterial,
    credentials: ServiceCredentials,
    engine: &'a EngineKeyServices,
    secrets: KnownSecrets,
    /// The owner of requests to key services.
    owner: Owner,
}

impl<'a> Decryptor<'a> {
    pub(crate) fn new(
        keys: &'a KeyMaterial,
        engine: &'a EngineKeyServices,
        secrets: KnownSecrets,
        namespace: &str,
    ) -> Self {
        let credentials = keys.services.clone().or(&engine.credentials);
        Decryptor { keys, credentials, engine, secrets, owner: Owner::namespace(namespace) }
    }

    /// Registers the decrypted values, so that no message of the reconcile shows them.
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

impl Decrypt for Decryptor<'_> {
    fn decrypt(&self, bytes: &[u8], input: Format, output: Format) -> Result<Vec<u8>, fl_sops::Error> {
        let document = Document::parse(bytes, input)?;
        let services = KeyServices {
            credentials: &self.credentials,
            endpoints: &self.engine.endpoints,
            network: HttpNetwork(self.owner.clone()),
        };
        let key = document.data_key(&[&self.keys.age, &self.keys.pgp, &services])?;
        let plain = document.decrypt(&key, output, Mac::Ignore)?;
        self.learn(bytes, &plain);
        Ok(plain)
    }
}

/// Registers the values of a document that were encrypted; plain values of the same document are not secret.
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
