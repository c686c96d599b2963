//! A bucket of any provider.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use fl_bucket_index::{IndexError, Key, Page};
use fl_cloud::CloudRequest;
use fl_cloud::aws::AwsKeys;
use fl_cloud::azure::{AzureIdentity, SharedKey};
use fl_cloud::google::GoogleCredentials;
use fl_http::{Client, ClientCertificate, HeaderName, Method, Owner, Proxy, Request, Response, Settings};
use fl_types::Secret;

use crate::Error;
use crate::azure::Azure;
use crate::download::{self, Budget, Object};
use crate::google::Google;
use crate::s3::S3;

/// Bytes of an error response.
const MAX_ERROR_BYTES: u64 = 64 << 10;
/// Pages of a listing; stores put a thousand objects on one.
const MAX_PAGES: usize = 100_000;
/// Pages in a row without an object.
const MAX_EMPTY_PAGES: usize = 1000;
/// Bytes of a listing that are read at once.
const CHUNK_BYTES: usize = 16 << 10;
/// Attempts of a request with a transient error, and the delay after the first.
const MAX_ATTEMPTS: u32 = 4;
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Whose store it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// S3, or whatever speaks like it.
    S3,
    Google,
    Azure,
}

/// Credentials for a bucket.
#[derive(Clone, Debug)]
pub enum Login {
    Anonymous,
    Aws(AwsKeys),
    /// Keys for a while, from a token service that knows users of a directory.
    Ldap {
        endpoint: String,
        username: String,
        password: Secret<String>,
        ca: Option<Vec<u8>>,
        client_certificate: Option<ClientCertificate>,
    },
    Google(GoogleCredentials),
    Azure(AzureIdentity),
    AzureKey(SharedKey),
    /// The query that Azure calls a shared access signature.
    AzureSas(Secret<String>),
}

/// How a bucket is reached.
#[derive(Clone, Debug)]
pub struct BucketOptions {
    /// On whose behalf it is read.
    pub owner: Owner,
    pub provider: Provider,
    pub bucket: String,
    /// Host and port; for Azure an address.
    pub endpoint: String,
    /// Speak plain HTTP.
    pub insecure: bool,
    /// Empty when it is to be found out.
    pub region: String,
    pub login: Login,
    pub ca: Option<Vec<u8>>,
    pub client_certificate: Option<ClientCertificate>,
    pub proxy: Option<Proxy>,
    pub timeout: Duration,
}

impl BucketOptions {
    pub fn new(owner: Owner, provider: Provider, endpoint: &str, bucket: &str) -> Self {
        Self {
            owner,
            provider,
            bucket: bucket.to_owned(),
            endpoint: endpoint.to_owned(),
            insecure: false,
            region: String::new(),
            login: Login::Anonymous,
            ca: None,
            client_certificate: None,
            proxy: None,
            timeout: Duration::from_secs(60),
        }
    }
}

/// A request to a bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask<'a> {
    Exists,
    List { prefix: &'a str, after: Option<&'a str> },
    Object(&'a Key),
}

#[derive(Debug)]
enum Store {
    S3(S3),
    Google(Google),
    Azure(Azure),
}

/// A bucket.
#[derive(Debug)]
pub struct Bucket {
    client: Client,
    store: Store,
}

impl Bucket {
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// The endpoint, certificates or proxy cannot be used.
    pub fn new(options: BucketOptions) -> Result<Self, Error> {
        let client = Client::new(Settings {
            ca: options.ca.clone(),
            client_certificate: options.client_certificate.clone(),
            proxy: options.proxy.clone(),
            timeout: options.timeout,
            ..Settings::new(options.owner.clone())
        })?;
        let store = match options.provider {
            Provider::S3 => Store::S3(S3::new(options)?),
            Provider::Google => Store::Google(Google::new(options)),
            Provider::Azure => Store::Azure(Azure::new(options)?),
        };
        Ok(Self { client, store })
    }

