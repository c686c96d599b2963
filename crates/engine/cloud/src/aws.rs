//! Signature Version 4 of AWS, which many other services have taken over.

use fl_types::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::{Call, Destination, Destinations, hex};

/// Keys of an account.
#[derive(Clone, Debug)]
pub struct AwsKeys {
    /// The public half.
    pub access_key_id: String,
    /// The other one.
    pub secret_access_key: Secret<String>,
    /// For keys that end.
    pub session_token: Secret<String>,
    /// Where requests may be signed for.
    pub destinations: Destinations,
}

/// Where and when a signature is good.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub region: &'a str,
    pub service: &'a str,
    /// Seconds since 1970.
    pub now: i64,
}

/// Services that the engine signs requests for with its own keys.
const SERVICES: [&str; 3] = ["kms", "s3", "sts"];

impl AwsKeys {
    /// The engine's own keys, from the variables of AWS' tools. They are good for hosts of AWS and for the endpoints that
    /// `AWS_ENDPOINT_URL` and its forms for one service name.
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

    /// Adds the headers of a signature. Path and query of the address must be percent-encoded already, the query in order of
    /// its names: they are signed as they stand.
    ///
    /// # Errors
    /// When the key cannot sign, or must not sign for this address.
    pub fn sign(&self, call: &mut Call, scope: Scope<'_>) -> Result<(), String> {
        self.destinations.check("the AWS identity", &call.url)?;
        let rest = call.url.split_once("://").map_or("", |(_, rest)| rest);
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        let payload = hex(&Sha256::digest(call.body.expose()));
        let time = timestamp(scope.now);
        let day = &time[..8];
        call.headers.push(("x-amz-date", Secret::new(time.clone())));
        // Object stores want the sum of the body as a header too.
        if scope.service == "s3" {
            call.headers.push(("x-amz-content-sha256", Secret::new(payload.clone())));
        }
        if !self.session_token.expose().is_empty() {
            call.headers.push(("x-amz-security-token", self.session_token.clone()));
        }
        let mut signed: Vec<(&str, &str)> =
            call.headers.iter().map(|(name, value)| (*name, value.expose().as_str())).collect();
        signed.push(("host", host));
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let request = format!("{}\n/{path}\n{query}\n{lines}\n{names}\n{payload}", call.method);
        let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{place}\n{}", hex(&Sha256::digest(request)));
        let mut key = format!("AWS4{}", self.secret_access_key.expose()).into_bytes();
        for part in [day, scope.region, scope.service, "aws4_request"] {
            key = keyed(&key, part)?;
        }
        let signature = hex(&keyed(&key, &text)?);
        let id = &self.access_key_id;
        let header =
            format!("AWS4-HMAC-SHA256 Credential={id}/{place}, SignedHeaders={names}, Signature={signature}");
        call.headers.push(("authorization", Secret::new(header)));
        Ok(())
    }
}

fn keyed(key: &[u8], text: &str) -> Result<Vec<u8>, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| "the AWS key cannot sign".to_owned())?;
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

    fn signature(call: &Call) -> &str {
        let header = call.headers.iter().find(|(name, _)| *name == "authorization").expect("signed");
        header.1.expose().rsplit_once("Signature=").expect("a signature").1
    }

    /// `post-vanilla`, `post-x-www-form-urlencoded` and `get-vanilla-query-order-key-case` of AWS' test suite.
    #[test]
    fn signatures_of_the_test_suite() {
        let url = "https://example.amazonaws.com/".to_owned();
        let now = 1_440_938_160;
        let scope = Scope { region: "us-east-1", service: "service", now };
        assert_eq!(timestamp(now), "20150830T123600Z");
        assert_eq!(timestamp(951_827_696), "20000229T123456Z");
        let mut call =
            Call { method: "POST", url: url.clone(), headers: Vec::new(), body: Secret::new(Vec::new()) };
        example().sign(&mut call, scope).expect("signs");
        assert_eq!(signature(&call), "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        let mut call = Call::post(url, "application/x-www-form-urlencoded", "Param1=value1".to_owned());
        example().sign(&mut call, scope).expect("signs");
        assert_eq!(signature(&call), "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
        let mut call = Call::get("https://example.amazonaws.com/?Param1=value1&Param2=value2".to_owned());
        example().sign(&mut call, scope).expect("signs");
        assert_eq!(signature(&call), "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
    }

    /// Listing a bucket: the example of the documentation of S3.
    #[test]
    fn a_listing_is_signed_with_its_query() {
        let mut call = Call::get("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J".to_owned());
        let scope = Scope { region: "us-east-1", service: "s3", now: 1_369_353_600 };
        let keys = keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        keys.sign(&mut call, scope).expect("signs");
        assert_eq!(signature(&call), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    }
}
