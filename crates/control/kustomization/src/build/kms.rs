//! Requests to key management services, and the engine's credentials for them.

use std::time::Duration;

use fl_http::{HeaderName, Method, Owner, Settings};
use fl_sops::NetworkError;
use fl_sops::kms::{CloudRequest, Endpoints, Network, ServiceCredentials};
use fl_types::Secret;

/// Limit of a response, which holds a key or a token.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests over HTTP, from a thread that may block.
#[derive(Debug)]
pub(super) struct HttpNetwork(pub(super) Owner);

impl Network for HttpNetwork {
    fn send(&self, call: &CloudRequest) -> Result<(u16, Secret<Vec<u8>>), NetworkError> {
        let handle = tokio::runtime::Handle::try_current().map_err(|e| NetworkError(e.to_string()))?;
        let response = handle.block_on(async {
            let settings = Settings { timeout: REQUEST_TIMEOUT, ..Settings::new(self.0.clone()) };
            let client = fl_http::Client::new(settings)?;
            let method = if call.method == "GET" { Method::GET } else { Method::POST };
            let mut request = fl_http::Request::new(method, &call.url)?.body(call.body.expose().clone());
            for (name, value) in &call.headers {
                request = request.header(HeaderName::from_static(name), value.expose())?;
            }
            // A redirect would send tokens to another host.
            let response = client.send_direct(request).await?;
            let status = response.status().as_u16();
            Ok::<_, fl_http::Error>((status, response.bytes(MAX_RESPONSE_BYTES).await?))
        });
        let (status, body) = response.map_err(|e| NetworkError(e.to_string()))?;
        Ok((status, Secret::new(body.to_vec())))
    }

    fn now(&self) -> i64 {
        jiff::Timestamp::now().as_second()
    }
}

/// The engine's own credentials for key services and the endpoints that its operator configured. Used for keys that the
/// decryption Secret has no credentials for; each credential is bound to the addresses it may be sent to.
#[derive(Clone, Debug, Default)]
pub struct EngineKeyServices {
    pub(super) credentials: ServiceCredentials,
    pub(super) endpoints: Endpoints,
}

impl EngineKeyServices {
    /// From the variables of an environment: `VAULT_TOKEN` and `VAULT_ADDR`, `AWS_ACCESS_KEY_ID` and its companions.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        EngineKeyServices {
            credentials: ServiceCredentials::from_variables(&variable),
            endpoints: Endpoints::from_variables(&variable),
        }
    }
}
