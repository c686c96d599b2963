//! Key services that are reached over HTTP: Vault and OpenBao, AWS, Google, Azure.
//!
//! Which requests to send and how to sign them is decided here; sending is left to a [`Network`]. A request goes to the host it
//! was made for and nowhere else, as its headers and its body are secrets.

mod aws;
mod azure;
mod gcp;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub use fl_cloud::{Destination, Destinations, Token};
use fl_cloud::{access_token, json_answer, percent};
use fl_types::Secret;
use serde_json::{Value, json};

use crate::document::KeyService;
use crate::{Error, Format, MasterKey, read, tree::Item};

pub use fl_cloud::Call;

pub use aws::AwsCredentials;
pub use azure::AzureCredentials;
pub use gcp::GcpCredentials;

/// What the world outside gives.
pub trait Network {
    /// Sends a request without following redirects; the status and the answer, which may hold a key.
    ///
    /// # Errors
    /// When there is no answer. The text must hold nothing of the request but its address.
    fn send(&self, call: &Call) -> Result<(u16, Secret<Vec<u8>>), String>;

    /// Seconds since 1970.
    fn now(&self) -> i64;
}

/// Other addresses than the usual ones.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// Instead of `https://kms.<region>.amazonaws.com`.
    pub aws_kms: Option<String>,
    /// Instead of `https://sts.<region>.amazonaws.com`.
    pub aws_sts: Option<String>,
    /// Instead of `https://cloudkms.googleapis.com`.
    pub gcp_kms: Option<String>,
    /// What Azure's tokens are for, instead of what the name of the vault says.
    pub azure_resource: Option<String>,
    /// Instead of `http://169.254.169.254`.
    pub azure_metadata: Option<String>,
}

/// Who we are to key services.
#[derive(Clone, Debug, Default)]
pub struct ServiceCredentials {
    /// A token of Vault or OpenBao.
    pub vault_token: Option<Token>,
    /// AWS.
    pub aws: Option<AwsCredentials>,
    /// Google.
    pub gcp: Option<GcpCredentials>,
    /// Azure.
    pub azure: Option<AzureCredentials>,
}

impl ServiceCredentials {
    /// The engine's own credentials, from its environment. The Vault token is for `VAULT_ADDR` only: without that variable it is used
    /// nowhere, as the files that name a Vault belong to others.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let vault = set("VAULT_ADDR").and_then(|url| Destination::address(&url));
        let vault = Destinations::Only(vault.into_iter().collect());
        ServiceCredentials {
            vault_token: set("VAULT_TOKEN").map(|token| Token::new(Secret::new(token), vault)),
            aws: aws::AwsKeys::from_variables(set).map(AwsCredentials::from),
            ..ServiceCredentials::default()
        }
    }

    /// These credentials, and the other ones for services that these say nothing of.
    #[must_use]
    pub fn or(self, other: &ServiceCredentials) -> Self {
        ServiceCredentials {
            vault_token: self.vault_token.or_else(|| other.vault_token.clone()),
            aws: self.aws.or_else(|| other.aws.clone()),
            gcp: self.gcp.or_else(|| other.gcp.clone()),
            azure: self.azure.or_else(|| other.azure.clone()),
        }
    }
}

impl Endpoints {
    /// The variables of AWS' own tools.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let aws =
            |service: &str| set(&format!("AWS_ENDPOINT_URL_{service}")).or_else(|| set("AWS_ENDPOINT_URL"));
        Endpoints { aws_kms: aws("KMS"), aws_sts: aws("STS"), ..Endpoints::default() }
    }
}

/// Asks key services.
#[derive(Debug)]
pub struct KeyServices<'a, N> {
    /// Who we are.
    pub credentials: &'a ServiceCredentials,
    /// Where they are.
    pub endpoints: &'a Endpoints,
    /// How to reach them.
    pub network: N,
}

