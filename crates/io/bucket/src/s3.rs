//! S3, and what speaks like it.

use std::sync::{Mutex, PoisonError};

use fl_bucket_index::{Dialect, Refusal, S3Credentials};
use fl_cloud::aws::{AwsKeys, Scope};
use fl_cloud::{CloudRequest, Destinations, percent};
use fl_http::{Client, Settings};

use crate::Error;
use crate::bucket::{Ask, Bucket, BucketOptions, Login, now, send};

/// The default region.
const USUAL_REGION: &str = "us-east-1";

#[derive(Debug)]
pub(crate) struct S3 {
    options: BucketOptions,
    scheme: &'static str,
    /// Host, and port where it is not the usual one.
    host: String,
    /// Found out, where the options do not say it.
    region: Mutex<Option<String>>,
    /// Keys of a token service.
    keys: Mutex<Option<AwsKeys>>,
}

impl S3 {
    pub(crate) fn new(options: BucketOptions) -> Result<Self, Error> {
        let bad = |text: String| Error::Settings(text);
        let scheme = if options.insecure { "http" } else { "https" };
        if let Some(odd) = unfit_for_a_host(&options.endpoint) {
            let address = format!("{scheme}://{}", options.endpoint);
            return Err(bad(format!(
                "parse {address:?}: invalid character {:?} in host name",
                odd.to_string()
            )));
        }
        let (host, path) = options.endpoint.split_once('/').unwrap_or((&options.endpoint, ""));
        if !path.is_empty() {
            return Err(bad("Endpoint url cannot have fully qualified paths.".to_owned()));
        }
        let usual = if options.insecure { ":80" } else { ":443" };
        // As it is sent, and so as it is signed.
        let host = host.strip_suffix(usual).unwrap_or(host).to_ascii_lowercase();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        let readable = url::Url::parse(&format!("{scheme}://{host}/")).is_ok_and(|u| u.has_host());
        if name.is_empty() || !host.chars().all(plain) || !readable {
            return Err(bad(format!(
                "Endpoint: {} does not follow ip address or domain name standards.",
                options.endpoint
            )));
        }
        let known = Some(options.region.clone()).filter(|r| !r.is_empty()).or_else(|| region_of(&host));
        Ok(Self { scheme, host, region: Mutex::new(known), keys: Mutex::default(), options })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        if self.host == "storage.googleapis.com" { Dialect::S3Markers } else { Dialect::S3 }
    }

    /// Takes over a region that the store named; whether that is news.
    pub(crate) fn move_to(&self, region: &str) -> bool {
        let mut known = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        if region.is_empty() || !self.options.region.is_empty() || known.as_deref() == Some(region) {
            return false;
        }
        *known = Some(region.to_owned());
        true
    }

    pub(crate) async fn call(&self, bucket: &Bucket, ask: Ask<'_>) -> Result<CloudRequest, Error> {
        check_name(&self.options.bucket)?;
        let keys = self.keys().await?;
        let region = self.region(bucket, keys.as_ref()).await?;
        let base = self.base(&region);
        let mut call = match ask {
            Ask::Exists => CloudRequest { method: "HEAD", ..CloudRequest::get(base) },
            Ask::Object(key) => CloudRequest::get(format!("{base}{}", key.encoded())),
            Ask::List { prefix, after } => {
                let prefix = percent(prefix);
                // In the order that signatures want.
                let query = if self.dialect() == Dialect::S3Markers {
                    let marker = after.map(|a| format!("&marker={}", percent(a))).unwrap_or_default();
                    format!("delimiter=&encoding-type=url{marker}&max-keys=1000&prefix={prefix}")
                } else {
                    let token = after.map(|a| format!("continuation-token={}&", percent(a)));
                    let token = token.unwrap_or_default();
                    format!(
                        "{token}delimiter=&encoding-type=url&fetch-owner=true&list-type=2&prefix={prefix}"
                    )
                };
                CloudRequest::get(format!("{base}?{query}"))
            }
        };
        sign(keys.as_ref(), &mut call, &region)?;
        Ok(call)
    }