    /// Whether the bucket is there.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn exists(&self) -> Result<bool, Error> {
        match self.ask(Ask::Exists).await {
            Ok(_) => Ok(true),
            Err(error) => match (&self.store, error.code()) {
                (Store::S3(_), "NoSuchBucket") | (Store::Azure(_), "ContainerNotFound") => Ok(false),
                (Store::Google(_), _) if matches!(error, Error::Refused { status: 404, .. }) => Ok(false),
                (Store::Azure(_), "AuthenticationFailed") => Err(Error::Login(format!(
                    "the specified bucket name may be incorrect, nonexistent, or the caller might lack sufficient permissions to access it: {error}"
                ))),
                _ => Err(error),
            },
        }
    }

    /// Visits all keys that begin with `prefix`, with their etags.
    ///
    /// # Errors
    /// No answer, a refusal, a response that is not a listing or does not end, or an error of `visit`.
    pub async fn list(
        &self,
        prefix: &str,
        visit: &mut (dyn FnMut(&str, &str) -> Result<(), IndexError> + Send),
    ) -> Result<(), Error> {
        let mut after: Option<String> = None;
        // Only sums of the tokens are kept.
        let (mut seen, mut empty) = (HashSet::new(), 0);
        for _ in 0..MAX_PAGES {
            let response = self.ask(Ask::List { prefix, after: after.as_deref() }).await?;
            let (objects, next) = self.page(response).await?;
            empty = if objects.is_empty() { empty + 1 } else { 0 };
            for object in &objects {
                visit(&object.key, &object.etag)?;
            }
            let Some(next) = next else { return Ok(()) };
            if !seen.insert(sum(&next)) || empty > MAX_EMPTY_PAGES {
                return Err(Error::Loop);
            }
            after = Some(next);
        }
        Err(Error::Pages(MAX_PAGES))
    }

    async fn page(
        &self,
        mut response: Response,
    ) -> Result<(Vec<fl_bucket_index::Listed>, Option<String>), Error> {
        let mut page = Page::new(match &self.store {
            Store::S3(s3) => s3.dialect(),
            Store::Google(_) => fl_bucket_index::Dialect::Google,
            Store::Azure(_) => fl_bucket_index::Dialect::Azure,
        });
        // A server may send byte by byte; the parser gets more at once.
        let mut piece = Vec::with_capacity(CHUNK_BYTES);
        while let Some(bytes) = response.piece().await? {
            piece.extend_from_slice(&bytes);
            if piece.len() >= CHUNK_BYTES {
                page.feed(&piece)?;
                piece.clear();
            }
        }
        page.feed(&piece)?;
        Ok(page.finish()?)
    }

    /// An object, its bytes taken from `budget`; `None` when it is not there.
    ///
    /// # Errors
    /// No answer, a refusal, or too many bytes.
    pub async fn get(&self, key: &Key, budget: &Arc<Budget>) -> Result<Option<Object>, Error> {
        let mut result = self.get_once(key, budget).await;
        // A body that breaks off is requested once more; the bytes that were read stay counted.
        if matches!(&result, Err(error) if error.is_transient()) {
            result = self.get_once(key, budget).await;
        }
        match result {
            Ok(object) => Ok(Some(object)),
            Err(error) => match (&self.store, error.code()) {
                (Store::S3(_), "NoSuchKey") | (Store::Azure(_), "BlobNotFound") => Ok(None),
                (Store::Google(_), _) if matches!(error, Error::Refused { status: 404, .. }) => Ok(None),
                _ => Err(error),
            },
        }
    }

    async fn get_once(&self, key: &Key, budget: &Arc<Budget>) -> Result<Object, Error> {
        match &self.store {
            Store::Google(google) => google.get(self, key, budget).await,
            _ => self.get_plain(key, budget).await,
        }
    }

    async fn get_plain(&self, key: &Key, budget: &Arc<Budget>) -> Result<Object, Error> {
        let response = self.ask(Ask::Object(key)).await?;
        let etag = response.headers().get(fl_http::header::ETAG).and_then(|v| v.to_str().ok());
        let etag = etag.ok_or(Error::Incomplete("etag"))?;
        let etag = match &self.store {
            // In Azure's revisions etags have their quotes.
            Store::Azure(_) => etag,
            _ => {
                let etag = etag.strip_prefix('"').unwrap_or(etag);
                etag.strip_suffix('"').unwrap_or(etag)
            }
        };
        let etag = etag.to_owned();
        download::read(response, etag, budget).await
    }

    /// Sends a request; transient errors are retried.
    async fn ask(&self, ask: Ask<'_>) -> Result<Response, Error> {
        let mut moved = false;
        let mut delay = RETRY_INTERVAL;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let result = match self.call(ask).await {
                Ok(call) => self.send(&call, matches!(ask, Ask::Object(_))).await,
                Err(error) => Err(error),
            };
            let error = match result {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if let (Store::S3(s3), Error::Refused { region, .. }) = (&self.store, &error)
                && !std::mem::replace(&mut moved, true)
                && s3.move_to(region)
            {
                continue;
            }
            if !error.is_transient() || attempt >= MAX_ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(delay).await;
            delay *= 2;
        }
    }

    async fn call(&self, ask: Ask<'_>) -> Result<CloudRequest, Error> {
        match &self.store {
            Store::S3(s3) => s3.call(self, ask).await,
            Store::Google(google) => google.call(self, ask).await,
            Store::Azure(azure) => azure.call(self, ask).await,
        }
    }

    /// Sends a request once; any status but a good one is a refusal.
    pub(crate) async fn send(&self, call: &CloudRequest, object: bool) -> Result<Response, Error> {
        send(&self.client, call, object).await
    }
}

pub(crate) async fn send(client: &Client, call: &CloudRequest, object: bool) -> Result<Response, Error> {
    let method = match call.method {
        "HEAD" => Method::HEAD,
        "POST" => Method::POST,
        _ => Method::GET,
    };
    let mut request = Request::new(method, &call.url)?.body(call.body.expose().clone());
    for (name, value) in &call.headers {
        request = request.header(HeaderName::from_static(name), value.expose())?;
    }
    // A redirect would send the signature to another host.
    let response = client.send_direct(request).await?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let elsewhere = header("x-amz-bucket-region");
    // Answers to HEAD have no body; Azure and MinIO say it in a header then.
    let code = header("x-ms-error-code").or_else(|| header("x-minio-error-code"));
    let text = header("x-minio-error-desc").map(|t| t.trim_matches('"').to_owned());
    let body = response.bytes(MAX_ERROR_BYTES).await.unwrap_or_default();
    let mut error = Error::refused(status, &body, object);
    if let Error::Refused { region, code: known, message, .. } = &mut error {
        if region.is_empty() {
            *region = elsewhere.unwrap_or_default();
        }
        if let Some(code) = code {
            *known = code;
        }
        if let Some(text) = text {
            *message = text;
        }
    }
    Err(error)
}

/// The body of an answer to a small question.
pub(crate) async fn answer(client: &Client, call: &CloudRequest) -> Result<(u16, Secret<Vec<u8>>), Error> {
    match send(client, call, false).await {
        Ok(response) => {
            let status = response.status().as_u16();
            Ok((status, Secret::new(response.bytes(1 << 20).await?.to_vec())))
        }
        Err(Error::Refused { status, .. }) => Ok((status, Secret::default())),
        Err(error) => Err(error),
    }
}

fn sum(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Bucket {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
