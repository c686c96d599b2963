//! AWS KMS: requests signed with Signature Version 4.

use std::collections::BTreeMap;

use fl_types::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{Call, Endpoints, Fields, Network, decoded, send};
use crate::Error;

/// Keys of an account.
#[derive(Clone, Debug)]
pub struct AwsCredentials {
    /// The public half.
    pub access_key_id: String,
    /// The other one.
    pub secret_access_key: Secret<String>,
    /// For keys that end.
    pub session_token: Secret<String>,
}

impl AwsCredentials {
    /// Reads the entry `sops.aws-kms` of a Secret.
    ///
    /// # Errors
    /// When it is no YAML, or has no keys.
    pub fn from_yaml(bytes: &[u8]) -> Result<Self, Error> {
        let fields = Fields::read(bytes, "the AWS credentials cannot be read")?;
        let credentials = AwsCredentials {
            access_key_id: fields.text("aws_access_key_id"),
            secret_access_key: fields.secret("aws_secret_access_key"),
            session_token: fields.secret("aws_session_token"),
        };
        if credentials.access_key_id.is_empty() || credentials.secret_access_key.expose().is_empty() {
            return Err(Error::Key(
                "the AWS credentials have no aws_access_key_id or no aws_secret_access_key",
            ));
        }
        Ok(credentials)
    }

    pub(super) fn decrypt(
        &self,
        network: &dyn Network,
        endpoints: &Endpoints,
        (arn, role): (&str, &str),
        context: &BTreeMap<String, String>,
        encrypted: &str,
    ) -> Result<Secret<Vec<u8>>, String> {
        let (partition, region) = place(arn).ok_or("the ARN of the key is not valid")?;
        let host = |service: &str| {
            let end = if partition == "aws-cn" { "amazonaws.com.cn" } else { "amazonaws.com" };
            format!("https://{service}.{region}.{end}")
        };
        let assumed;
        let mut credentials = self;
        if !role.is_empty() {
            let sts = endpoints.aws_sts.clone().unwrap_or_else(|| host("sts"));
            assumed = self.assume(network, &sts, region, role)?;
            credentials = &assumed;
        }
        let url = endpoints.aws_kms.clone().unwrap_or_else(|| host("kms"));
        let mut body = json!({"CiphertextBlob": encrypted, "KeyId": arn});
        if !context.is_empty() {
            body["EncryptionContext"] = json!(context);
        }
        let mut call = Call::post(
            format!("{}/", url.trim_end_matches('/')),
            "application/x-amz-json-1.1",
            body.to_string(),
        );
        call.headers.push(("x-amz-target", Secret::new("TrentService.Decrypt".to_owned())));
        credentials.sign(&mut call, region, "kms", network.now())?;
        let answer = send(network, &call, "AWS KMS")?;
        decoded(answer["Plaintext"].as_str(), "AWS KMS")
    }

    /// Takes on a role.
    fn assume(&self, network: &dyn Network, sts: &str, region: &str, role: &str) -> Result<Self, String> {
        let fields = [
            ("Action", "AssumeRole"),
            ("RoleArn", role),
            ("RoleSessionName", "sops@fluorite"),
            ("Version", "2011-06-15"),
        ];
        let mut call = Call::form(format!("{}/", sts.trim_end_matches('/')), &fields);
        self.sign(&mut call, region, "sts", network.now())?;
        let (status, body) = network.send(&call)?;
        if status != 200 {
            return Err(format!(
                "the role '{role}' cannot be taken on: AWS STS answered with status {status}"
            ));
        }
        let text = String::from_utf8_lossy(body.expose()).into_owned();
        let field = |name: &str| {
            let inside = text.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>"))?.0;
            Some(inside.replace("&amp;", "&"))
        };
        let missing = || "the answer of AWS STS holds no credentials".to_owned();
        Ok(AwsCredentials {
            access_key_id: field("AccessKeyId").ok_or_else(missing)?,
            secret_access_key: Secret::new(field("SecretAccessKey").ok_or_else(missing)?),
            session_token: Secret::new(field("SessionToken").ok_or_else(missing)?),
        })
    }

