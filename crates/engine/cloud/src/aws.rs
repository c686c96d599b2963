//! AWS Signature Version 4, also used by many other services.

use fl_types::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::{CloudError, CloudRequest, Destination, Destinations, hex};

/// AWS access keys.
#[derive(Clone, Debug)]
pub struct AwsKeys {
    /// Access key ID.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: Secret<String>,
    /// Session token of temporary keys; empty for others.
    pub session_token: Secret<String>,
    /// Addresses that requests may be signed for.
    pub destinations: Destinations,
}

/// Scope of a signature.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub region: &'a str,
    pub service: &'a str,
    /// Unix time in seconds.
    pub now: i64,
}

/// Services that the engine's own keys may sign requests for.
const SERVICES: [&str; 3] = ["kms", "s3", "sts"];

impl AwsKeys {
    /// The engine's own keys, from the environment variables of the AWS SDK. They may be used for hosts of
    /// AWS and for the endpoints in `AWS_ENDPOINT_URL` and its service-specific variants.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut known: Vec<Destination> =
            SERVICES.iter().map(|s| Destination::AwsService((*s).to_owned())).collect();
        let names = SERVICES.iter().map(|s| format!("AWS_ENDPOINT_URL_{}", s.to_uppercase()));
        let names = names.chain(["AWS_ENDPOINT_URL".to_owned()]);
        known.extend(names.filter_map(|name| set(&name)).filter_map(|url| Destination::address(&url)));
        Some(AwsKeys {
            access_key_id: set("AWS_ACCESS_KEY_ID")?,
            secret_access_key: Secret::new(set("AWS_SECRET_ACCESS_KEY")?),
            session_token: Secret::new(set("AWS_SESSION_TOKEN").unwrap_or_default()),
            destinations: Destinations::Only(known),
        })
    }

    /// Adds the headers of a signature. Path and query of the URL must be percent-encoded and the query
    /// sorted by name: they are signed as is.
    ///
    /// # Errors
    /// The key cannot sign, or must not sign for this address.
    pub fn sign(&self, request: &mut CloudRequest, scope: Scope<'_>) -> Result<(), CloudError> {
        self.destinations.check("the AWS identity", &request.url)?;
        let rest = request.url.split_once("://").map_or("", |(_, rest)| rest);
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        let payload = hex(&Sha256::digest(request.body.expose()));
        let time = timestamp(scope.now);
        let day = &time[..8];
        request.headers.push(("x-amz-date", Secret::new(time.clone())));
        // Object stores also require the hash of the body as a header.
        if scope.service == "s3" {
            request.headers.push(("x-amz-content-sha256", Secret::new(payload.clone())));
        }
        if !self.session_token.expose().is_empty() {
            request.headers.push(("x-amz-security-token", self.session_token.clone()));
        }
        let mut signed: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (*name, value.expose().as_str())).collect();
        signed.push(("host", host));
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let canonical = format!("{}\n/{path}\n{query}\n{lines}\n{names}\n{payload}", request.method);
        let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{place}\n{}", hex(&Sha256::digest(canonical)));
        let mut key = format!("AWS4{}", self.secret_access_key.expose()).into_bytes();
        for part in [day, scope.region, scope.service, "aws4_request"] {
            key = hmac_sha256(&key, part)?;
        }
        let signature = hex(&hmac_sha256(&key, &text)?);
        let id = &self.access_key_id;
        let header =
            format!("AWS4-HMAC-SHA256 Credential={id}/{place}, SignedHeaders={names}, Signature={signature}");
        request.headers.push(("authorization", Secret::new(header)));
        Ok(())
    }
}

fn hmac_sha256(key: &[u8], text: &str) -> Result<Vec<u8>, CloudError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| CloudError::CannotSign("the AWS key"))?;
    mac.update(text.as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

/// `20150830T123600Z`
fn timestamp(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = fl_types::date_of_days(days);
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(id: &str, secret: &str) -> AwsKeys {
        AwsKeys {
            access_key_id: id.to_owned(),
            secret_access_key: Secret::new(secret.to_owned()),
            session_token: Secret::default(),
            destinations: Destinations::Any,
        }
    }

    fn example() -> AwsKeys {
        keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    }

    fn signature(request: &CloudRequest) -> &str {
        let header = request.headers.iter().find(|(name, _)| *name == "authorization").expect("signed");
        header.1.expose().rsplit_once("Signature=").expect("a signature").1
    }

    /// `post-vanilla`, `post-x-www-form-urlencoded` and `get-vanilla-query-order-key-case` of AWS' test suite.
    #[test]
    fn signatures_match_the_aws_test_suite() {
        let url = "https://example.amazonaws.com/".to_owned();
        let now = 1_440_938_160;
        let scope = Scope { region: "us-east-1", service: "service", now };
        assert_eq!(timestamp(now), "20150830T123600Z");
        assert_eq!(timestamp(951_827_696), "20000229T123456Z");
        let mut request = CloudRequest {
            method: "POST",
            url: url.clone(),
            headers: Vec::new(),
            body: Secret::new(Vec::new()),
        };
        example().sign(&mut request, scope).expect("signs");
        assert_eq!(signature(&request), "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        let mut request =
            CloudRequest::post(url, "application/x-www-form-urlencoded", "Param1=value1".to_owned());
        example().sign(&mut request, scope).expect("signs");
        assert_eq!(signature(&request), "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
        let mut request =
            CloudRequest::get("https://example.amazonaws.com/?Param1=value1&Param2=value2".to_owned());
        example().sign(&mut request, scope).expect("signs");
        assert_eq!(signature(&request), "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
    }

    /// The example for listing a bucket in the S3 documentation.
    #[test]
    fn query_of_a_listing_is_signed() {
        let mut request =
            CloudRequest::get("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J".to_owned());
        let scope = Scope { region: "us-east-1", service: "s3", now: 1_369_353_600 };
        let keys = keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        keys.sign(&mut request, scope).expect("signs");
        assert_eq!(signature(&request), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    }
}
