//! Key management services over HTTP: Vault and OpenBao, AWS, Google, Azure.
//!
//! This module creates and signs the requests; a [`Network`] sends them. Send a request only to the host it
//! was made for, since its headers and body are secrets.

mod aws;
mod azure;
mod gcp;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
pub use fl_cloud::{Destination, Destinations, Token};
use fl_cloud::{access_token, json_response, percent};
use fl_types::Secret;
use serde_json::{Value, json};

use crate::document::KeyService;
use crate::{Error, Format, KeyError, MasterKey, NetworkError, read, tree::Item};

pub use fl_cloud::CloudRequest;

pub use aws::AwsCredentials;
pub use azure::AzureCredentials;
pub use gcp::GcpCredentials;

/// Network and clock, implemented by the caller.
pub trait Network {
    /// Sends a request without following redirects; returns status and body, which may contain a key.
    ///
    /// # Errors
    /// There was no response. The message must contain nothing of the request except its address.
    fn send(&self, request: &CloudRequest) -> Result<(u16, Secret<Vec<u8>>), NetworkError>;

    /// Unix time in seconds.
    fn now(&self) -> i64;
}

/// Alternative endpoints.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// Instead of `https://kms.<region>.amazonaws.com`.
    pub aws_kms: Option<String>,
    /// Instead of `https://sts.<region>.amazonaws.com`.
    pub aws_sts: Option<String>,
    /// Instead of `https://cloudkms.googleapis.com`.
    pub gcp_kms: Option<String>,
    /// Audience of Azure tokens, instead of the one derived from the name of the vault.
    pub azure_resource: Option<String>,
    /// Instead of `http://169.254.169.254`.
    pub azure_metadata: Option<String>,
}

/// Credentials for key management services.
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
    /// The engine's own credentials, from its environment. The Vault token is restricted to `VAULT_ADDR`:
    /// without that variable it is not used, since users choose the Vault addresses in their files.
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

    /// Fills missing credentials from `other`.
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
    /// Endpoints from the environment variables of the AWS SDK.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let aws =
            |service: &str| set(&format!("AWS_ENDPOINT_URL_{service}")).or_else(|| set("AWS_ENDPOINT_URL"));
        Endpoints { aws_kms: aws("KMS"), aws_sts: aws("STS"), ..Endpoints::default() }
    }
}

/// Decrypts data keys with key management services.
#[derive(Debug)]
pub struct KeyServices<'a, N> {
    /// Credentials.
    pub credentials: &'a ServiceCredentials,
    /// Endpoints.
    pub endpoints: &'a Endpoints,
    /// Network.
    pub network: N,
}

impl<N: Network> KeyService for KeyServices<'_, N> {
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, KeyError>> {
        let missing = |entry| Err(KeyError::NoCredentials(entry));
        let network: &dyn Network = &self.network;
        Some(match key {
            MasterKey::Age { .. } | MasterKey::Pgp { .. } => return None,
            MasterKey::Vault { address, engine_path, key_name, encrypted } => {
                match &self.credentials.vault_token {
                    Some(token) => vault(network, token, [address, engine_path, key_name], encrypted),
                    None => Err(KeyError::NoVaultToken),
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
            MasterKey::HuaweiKms { .. } => Err(KeyError::Huawei),
        })
    }
}

/// The transit engine of Vault and OpenBao.
fn vault(
    network: &dyn Network,
    token: &Token,
    [address, engine, key]: [&String; 3],
    encrypted: &str,
) -> Result<Secret<Vec<u8>>, KeyError> {
    // The file chooses the path; with `?` or `..` in it the request would not be a decryption.
    let segments = engine.split('/').chain(key.split('/'));
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '@' | '+' | '=' | ':');
    if segments.clone().any(|s| s.is_empty() || matches!(s, "." | "..") || !s.chars().all(plain)) {
        return Err(KeyError::InvalidReference("the path or the name of the Vault key"));
    }
    let address = address.trim_end_matches('/');
    let mut request =
        CloudRequest::json(format!("{address}/v1/{engine}/decrypt/{key}"), &json!({"ciphertext": encrypted}));
    let token = token.for_address("the Vault token", &request.url)?;
    request.headers.push(("x-vault-token", token.clone()));
    let answer = send(network, &request, "the Vault")?;
    decoded(answer["data"]["plaintext"].as_str(), "the Vault")
}

/// Sends a request and parses a successful response as JSON.
fn send(network: &dyn Network, request: &CloudRequest, who: &str) -> Result<Value, KeyError> {
    let (status, body) = network.send(request)?;
    Ok(json_response(status, &body, who)?)
}

fn decoded(text: Option<&str>, who: &'static str) -> Result<Secret<Vec<u8>>, KeyError> {
    let plain = text.and_then(|t| STANDARD.decode(t).ok());
    plain.map(Secret::new).ok_or(KeyError::NoKey(who))
}

/// Fields of a YAML or JSON file with credentials.
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

/// Decodes text; files from Windows may have other encodings.
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