    /// Adds the headers of a signature to a request without a query.
    fn sign(&self, call: &mut Call, region: &str, service: &str, now: i64) -> Result<(), String> {
        let rest = call.url.split_once("://").map_or("", |(_, rest)| rest);
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let time = timestamp(now);
        let day = &time[..8];
        call.headers.push(("x-amz-date", Secret::new(time.clone())));
        if !self.session_token.expose().is_empty() {
            call.headers.push(("x-amz-security-token", self.session_token.clone()));
        }
        let mut signed: Vec<(&str, &str)> =
            call.headers.iter().map(|(name, value)| (*name, value.expose().as_str())).collect();
        signed.push(("host", host));
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let request = format!(
            "{}\n/{path}\n\n{lines}\n{names}\n{}",
            call.method,
            hex(&Sha256::digest(call.body.expose()))
        );
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(request)));
        let mut key = format!("AWS4{}", self.secret_access_key.expose()).into_bytes();
        for part in [day, region, service, "aws4_request"] {
            key = keyed(&key, part)?;
        }
        let signature = hex(&keyed(&key, &text)?);
        let id = &self.access_key_id;
        let header =
            format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
        call.headers.push(("authorization", Secret::new(header)));
        Ok(())
    }
}

fn keyed(key: &[u8], text: &str) -> Result<Vec<u8>, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| "the AWS key cannot sign".to_owned())?;
    mac.update(text.as_bytes());
    Ok(mac.finalize().into_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Partition and region of `arn:aws:kms:region:account:key/id`. The region becomes part of a host's name, so it is held to what
/// regions are called.
fn place(arn: &str) -> Option<(&str, &str)> {
    let mut parts = arn.splitn(6, ':');
    let (start, partition, service) = (parts.next()?, parts.next()?, parts.next()?);
    let (region, account, name) = (parts.next()?, parts.next()?, parts.next()?);
    let word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let key =
        name.strip_prefix("key/").or_else(|| name.strip_prefix("alias/")).is_some_and(|n| !n.is_empty());
    let number = !account.is_empty() && account.chars().all(|c| c.is_ascii_digit());
    (start == "arn"
        && partition.starts_with("aws")
        && word(partition)
        && service == "kms"
        && word(region)
        && number
        && key)
        .then_some((partition, region))
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

    fn example(token: &str) -> AwsCredentials {
        AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned()),
            session_token: Secret::new(token.to_owned()),
        }
    }

    fn signature(call: &Call) -> &str {
        let header = call.headers.iter().find(|(name, _)| *name == "authorization").expect("signed");
        header.1.expose().rsplit_once("Signature=").expect("a signature").1
    }

    /// `post-vanilla` and `post-x-www-form-urlencoded` of AWS' test suite.
    #[test]
    fn signatures_of_the_test_suite() {
        let url = "https://example.amazonaws.com/".to_owned();
        let now = 1_440_938_160;
        assert_eq!(timestamp(now), "20150830T123600Z");
        assert_eq!(timestamp(951_827_696), "20000229T123456Z");
        let mut call =
            Call { method: "POST", url: url.clone(), headers: Vec::new(), body: Secret::new(Vec::new()) };
        example("").sign(&mut call, "us-east-1", "service", now).expect("signs");
        assert_eq!(signature(&call), "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
        let mut call = Call::post(url, "application/x-www-form-urlencoded", "Param1=value1".to_owned());
        example("").sign(&mut call, "us-east-1", "service", now).expect("signs");
        assert_eq!(signature(&call), "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
    }

    /// Threat: a file names the key, and with it the host; nothing but a region may come of it.
    #[test]
    fn regions_are_words() {
        assert_eq!(place("arn:aws:kms:eu-west-1:123:key/1"), Some(("aws", "eu-west-1")));
        assert_eq!(
            place("arn:aws-us-gov:kms:us-gov-west-1:1:alias/a:b"),
            Some(("aws-us-gov", "us-gov-west-1"))
        );
        for bad in [
            "arn:aws:kms:evil.example/#:1:key/1",
            "arn:aws:kms::1:key/1",
            "arn:aws:s3:eu-west-1:1:key/1",
            "arn:aws:kms:eu-west-1:1:key/",
            "arn:aws:kms:eu-west-1:x:key/1",
            "arn:awsx@y:kms:eu-west-1:1:key/1",
            "nothing",
        ] {
            assert_eq!(place(bad), None, "{bad}");
        }
    }

    #[test]
    fn credentials() {
        let good = AwsCredentials::from_yaml(b"aws_access_key_id: a\naws_secret_access_key: canary\n")
            .expect("good");
        assert!(good.access_key_id == "a" && !format!("{good:?}").contains("canary"));
        for bad in ["", "- x", "aws_access_key_id: a", "{"] {
            assert!(AwsCredentials::from_yaml(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