    /// The address of the bucket. Stores that want its name in the host are known; all others take it in the path.
    fn base(&self, region: &str) -> String {
        let (scheme, bucket) = (self.scheme, &self.options.bucket);
        let amazon = is_amazon(&self.host);
        let mut host = self.host.clone();
        if amazon && !host.starts_with("s3-fips") && !host.contains(".vpce.") && word(region) {
            let end = if region.starts_with("cn-") { ".cn" } else { "" };
            host = format!("s3.dualstack.{region}.amazonaws.com{end}");
        }
        let named = amazon || host == "storage.googleapis.com" || host.ends_with("aliyuncs.com");
        // A dot in the name would not fit the certificate.
        if named && !(scheme == "https" && bucket.contains('.')) {
            format!("{scheme}://{bucket}.{host}/")
        } else {
            format!("{scheme}://{host}/{bucket}/")
        }
    }

    /// Where the bucket is: signatures are good for one region.
    async fn region(&self, bucket: &Bucket, keys: Option<&AwsKeys>) -> Result<String, Error> {
        let known = self.region.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(region) = known {
            return Ok(region);
        }
        // Asked for without keys too: its answer tells more of what is wrong than that to a question about the bucket's existence,
        // which has no body.
        let mut call = CloudRequest::get(format!("{}?location=", self.base(USUAL_REGION)));
        sign(keys, &mut call, USUAL_REGION)?;
        let region = match bucket.send(&call, false).await {
            Ok(answer) => {
                // A store that knows no such question may answer anything.
                let body = answer.bytes(64 << 10).await.unwrap_or_default();
                match Refusal::read_region(&body).unwrap_or_default().as_str() {
                    "" => USUAL_REGION.to_owned(),
                    "EU" => "eu-west-1".to_owned(),
                    region => region.to_owned(),
                }
            }
            // Not everybody may ask. The question itself will tell.
            Err(Error::Refused { code, region, .. })
                if matches!(
                    code.as_str(),
                    "AccessDenied" | "InvalidRegion" | "AuthorizationHeaderMalformed" | "NotImplemented"
                ) =>
            {
                if region.is_empty() {
                    USUAL_REGION.to_owned()
                } else {
                    region
                }
            }
            Err(error) => return Err(error),
        };
        *self.region.lock().unwrap_or_else(PoisonError::into_inner) = Some(region.clone());
        Ok(region)
    }

    async fn keys(&self) -> Result<Option<AwsKeys>, Error> {
        match &self.options.login {
            Login::Aws(keys) => Ok(Some(keys.clone())),
            Login::Ldap { endpoint, username, password, ca, client_certificate } => {
                let known = self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if known.is_some() {
                    return Ok(known);
                }
                let client = Client::new(Settings {
                    ca: ca.clone(),
                    client_certificate: client_certificate.clone(),
                    proxy: self.options.proxy.clone(),
                    timeout: self.options.timeout,
                    ..Settings::new(self.options.owner.clone())
                })?;
                let call = CloudRequest::form(
                    endpoint.clone(),
                    &[
                        ("Action", "AssumeRoleWithLDAPIdentity"),
                        ("LDAPPassword", password.expose()),
                        ("LDAPUsername", username),
                        ("Version", "2011-06-15"),
                    ],
                );
                let answer = send(&client, &call, false).await?;
                let body = answer.bytes(64 << 10).await?;
                let given = S3Credentials::read(&body).ok_or(Error::Incomplete("credentials"))?;
                let keys = AwsKeys {
                    access_key_id: given.access_key,
                    secret_access_key: given.secret_key,
                    session_token: given.session_token,
                    destinations: Destinations::Any,
                };
                *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys.clone());
                Ok(Some(keys))
            }
            _ => Ok(None),
        }
    }
}

/// The first character of an address without a scheme that Go does not read in a host.
fn unfit_for_a_host(address: &str) -> Option<char> {
    let host = address.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    host.chars().find(|c| matches!(c, ' ' | '\\' | '^' | '`' | '{' | '|' | '}'))
}

fn sign(keys: Option<&AwsKeys>, call: &mut CloudRequest, region: &str) -> Result<(), Error> {
    match keys {
        Some(keys) => keys
            .sign(call, Scope { region, service: "s3", now: now() })
            .map_err(|e| Error::Login(e.to_string())),
        None => Ok(()),
    }
}

