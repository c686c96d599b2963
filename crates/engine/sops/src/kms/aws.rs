//! AWS KMS: requests signed with Signature Version 4.

use std::collections::BTreeMap;

use fl_cloud::CloudError;
pub(super) use fl_cloud::aws::AwsKeys;
use fl_cloud::aws::Scope;
use fl_types::Secret;
use serde_json::json;

use super::{CloudRequest, Destinations, Endpoints, Fields, Network, decoded, send};
use crate::{Error, KeyError};

/// AWS access keys.
#[derive(Clone, Debug)]
pub struct AwsCredentials(AwsKeys);

impl From<AwsKeys> for AwsCredentials {
    fn from(keys: AwsKeys) -> Self {
        AwsCredentials(keys)
    }
}

impl AwsCredentials {
    /// Parses the entry `sops.aws-kms` of a Secret.
    ///
    /// # Errors
    /// Invalid YAML, or no keys.
    pub fn from_yaml(bytes: &[u8]) -> Result<Self, Error> {
        let fields = Fields::read(
            bytes,
            "failed to unmarshal AWS credentials file: error unmarshaling JSON: it is no map of texts",
        )?;
        let keys = AwsKeys {
            access_key_id: fields.text("aws_access_key_id"),
            secret_access_key: fields.secret("aws_secret_access_key"),
            session_token: fields.secret("aws_session_token"),
            destinations: Destinations::Any,
        };
        if keys.access_key_id.is_empty() || keys.secret_access_key.expose().is_empty() {
            return Err(Error::Key(
                "the AWS credentials have no aws_access_key_id or no aws_secret_access_key",
            ));
        }
        Ok(AwsCredentials(keys))
    }

    pub(super) fn decrypt(
        &self,
        network: &dyn Network,
        endpoints: &Endpoints,
        (arn, role): (&str, &str),
        context: &BTreeMap<String, String>,
        encrypted: &str,
    ) -> Result<Secret<Vec<u8>>, KeyError> {
        let (partition, region) =
            partition_and_region(arn).ok_or(KeyError::InvalidReference("the ARN of the key"))?;
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
        let mut request = CloudRequest::post(
            format!("{}/", url.trim_end_matches('/')),
            "application/x-amz-json-1.1",
            body.to_string(),
        );
        request.headers.push(("x-amz-target", Secret::new("TrentService.Decrypt".to_owned())));
        credentials.sign(&mut request, region, "kms", network.now())?;
        let answer = send(network, &request, "AWS KMS")?;
        decoded(answer["Plaintext"].as_str(), "AWS KMS")
    }

    /// Assumes a role.
    fn assume(&self, network: &dyn Network, sts: &str, region: &str, role: &str) -> Result<Self, KeyError> {
        let fields = [
            ("Action", "AssumeRole"),
            ("RoleArn", role),
            ("RoleSessionName", "sops@fluorite"),
            ("Version", "2011-06-15"),
        ];
        let mut request = CloudRequest::form(format!("{}/", sts.trim_end_matches('/')), &fields);
        self.sign(&mut request, region, "sts", network.now())?;
        let (status, body) = network.send(&request)?;
        if status != 200 {
            return Err(KeyError::AssumeRole { role: role.to_owned(), status });
        }
        let text = String::from_utf8_lossy(body.expose()).into_owned();
        let field = |name: &str| {
            let inside = text.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>"))?.0;
            Some(inside.replace("&amp;", "&"))
        };
        Ok(AwsCredentials(AwsKeys {
            access_key_id: field("AccessKeyId").ok_or(KeyError::NoRoleCredentials)?,
            secret_access_key: Secret::new(field("SecretAccessKey").ok_or(KeyError::NoRoleCredentials)?),
            session_token: Secret::new(field("SessionToken").ok_or(KeyError::NoRoleCredentials)?),
            // A role assumed with the engine's keys is restricted like those keys.
            destinations: self.0.destinations.clone(),
        }))
    }

    fn sign(
        &self,
        request: &mut CloudRequest,
        region: &str,
        service: &str,
        now: i64,
    ) -> Result<(), CloudError> {
        self.0.sign(request, Scope { region, service, now })
    }
}

/// Partition and region of `arn:aws:kms:region:account:key/id`. The region becomes part of a host name, so it
/// is validated.
fn partition_and_region(arn: &str) -> Option<(&str, &str)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat: the file names the key and so the host; only valid regions are allowed.
    #[test]
    fn invalid_regions_are_rejected() {
        assert_eq!(partition_and_region("arn:aws:kms:eu-west-1:123:key/1"), Some(("aws", "eu-west-1")));
        assert_eq!(
            partition_and_region("arn:aws-us-gov:kms:us-gov-west-1:1:alias/a:b"),
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
            assert_eq!(partition_and_region(bad), None, "{bad}");
        }
    }

    #[test]
    fn credentials() {
        let good = AwsCredentials::from_yaml(b"aws_access_key_id: a\naws_secret_access_key: canary\n")
            .expect("good");
        assert!(good.0.access_key_id == "a" && !format!("{good:?}").contains("canary"));
        for bad in ["", "- x", "aws_access_key_id: a", "{"] {
            assert!(AwsCredentials::from_yaml(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
