//! Addresses that a credential may be sent to.
//!
//! A credential from a Secret of an object belongs to the user: it may be sent to the address in the object.
//! A credential of the engine itself (its environment, the identity of its machine) may be sent only to its
//! provider and to addresses configured by the operator, regardless of what an object or a file requests. The
//! check is part of attaching a credential to a request, so that callers cannot skip it.

use fl_types::Secret;

use crate::CloudError;

/// Addresses that a credential may be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// Any address: the credential comes from a Secret of the object that names the address.
    Any,
    /// A credential of the engine: only these addresses.
    Only(Vec<Destination>),
}

/// An address, or the addresses of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Scheme, host and port configured by the operator, and the prefix of the path.
    Address { origin: Origin, path: String },
    /// HTTPS hosts of one AWS service.
    AwsService(String),
    /// HTTPS hosts below a domain that only the provider serves.
    Domain(&'static str),
}

/// Scheme, host and port in normalized form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub scheme: String,
    pub host: String,
    pub port: u16,
}

impl Origin {
    /// Parses the origin of an absolute URL and its path without the query.
    pub fn parse(url: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // A user name before the host can disguise the real host.
        if authority.contains('@') || path.starts_with('\\') {
            return None;
        }
        let usual = match scheme.as_str() {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, usual),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
        if host.is_empty() || !host.chars().all(plain) {
            return None;
        }
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Some((Origin { scheme, host: host.trim_end_matches('.').to_ascii_lowercase(), port }, path))
    }
}

impl Destination {
    /// An address configured by the operator; `None` if it is not an absolute http or https URL.
    pub fn address(url: &str) -> Option<Self> {
        let (origin, path) = Origin::parse(url.trim())?;
        Some(Destination::Address { origin, path: path.trim_end_matches('/').to_owned() })
    }

    fn includes(&self, origin: &Origin, path: &str) -> bool {
        let tls = origin.scheme == "https" && origin.port == 443;
        match self {
            Destination::Address { origin: known, path: begin } => {
                known == origin
                    && path.strip_prefix(begin.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('/'))
            }
            Destination::AwsService(service) => tls && is_aws_service(&origin.host, service),
            Destination::Domain(domain) => {
                tls && origin.host.strip_suffix(domain).is_some_and(|h| h.len() > 1 && h.ends_with('.'))
            }
        }
    }
}

impl Destinations {
    /// # Errors
    /// The credential must not be sent to this address; `what` names the credential.
    pub fn check(&self, what: &str, url: &str) -> Result<(), CloudError> {
        let Destinations::Only(known) = self else { return Ok(()) };
        let allowed =
            Origin::parse(url).is_some_and(|(origin, path)| known.iter().any(|d| d.includes(&origin, path)));
        if allowed {
            return Ok(());
        }
        let address = Origin::parse(url).map_or_else(
            || "an address that cannot be read".to_owned(),
            |(o, _)| format!("'{}://{}:{}'", o.scheme, o.host, o.port),
        );
        Err(CloudError::Destination { credential: what.to_owned(), address })
    }
}

/// Whether a host belongs to an AWS service: `kms.eu-west-1.amazonaws.com`,
/// `bucket.s3.dualstack.eu-west-1.amazonaws.com`. Other hosts below the same domain belong to customers:
/// functions, gateways, machines.
fn is_aws_service(host: &str, service: &str) -> bool {
    let Some(name) = host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))
    else {
        return false;
    };
    let labels: Vec<&str> = name.split('.').collect();
    let of_service = |label: &&str| {
        label.strip_prefix(service).is_some_and(|rest| {
            matches!(rest, "" | "-fips" | "-external-1") || rest.strip_prefix('-').is_some_and(is_region)
        })
    };
    let Some(at) = labels.iter().rposition(of_service) else { return false };
    let behind: Vec<&str> = labels[at + 1..].iter().copied().filter(|l| *l != "dualstack").collect();
    match behind.as_slice() {
        [] => true,
        [region] | [region, "vpce"] => is_region(region),
        _ => false,
    }
}

/// `eu-west-1`, `us-gov-west-1`
fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let word = |p: &&str| !p.is_empty() && p.chars().all(|c| c.is_ascii_lowercase());
    match parts.split_last() {
        Some((number, words)) => {
            words.len() >= 2
                && words.iter().all(word)
                && !number.is_empty()
                && number.chars().all(|c| c.is_ascii_digit())
        }
        None => false,
    }
}

