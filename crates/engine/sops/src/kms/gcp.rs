//! Google's KMS.

use fl_cloud::google::GoogleCredentials;
use fl_types::Secret;
use serde_json::json;

use super::{CloudRequest, Destinations, Endpoints, Network, Token, access_token, decoded, send};
use crate::{Error, KeyError};

const SCOPES: &str =
    "https://www.googleapis.com/auth/cloud-platform https://www.googleapis.com/auth/cloudkms";

/// Google credentials.
#[derive(Clone, Debug)]
pub struct GcpCredentials(GoogleCredentials);

impl GcpCredentials {
    /// Parses the entry `sops.gcp-kms` of a Secret.
    ///
    /// # Errors
    /// Invalid JSON, or an unsupported type of credentials.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        GoogleCredentials::from_json(bytes).map(Self).map_err(|e| Error::Key(e.0))
    }

    fn token(&self, network: &dyn Network) -> Result<Token, KeyError> {
        let request = self.0.token_request(SCOPES, network.now())?;
        let answer = send(network, &request, "Google's token service")?;
        // These credentials always come from a Secret of the object.
        Ok(access_token(&answer, "Google's token service", Destinations::Any)?)
    }

    pub(super) fn decrypt(
        &self,
        network: &dyn Network,
        endpoints: &Endpoints,
        resource: &str,
        encrypted: &str,
    ) -> Result<Secret<Vec<u8>>, KeyError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        let steps = resource.split('/').collect::<Vec<_>>();
        let named =
            matches!(steps.as_slice(), ["projects", _, "locations", _, "keyRings", _, "cryptoKeys", _, ..]);
        if !named || !resource.chars().all(plain) || steps.iter().any(|s| s.is_empty() || *s == "..") {
            return Err(KeyError::InvalidReference("the resource of the key"));
        }
        let token = self.token(network)?;
        let base = endpoints.gcp_kms.as_deref().unwrap_or("https://cloudkms.googleapis.com");
        let url = format!("{}/v1/{resource}:decrypt", base.trim_end_matches('/'));
        let request = CloudRequest::json(url, &json!({"ciphertext": encrypted}))
            .bearer("the Google identity", &token)?;
        let answer = send(network, &request, "Google's KMS")?;
        decoded(answer["plaintext"].as_str(), "Google's KMS")
    }
}
