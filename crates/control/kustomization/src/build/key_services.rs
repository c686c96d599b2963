//! The network and the environment of key services.

use std::time::Duration;

use fl_http::{HeaderName, Method, Owner, Settings};
use fl_sops::service::{Call, Endpoints, Network, ServiceCredentials};
use fl_types::Secret;

/// An answer holds a key or a token.
const LARGEST: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// Requests over HTTP, from a thread that may block.
#[derive(Debug)]
pub(super) struct Http(pub(super) Owner);

impl Network for Http {
    fn send(&self, call: &Call) -> Result<(u16, Secret<Vec<u8>>), String> {
        let handle = tokio::runtime::Handle::try_current().map_err(|e| e.to_string())?;
        let answer = handle.block_on(async {
            let settings = Settings { timeout: PATIENCE, ..Settings::new(self.0.clone()) };
            let client = fl_http::Client::new(settings)?;
            let method = if call.method == "GET" { Method::GET } else { Method::POST };
            let mut request = fl_http::Request::new(method, &call.url)?.body(call.body.expose().clone());
            for (name, value) in &call.headers {
                request = request.header(HeaderName::from_static(name), value.expose())?;
            }
            // A redirect would carry tokens to a host nobody named.
            let answer = client.send_direct(request).await?;
            let status = answer.status().as_u16();
            Ok::<_, fl_http::Error>((status, answer.bytes(LARGEST).await?))
        });
        let (status, body) = answer.map_err(|e| e.to_string())?;
        Ok((status, Secret::new(body.to_vec())))
    }

    fn now(&self) -> i64 {
        jiff::Timestamp::now().as_second()
    }
}

/// The engine's own credentials for key services and the endpoints its operator configured. Used for keys that the decryption Secret has
/// no credentials for; each credential knows which addresses it may be sent to.
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
