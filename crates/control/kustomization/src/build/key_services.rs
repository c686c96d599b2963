//! The network and the environment of key services.

use std::time::Duration;

use fl_http::{HeaderName, Method, Owner, Settings};
use fl_sops::service::{AwsCredentials, Call, Endpoints, Network, ServiceCredentials};
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

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// What the Secret does not say, the environment of the process may.
pub(super) fn with_environment(given: &ServiceCredentials) -> ServiceCredentials {
    let mut all = given.clone();
    all.vault_token = all.vault_token.or_else(|| variable("VAULT_TOKEN").map(Secret::new));
    all.aws = all.aws.or_else(|| {
        Some(AwsCredentials {
            access_key_id: variable("AWS_ACCESS_KEY_ID")?,
            secret_access_key: Secret::new(variable("AWS_SECRET_ACCESS_KEY")?),
            session_token: Secret::new(variable("AWS_SESSION_TOKEN").unwrap_or_default()),
        })
    });
    all
}

/// The variables of AWS' own tools.
pub(super) fn endpoints() -> Endpoints {
    let aws = |service: &str| {
        variable(&format!("AWS_ENDPOINT_URL_{service}")).or_else(|| variable("AWS_ENDPOINT_URL"))
    };
    Endpoints { aws_kms: aws("KMS"), aws_sts: aws("STS"), ..Endpoints::default() }
}