/// A bearer token or Vault token, and the addresses it may be sent to.
#[derive(Clone, Debug)]
pub struct Token {
    value: Secret<String>,
    destinations: Destinations,
}

impl Token {
    pub fn new(value: Secret<String>, destinations: Destinations) -> Self {
        Token { value, destinations }
    }

    /// Returns the value for a request to this address.
    ///
    /// # Errors
    /// The token must not be sent there; `what` names the token.
    pub fn for_address(&self, what: &str, url: &str) -> Result<&Secret<String>, CloudError> {
        self.destinations.check(what, url)?;
        Ok(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_keys_are_sent_only_to_aws_service_hosts() {
        let only = |service: &str| Destinations::Only(vec![Destination::AwsService(service.to_owned())]);
        for (service, good) in [
            ("kms", "https://kms.eu-west-1.amazonaws.com/"),
            ("kms", "https://kms.cn-north-1.amazonaws.com.cn/"),
            ("sts", "https://sts.us-gov-west-1.amazonaws.com/"),
            ("s3", "https://s3.amazonaws.com/bucket"),
            ("s3", "https://my.bucket.s3.eu-west-1.amazonaws.com/?list-type=2"),
            ("s3", "https://s3-eu-west-1.amazonaws.com/b"),
            ("s3", "https://b.s3.dualstack.eu-west-1.amazonaws.com/"),
            ("s3", "https://b.s3-fips.us-east-1.amazonaws.com/"),
            ("s3", "https://vpce-1.s3.eu-west-1.vpce.amazonaws.com/"),
        ] {
            assert_eq!(only(service).check("the key", good), Ok(()), "{good}");
        }
        for bad in [
            "http://s3.amazonaws.com/bucket",
            "https://s3.amazonaws.com:8443/bucket",
            "https://s3.amazonaws.com@evil.example/",
            "https://evil.example\\@s3.amazonaws.com/",
            "https://s3.amazonaws.com.evil.example/",
            "https://s3.x.execute-api.eu-west-1.amazonaws.com/",
            "https://x.execute-api.eu-west-1.amazonaws.com/",
            "https://s3.ec2-1-2-3-4.compute-1.amazonaws.com/",
            "https://kms.eu-west-1.amazonaws.com/",
            "https://127.0.0.1/",
            "s3.amazonaws.com",
        ] {
            assert!(only("s3").check("the key", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn configured_address_includes_paths_below_it() {
        let only = |url: &str| Destinations::Only(Destination::address(url).into_iter().collect());
        let vault = only("https://Vault.example/team/");
        for good in ["https://vault.example:443/team/v1/x", "https://vault.example./team"] {
            assert_eq!(vault.check("the token", good), Ok(()), "{good}");
        }
        for bad in [
            "http://vault.example/team/v1/x",
            "https://vault.example:8200/team/v1/x",
            "https://vault.example/teams/v1/x",
            "https://vault.example/v1/x",
            "https://evil.example/team/v1/x",
            "https://vault.example@evil.example/team/v1",
        ] {
            let error = vault.check("the token", bad).expect_err(bad);
            assert!(error.to_string().starts_with("the token of the engine is not sent to "), "{error}");
        }
        assert_eq!(only("http://127.0.0.1:8200").check("the token", "http://127.0.0.1:8200/v1"), Ok(()));
        for unusable in ["", "vault.example", "unix:///run/vault", "ftp://vault.example"] {
            assert_eq!(Destination::address(unusable), None, "{unusable}");
        }
    }

    #[test]
    fn provider_domains_require_https() {
        let only = Destinations::Only(vec![Destination::Domain("vault.azure.net")]);
        assert_eq!(only.check("the token", "https://v.vault.azure.net/keys"), Ok(()));
        for bad in [
            "http://v.vault.azure.net/",
            "https://vault.azure.net/",
            "https://evilvault.azure.net/",
            "https://v.vault.azure.net.evil.example/",
        ] {
            assert!(only.check("the token", bad).is_err(), "{bad}");
        }
        assert_eq!(Destinations::Any.check("the token", "http://anywhere.example"), Ok(()));
    }
}
