//! Azure Key Vault.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fl_cloud::azure::{AUTHORITY, AzureCertificate, AzureIdentity, AzureKind as Kind};
use fl_types::Secret;
use serde_json::json;

use super::{CloudRequest, Endpoints, Fields, Network, Token, access_token, percent, send};
use crate::{Error, KeyError};

const IDENTITY: &str = "the Azure identity";

/// An Azure identity.
#[derive(Clone, Debug)]
pub struct AzureCredentials(AzureIdentity);

impl AzureCredentials {
    /// Parses the entry `sops.azure-kv` of a Secret.
    ///
    /// # Errors
    /// Invalid YAML, or no identity.
    pub fn from_yaml(bytes: &[u8]) -> Result<Self, Error> {
        let fields = Fields::read(
            bytes,
            "failed to unmarshal Azure authentication file: error unmarshaling JSON: it is no map of texts",
        )?;
        let text = |key: &str| Some(fields.text(key)).filter(|t| !t.is_empty());
        let authority = text("authorityHost").unwrap_or_else(|| AUTHORITY.to_owned());
        let kind = match (text("tenantId"), text("clientId")) {
            (Some(tenant), Some(client)) if text("clientSecret").is_some() => {
                Some(Kind::ClientSecret { tenant, client, secret: fields.secret("clientSecret") })
            }
            (Some(tenant), Some(client)) if text("clientCertificate").is_some() => {
                let pem = fields.text("clientCertificate");
                let chain = fields.text("clientCertificateSendChain") == "true";
                let certificate = AzureCertificate::from_pem(&pem, chain).map_err(|e| Error::Key(e.0))?;
                Some(Kind::Certificate { tenant, client, certificate })
            }
            _ => None,
        };
        let kind = kind.or_else(|| match (text("tenant"), text("appId"), text("password")) {
            (Some(tenant), Some(client), Some(_)) => {
                Some(Kind::ClientSecret { tenant, client, secret: fields.secret("password") })
            }
            _ => text("clientId").map(|client| Kind::ManagedIdentity { client }),
        });
        let incomplete = "invalid data: requires a 'clientId' field, a combination of 'tenantId', 'clientId' and 'clientSecret', or 'tenantId', 'clientId' and 'clientCertificate'";
        Ok(Self(AzureIdentity { authority, kind: kind.ok_or(Error::Key(incomplete))? }))
    }

    fn token(&self, network: &dyn Network, endpoints: &Endpoints, resource: &str) -> Result<Token, KeyError> {
        let metadata = endpoints.azure_metadata.as_deref().unwrap_or("http://169.254.169.254");
        let request = self.0.token_request(resource, metadata, network.now())?;
        let answer = send(network, &request, "Azure's token service")?;
        Ok(access_token(&answer, "Azure's token service", self.0.destinations())?)
    }

    pub(super) fn decrypt(
        &self,
        network: &dyn Network,
        endpoints: &Endpoints,
        [vault, name, version]: [&String; 3],
        encrypted: &str,
    ) -> Result<Secret<Vec<u8>>, KeyError> {
        let resource = match &endpoints.azure_resource {
            Some(resource) => resource.clone(),
            None => resource(vault).ok_or(KeyError::InvalidReference("the address of the Key Vault"))?,
        };
        // Checked before a token is requested: the file names the vault, but must not choose the audience of
        // the machine's tokens.
        self.0.destinations().check(IDENTITY, vault)?;
        let token = self.token(network, endpoints, &resource)?;
        let (vault, name, version) = (vault.trim_end_matches('/'), percent(name), percent(version));
        let url = format!("{vault}/keys/{name}/{version}/decrypt?api-version=7.4");
        let request = CloudRequest::json(url, &json!({"alg": "RSA-OAEP-256", "value": encrypted}));
        let request = request.bearer(IDENTITY, &token)?;
        let answer = send(network, &request, "Azure Key Vault")?;
        let plain =
            answer["value"].as_str().and_then(|v| URL_SAFE_NO_PAD.decode(v.trim_end_matches('=')).ok());
        plain.map(Secret::new).ok_or(KeyError::NoKey("Azure Key Vault"))
    }
}

/// The audience of a token: the vault's host without its first label. The file names the vault, so a token
/// for Azure's vaults must never be sent to any other host.
fn resource(vault: &str) -> Option<String> {
    let host = vault.strip_prefix("https://")?.trim_end_matches('/');
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let (_, domain) = host.split_once('.').filter(|_| host.chars().all(word))?;
    domain.contains('.').then(|| format!("https://{domain}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_audience_follows_the_vault_host() {
        assert_eq!(resource("https://v.vault.azure.net/").as_deref(), Some("https://vault.azure.net"));
        assert_eq!(resource("https://v.evil.example").as_deref(), Some("https://evil.example"));
        for bad in
            ["http://v.vault.azure.net", "https://v", "https://v.x/y", "https://e.com@v.vault.azure.net"]
        {
            assert_eq!(resource(bad), None, "{bad}");
        }
    }

    #[test]
    fn identities() {
        let kind = |text: &str| AzureCredentials::from_yaml(text.as_bytes()).map(|c| c.0.kind);
        assert!(matches!(
            kind("tenantId: t\nclientId: c\nclientSecret: canary"),
            Ok(Kind::ClientSecret { .. })
        ));
        assert!(matches!(
            kind("{\"tenant\": \"t\", \"appId\": \"a\", \"password\": \"p\"}"),
            Ok(Kind::ClientSecret { .. })
        ));
        assert!(matches!(kind("clientId: c"), Ok(Kind::ManagedIdentity { .. })));
        for bad in ["", "tenantId: t", "tenantId: t\nclientId: c\nclientCertificate: x", "- a"] {
            assert!(kind(bad).is_err(), "{bad}");
        }
        let wide: Vec<u8> =
            [0xfeff].into_iter().chain("clientId: c".encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert!(matches!(
            AzureCredentials::from_yaml(&wide).map(|c| c.0.kind),
            Ok(Kind::ManagedIdentity { .. })
        ));
    }
}
