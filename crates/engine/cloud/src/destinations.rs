//! Which addresses a credential may be sent to.
//!
//! A credential from a Secret of an object is its owner's: it goes where the object says. A credential of the engine itself (its
//! environment, the identity of its machine) goes to the provider it belongs to and to addresses its operator configured, whatever an
//! object or a file asks for. The check is part of attaching a credential to a request, so no caller can leave it out.

use fl_types::Secret;

/// Where a credential may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// Wherever its owner says: the credential comes from a Secret of the object that names the address.
    Any,
    /// A credential of the engine: these addresses only.
    Only(Vec<Destination>),
}

/// An address, or the addresses of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Scheme, host and port of an address that the operator configured, and the path it begins with.
    Address { origin: Origin, path: String },
    /// Hosts of one AWS service, by HTTPS.
    AwsService(String),
    /// Hosts below a domain that the provider alone serves, by HTTPS.
    Domain(&'static str),
}

/// Scheme, host and port of an address, in one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub scheme: String,
    pub host: String,
    pub port: u16,
}

impl Origin {
    /// Reads the beginning of an absolute URL, and the path behind it without its query.
    pub fn parse(url: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // A user name before the host is how one host is made to look like another.
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
    /// An address that the operator configured; none when it is not an absolute URL of http or https.
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
    /// When a request to this address must not carry the credential; `what` names it.
    pub fn check(&self, what: &str, url: &str) -> Result<(), String> {
        let Destinations::Only(known) = self else { return Ok(()) };
        let allowed =
            Origin::parse(url).is_some_and(|(origin, path)| known.iter().any(|d| d.includes(&origin, path)));
        if allowed {
            return Ok(());
        }
        let to = Origin::parse(url).map_or_else(
            || "an address that cannot be read".to_owned(),
            |(o, _)| format!("'{}://{}:{}'", o.scheme, o.host, o.port),
        );
        Err(format!(
            "{what} of the engine is not sent to {to}: it is for addresses that the engine's operator configured; name a Secret with credentials of your own"
        ))
    }
}

/// Whether a host is one of a service of AWS: `kms.eu-west-1.amazonaws.com`, `bucket.s3.dualstack.eu-west-1.amazonaws.com`. Other hosts
/// below the same domain belong to customers: functions, gateways, machines.
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

/// A bearer token or a token of Vault, and where it may be sent.
#[derive(Clone, Debug)]
pub struct Token {
    value: Secret<String>,
    destinations: Destinations,
}

impl Token {
    pub fn new(value: Secret<String>, destinations: Destinations) -> Self {
        Token { value, destinations }
    }

    /// The value, for a request to this address.
    ///
    /// # Errors
    /// When it must not be sent there; `what` names it.
    pub fn for_address(&self, what: &str, url: &str) -> Result<&Secret<String>, String> {
        self.destinations.check(what, url)?;
        Ok(&self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_keys_of_the_engine_go_to_hosts_of_the_service_only() {
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
    fn a_configured_address_includes_what_is_below_its_path() {
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
            assert!(error.starts_with("the token of the engine is not sent to "), "{error}");
        }
        assert_eq!(only("http://127.0.0.1:8200").check("the token", "http://127.0.0.1:8200/v1"), Ok(()));
        for unusable in ["", "vault.example", "unix:///run/vault", "ftp://vault.example"] {
            assert_eq!(Destination::address(unusable), None, "{unusable}");
        }
    }

    #[test]
    fn domains_of_a_provider_are_reached_by_https_only() {
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
