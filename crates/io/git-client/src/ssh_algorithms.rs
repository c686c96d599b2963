//! Which algorithms a connection over SSH may use.

use std::borrow::Cow;

use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::{Preferred, kex};

/// A choice of algorithms, the most preferred first. An empty list leaves the choice to the library and to `known_hosts`.
#[derive(Clone, Debug, Default)]
pub struct SshAlgorithms {
    exchanges: Vec<kex::Name>,
    host_keys: Vec<Algorithm>,
}

/// A name that stands for no algorithm here.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{name:?} is no {what} this engine has; it has {known}")]
pub struct SshAlgorithmError {
    name: String,
    what: &'static str,
    known: String,
}

const HOST_KEYS: [&str; 6] = [
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
];

fn host_key(name: &str) -> Option<Algorithm> {
    Some(match name {
        "ssh-ed25519" => Algorithm::Ed25519,
        "ecdsa-sha2-nistp256" => Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
        "ecdsa-sha2-nistp384" => Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
        "ecdsa-sha2-nistp521" => Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
        "rsa-sha2-512" => Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
        "rsa-sha2-256" => Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
        _ => return None,
    })
}

/// Exchanges that hide something; the library also knows one that does not.
fn exchanges() -> impl Iterator<Item = kex::Name> {
    kex::ALL_KEX_ALGORITHMS.iter().map(|name| **name).filter(|name| *name != kex::NONE)
}

impl SshAlgorithms {
    /// Reads lists of names as SSH spells them.
    ///
    /// # Errors
    /// A name this engine has no algorithm for.
    pub fn new(exchange_names: &[String], host_key_names: &[String]) -> Result<Self, SshAlgorithmError> {
        let find_exchange = |name: &String| {
            exchanges().find(|e| e.as_ref() == name).ok_or_else(|| SshAlgorithmError {
                name: name.clone(),
                what: "key exchange",
                known: exchanges().map(|e| e.as_ref().to_owned()).collect::<Vec<_>>().join(", "),
            })
        };
        let find_host_key = |name: &String| {
            host_key(name).ok_or_else(|| SshAlgorithmError {
                name: name.clone(),
                what: "algorithm of host keys",
                known: HOST_KEYS.join(", "),
            })
        };
        Ok(SshAlgorithms {
            exchanges: exchange_names.iter().map(find_exchange).collect::<Result<_, _>>()?,
            host_keys: host_key_names.iter().map(find_host_key).collect::<Result<_, _>>()?,
        })
    }

    /// What is offered to a host whose keys of these kinds are known; none when no kind is left.
    pub(crate) fn preferred(&self, known_kinds: &[&str]) -> Option<Preferred> {
        let known = algorithms(known_kinds);
        let host_keys = match self.host_keys.is_empty() {
            true => known,
            false => self.host_keys.iter().filter(|wanted| known.contains(wanted)).cloned().collect(),
        };
        if host_keys.is_empty() {
            return None;
        }
        let mut preferred = Preferred { key: Cow::Owned(host_keys), ..Preferred::DEFAULT };
        if !self.exchanges.is_empty() {
            // The names of extensions travel in the same list; without the strict one a connection can be tampered with.
            let extensions = [kex::EXTENSION_SUPPORT_AS_CLIENT, kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT];
            preferred.kex = Cow::Owned(self.exchanges.iter().copied().chain(extensions).collect());
        }
        Some(preferred)
    }
}

/// The server is asked for a host key of a known kind; it would present another otherwise.
fn algorithms(kinds: &[&str]) -> Vec<Algorithm> {
    let mut all = Vec::new();
    for kind in kinds {
        match *kind {
            "ssh-rsa" => all.extend(["rsa-sha2-512", "rsa-sha2-256"].into_iter().filter_map(host_key)),
            other => all.extend(host_key(other)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn a_choice_keeps_its_order_and_stays_within_the_known_hosts() {
        let chosen = SshAlgorithms::new(
            &list(&["ecdh-sha2-nistp384", "curve25519-sha256"]),
            &list(&["rsa-sha2-256", "ssh-ed25519", "ecdsa-sha2-nistp256"]),
        )
        .unwrap();
        let preferred = chosen.preferred(&["ssh-ed25519", "ssh-rsa"]).unwrap();
        assert_eq!(preferred.key[..], [host_key("rsa-sha2-256").unwrap(), Algorithm::Ed25519]);
        assert_eq!(preferred.kex[..2], [kex::ECDH_SHA2_NISTP384, kex::CURVE25519]);
        assert!(preferred.kex.contains(&kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT));
        assert!(chosen.preferred(&["ecdsa-sha2-nistp521"]).is_none(), "nothing is left to offer");
        assert!(SshAlgorithms::default().preferred(&[]).is_none(), "an unknown host");
    }

    #[test]
    fn names_are_checked() {
        let error = SshAlgorithms::new(&list(&["none"]), &[]).unwrap_err().to_string();
        assert!(
            error.starts_with("\"none\" is no key exchange this engine has; it has mlkem768x25519-sha256")
        );
        let error = SshAlgorithms::new(&[], &list(&["ssh-dss"])).unwrap_err().to_string();
        assert!(error.starts_with("\"ssh-dss\" is no algorithm of host keys this engine has"));
    }
}
