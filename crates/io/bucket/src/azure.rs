//! Azure's blobs.

use std::sync::{Mutex, PoisonError};

use fl_cloud::{CloudRequest, Token, access_token, json_response, percent};
use fl_types::Secret;
use url::Url;

use crate::Error;
use crate::bucket::{Ask, Bucket, BucketOptions, Login, answer, now};

const VERSION: &str = "2021-12-02";
/// The resource of tokens.
const RESOURCE: &str = "https://storage.azure.com";
/// The address of the token service of managed identities.
const METADATA: &str = "http://169.254.169.254";
const WHO: &str = "Azure's token service";
const IDENTITY: &str = "the Azure identity";

#[derive(Debug)]
pub(crate) struct Azure {
    options: BucketOptions,
    /// The address of the container, without a query.
    base: String,
    /// Of the endpoint and the signature it may come with; decoded.
    query: Vec<(String, Secret<String>)>,
    token: Mutex<Option<Token>>,
}

impl Azure {
    pub(crate) fn new(options: BucketOptions) -> Result<Self, Error> {
        let bad = |problem: &str| {
            Error::Settings(format!("unable to parse endpoint URL '{}': {problem}", options.endpoint))
        };
        let mut url = Url::parse(&options.endpoint).map_err(|e| bad(&e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(bad("it is no address of http or https"));
        }
        if matches!(options.login, Login::Azure(_)) && url.scheme() == "http" {
            return Err(bad(
                "authenticated requests are not permitted for non TLS protected (https) endpoints",
            ));
        }
        let mut query: Vec<(String, Secret<String>)> = Vec::new();
        if let Login::AzureSas(signature) = &options.login {
            let text = signature.expose().trim_start_matches('?');
            let pairs = url::form_urlencoded::parse(text.as_bytes());
            query.extend(pairs.map(|(k, v)| (k.into_owned(), Secret::new(v.into_owned()))));
        }
        for (name, value) in url.query_pairs() {
            if !query.iter().any(|(known, _)| *known == name) {
                query.push((name.into_owned(), Secret::new(value.into_owned())));
            }
        }
        url.set_query(None);
        url.set_fragment(None);
        let base = format!("{}/{}", url.as_str().trim_end_matches('/'), percent(&options.bucket));
        Ok(Self { options, base, query, token: Mutex::default() })
    }

    pub(crate) async fn call(&self, bucket: &Bucket, ask: Ask<'_>) -> Result<CloudRequest, Error> {
        let mut query: Vec<(&str, &str)> =
            self.query.iter().map(|(k, v)| (k.as_str(), v.expose().as_str())).collect();
        let mut base = self.base.clone();
        match ask {
            Ask::Exists => query.extend([("comp", "list"), ("maxresults", "1"), ("restype", "container")]),
            Ask::List { prefix, after } => {
                query.extend([("comp", "list"), ("restype", "container")]);
                if !prefix.is_empty() {
                    query.push(("prefix", prefix));
                }
                query.extend(after.map(|a| ("marker", a)));
            }
            Ask::Object(key) => {
                base.push('/');
                base.push_str(&key.encoded());
            }
        }
        let pairs: Vec<String> =
            query.iter().map(|(k, v)| format!("{}={}", percent(k), percent(v))).collect();
        let url = if pairs.is_empty() { base.clone() } else { format!("{base}?{}", pairs.join("&")) };
        let mut call = CloudRequest::get(url);
        let date = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        call.headers.push(("x-ms-date", Secret::new(date)));
        call.headers.push(("x-ms-version", Secret::new(VERSION.to_owned())));
        match &self.options.login {
            Login::AzureKey(key) => {
                let path = Url::parse(&base).map(|u| u.path().to_owned()).unwrap_or_default();
                key.sign(&mut call, &path, &query).map_err(|e| Error::Login(e.to_string()))?;
                Ok(call)
            }
            Login::Azure(identity) => {
                // Before a token is asked for: no request is made that could not be used.
                identity
                    .destinations()
                    .check(IDENTITY, &call.url)
                    .map_err(|e| Error::Login(e.to_string()))?;
                let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(token) = known {
                    return call.bearer(IDENTITY, &token).map_err(|e| Error::Login(e.to_string()));
                }
                let ask = identity
                    .token_request(RESOURCE, METADATA, now())
                    .map_err(|e| Error::Login(e.to_string()))?;
                let (status, body) = answer(bucket.client(), &ask).await?;
                let token = json_response(status, &body, WHO)
                    .and_then(|a| access_token(&a, WHO, identity.destinations()))
                    .map_err(|e| Error::Login(e.to_string()))?;
                *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
                call.bearer(IDENTITY, &token).map_err(|e| Error::Login(e.to_string()))
            }
            _ => Ok(call),
        }
    }
}
