//! Google's store, through its JSON API.

use std::sync::{Arc, Mutex, PoisonError};

use fl_bucket_index::Key;
use fl_cloud::{CloudRequest, Destinations, Token, access_token, json_response, percent};

use crate::Error;
use crate::bucket::{Ask, Bucket, BucketOptions, Login, answer, now};
use crate::download::{self, Budget, Object};

const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_only";
const WHO: &str = "Google's token service";
const IDENTITY: &str = "the Google identity";

#[derive(Debug)]
pub(crate) struct Google {
    options: BucketOptions,
    /// Good for an hour, which is longer than a client lives.
    token: Mutex<Option<Token>>,
}

impl Google {
    pub(crate) fn new(options: BucketOptions) -> Self {
        Self { options, token: Mutex::default() }
    }

    fn base(&self) -> String {
        let scheme = if self.options.insecure { "http" } else { "https" };
        let host = &self.options.endpoint;
        let host = host.strip_prefix("https://").or_else(|| host.strip_prefix("http://")).unwrap_or(host);
        format!("{scheme}://{}/storage/v1/b/{}", host.trim_end_matches('/'), percent(&self.options.bucket))
    }

    pub(crate) async fn call(&self, bucket: &Bucket, ask: Ask<'_>) -> Result<CloudRequest, Error> {
        let base = self.base();
        let url = match ask {
            Ask::Exists => format!("{base}?fields=name"),
            Ask::Object(key) => format!("{base}/o/{}?fields=etag%2Cgeneration", percent(key.key())),
            Ask::List { prefix, after } => {
                let token = after.map(|a| format!("&pageToken={}", percent(a))).unwrap_or_default();
                let fields = percent("items(name,etag),nextPageToken");
                format!("{base}/o?fields={fields}&maxResults=1000{token}&prefix={}", percent(prefix))
            }
        };
        self.with_token(bucket, CloudRequest::get(url)).await
    }

    async fn with_token(&self, bucket: &Bucket, call: CloudRequest) -> Result<CloudRequest, Error> {
        let Login::Google(credentials) = &self.options.login else { return Ok(call) };
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(token) = known {
            return call.bearer(IDENTITY, &token).map_err(|e| Error::Login(e.to_string()));
        }
        let ask = credentials.token_request(SCOPE, now()).map_err(|e| Error::Login(e.to_string()))?;
        let (status, body) = answer(bucket.client(), &ask).await?;
        // Google's credentials always come from a Secret of the object.
        let token = json_response(status, &body, WHO)
            .and_then(|a| access_token(&a, WHO, Destinations::Any))
            .map_err(|e| Error::Login(e.to_string()))?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        call.bearer(IDENTITY, &token).map_err(|e| Error::Login(e.to_string()))
    }

    /// First what the object is, then exactly that: its content has another etag than the object.
    pub(crate) async fn get(
        &self,
        bucket: &Bucket,
        key: &Key,
        budget: &Arc<Budget>,
    ) -> Result<Object, Error> {
        let call = self.call(bucket, Ask::Object(key)).await?;
        let about = bucket.send(&call, true).await?.bytes(64 << 10).await?;
        let about: serde_json::Value =
            serde_json::from_slice(&about).map_err(|_| Error::Incomplete("generation"))?;
        let text = |name: &str| about[name].as_str().map(str::to_owned);
        let etag = text("etag").ok_or(Error::Incomplete("etag"))?;
        let generation = text("generation").ok_or(Error::Incomplete("generation"))?;
        let url =
            format!("{}/o/{}?alt=media&generation={}", self.base(), percent(key.key()), percent(&generation));
        let call = self.with_token(bucket, CloudRequest::get(url)).await?;
        download::read(bucket.send(&call, true).await?, etag, budget).await
    }
}