impl<N: Network> KeyService for KeyServices<'_, N> {
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, String>> {
        let missing = |entry: &str| {
            Err(format!(
                "no credentials: the decryption Secret has no entry '{entry}', and identities of the machine are not supported"
            ))
        };
        let network: &dyn Network = &self.network;
        Some(match key {
            MasterKey::Age { .. } | MasterKey::Pgp { .. } => return None,
            MasterKey::Vault { address, engine_path, key_name, encrypted } => {
                match &self.credentials.vault_token {
                    Some(token) => vault(network, token, [address, engine_path, key_name], encrypted),
                    None => Err("no Vault token is configured".to_owned()),
                }
            }
            MasterKey::AwsKms { arn, role, context, encrypted } => match &self.credentials.aws {
                Some(aws) => aws.decrypt(network, self.endpoints, (arn, role), context, encrypted),
                None => missing("sops.aws-kms"),
            },
            MasterKey::GcpKms { resource_id, encrypted } => match &self.credentials.gcp {
                Some(gcp) => gcp.decrypt(network, self.endpoints, resource_id, encrypted),
                None => missing("sops.gcp-kms"),
            },
            MasterKey::AzureKeyVault { vault_url, name, version, encrypted } => match &self.credentials.azure
            {
                Some(azure) => azure.decrypt(network, self.endpoints, [vault_url, name, version], encrypted),
                None => missing("sops.azure-kv"),
            },
            MasterKey::HuaweiKms { .. } => {
                Err("keys of Huawei's KMS are not supported by this engine".to_owned())
            }
        })
    }
}

/// The transit engine of Vault and OpenBao.
fn vault(
    network: &dyn Network,
    token: &Token,
    [address, engine, key]: [&String; 3],
    encrypted: &str,
) -> Result<Secret<Vec<u8>>, String> {
    // The file chooses the path; with a `?` or `..` in it the request would be another one than a decryption.
    let segments = engine.split('/').chain(key.split('/'));
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '@' | '+' | '=' | ':');
    if segments.clone().any(|s| s.is_empty() || matches!(s, "." | "..") || !s.chars().all(plain)) {
        return Err("the path or the name of the Vault key is not valid".to_owned());
    }
    let address = address.trim_end_matches('/');
    let mut call =
        Call::json(format!("{address}/v1/{engine}/decrypt/{key}"), &json!({"ciphertext": encrypted}));
    let token = token.for_address("the Vault token", &call.url)?;
    call.headers.push(("x-vault-token", token.clone()));
    let answer = send(network, &call, "the Vault")?;
    decoded(answer["data"]["plaintext"].as_str(), "the Vault")
}

/// The answer of a service as JSON, when its status is good.
fn send(network: &dyn Network, call: &Call, who: &str) -> Result<Value, String> {
    let (status, body) = network.send(call)?;
    json_answer(status, &body, who)
}

fn decoded(text: Option<&str>, who: &str) -> Result<Secret<Vec<u8>>, String> {
    let plain = text.and_then(|t| STANDARD.decode(t).ok());
    plain.map(Secret::new).ok_or_else(|| format!("the answer of {who} holds no key"))
}

/// The fields of a YAML or JSON file with credentials.
struct Fields(Item);

impl Fields {
    fn read(bytes: &[u8], what: &'static str) -> Result<Self, Error> {
        let bad = Error::Key(what);
        let text = utf8(bytes).ok_or_else(|| bad.clone())?;
        let mut branches = read::branches(text.as_bytes(), Format::Yaml).map_err(|_| bad.clone())?;
        match (branches.len(), branches.pop()) {
            (1, Some(item @ Item::Map(_))) => Ok(Fields(item)),
            _ => Err(bad),
        }
    }

    fn text(&self, key: &str) -> String {
        self.0.get(key).and_then(Item::plain_text).unwrap_or_default()
    }

    fn secret(&self, key: &str) -> Secret<String> {
        Secret::new(self.text(key))
    }
}

/// Files from Windows have other encodings.
fn utf8(bytes: &[u8]) -> Option<String> {
    let wide = |order: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|c| order([c[0], c[1]])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}