/// The name becomes part of an address, so it is held to what buckets are called.
fn check_name(name: &str) -> Result<(), Error> {
    let bad = |text: &str| Err(Error::Settings(text.to_owned()));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if name.trim().is_empty() {
        return bad("Bucket name cannot be empty");
    }
    if name.len() < 3 {
        return bad("Bucket name cannot be shorter than 3 characters");
    }
    if name.len() > 63 {
        return bad("Bucket name cannot be longer than 63 characters");
    }
    let numbers = name.split('.').all(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    if numbers && name.split('.').count() == 4 {
        return bad("Bucket name cannot be an ip address");
    }
    let broken = ["..", ".-", "-."].iter().any(|pair| name.contains(pair));
    if broken || !name.chars().all(plain) || !end(name.chars().next()) || !end(name.chars().last()) {
        return bad("Bucket name contains invalid characters");
    }
    Ok(())
}

fn word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn is_amazon(host: &str) -> bool {
    matches!(host, "s3.amazonaws.com" | "s3-external-1.amazonaws.com") || region_of(host).is_some()
}

/// The region that a host of AWS' object store names.
fn region_of(host: &str) -> Option<String> {
    let name = host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
    if host == "s3-external-1.amazonaws.com" {
        return None;
    }
    if let Some(region) = name.strip_suffix(".vpce") {
        return region.rsplit_once(".s3.").map(|(_, region)| region.to_owned()).filter(|r| word(r));
    }
    ["s3-fips.dualstack.", "s3-fips.", "s3.dualstack.", "s3-", "s3."]
        .iter()
        .find_map(|begin| name.strip_prefix(begin))
        .filter(|region| word(region))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Provider;

    fn s3(endpoint: &str, bucket: &str, insecure: bool) -> Result<S3, Error> {
        S3::new(BucketOptions {
            insecure,
            ..BucketOptions::new(fl_http::Owner::engine(), Provider::S3, endpoint, bucket)
        })
    }

    #[test]
    fn addresses() {
        let base = |endpoint: &str, bucket: &str, insecure: bool, region: &str| {
            s3(endpoint, bucket, insecure).expect("an endpoint").base(region)
        };
        assert_eq!(base("minio.example:9000", "apps", true, "x"), "http://minio.example:9000/apps/");
        assert_eq!(base("minio.example:443", "apps", false, "x"), "https://minio.example/apps/");
        assert_eq!(base("[::1]:9000", "apps", true, "x"), "http://[::1]:9000/apps/");
        assert_eq!(
            base("s3.amazonaws.com", "apps", false, "eu-west-1"),
            "https://apps.s3.dualstack.eu-west-1.amazonaws.com/"
        );
        assert_eq!(
            base("s3.amazonaws.com", "my.apps", false, "eu-west-1"),
            "https://s3.dualstack.eu-west-1.amazonaws.com/my.apps/"
        );
        assert_eq!(
            base("storage.googleapis.com", "apps", false, "x"),
            "https://apps.storage.googleapis.com/"
        );
    }

    #[test]
    fn regions_in_hosts() {
        for (host, region) in [
            ("s3.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("s3-us-west-2.amazonaws.com", Some("us-west-2")),
            ("s3.dualstack.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("s3-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("s3.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("bucket.vpce-1a.s3.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("s3.amazonaws.com", None),
            ("s3.evil.example", None),
            ("x.elb.amazonaws.com", None),
        ] {
            assert_eq!(region_of(host).as_deref(), region, "{host}");
        }
    }

    /// Neither an endpoint nor a name may become more than a host and a step of a path.
    #[test]
    fn endpoints_and_names_are_checked() {
        for bad in ["http://x", "x/y", "", "a b", "user@host", "host?x", "host#x", ":9000", "h%2e"] {
            assert!(s3(bad, "apps", true).is_err(), "{bad}");
        }
        // The message of minio's client, which lets Go parse the address first.
        assert_eq!(
            s3("a b", "apps", true).err().map(|e| e.to_string()).as_deref(),
            Some("parse \"http://a b\": invalid character \" \" in host name")
        );
        for bad in
            ["", "ab", "a/b/c", "..", "...", "a..b", "-ab", "ab-", "1.2.3.4", "a?b", "a%2fb", &"x".repeat(64)]
        {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_name("my-apps.prod_1").is_ok());
    }
}
