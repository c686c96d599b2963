//! Credentials from the data of a Secret, by Flux's rules.

use std::collections::BTreeMap;

use fl_http::{ClientCertificate, Credentials};
use fl_types::Secret;

use crate::{Address, Scheme};

/// What a repository is opened with.
#[derive(Clone, Debug)]
pub enum Auth {
    Http { credentials: Credentials, ca: Option<Vec<u8>>, client_certificate: Option<ClientCertificate> },
    Ssh { user: String, identity: Secret<Vec<u8>>, passphrase: Option<Secret<String>>, known_hosts: String },
}

/// A Secret that cannot be used. The texts follow `failed to configure authentication options: `.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthError {
    #[error("invalid '{0}' auth option: 'password' requires 'username' to be set")]
    PasswordAlone(&'static str),
    #[error("invalid 'ssh' auth option: '{0}' is required")]
    Missing(&'static str),
    #[error("invalid 'ssh' auth option: '{0}' is not text")]
    NotText(&'static str),
}

impl Auth {
    /// No credentials at all.
    pub fn none() -> Self {
        Auth::Http { credentials: Credentials::None, ca: None, client_certificate: None }
    }

    /// From the data of a Secret (empty when there is none) and what the address itself carries.
    pub fn from_secret(address: &Address, data: &BTreeMap<String, Vec<u8>>) -> Result<Self, AuthError> {
        let bytes = |key: &str| data.get(key).filter(|v| !v.is_empty());
        let text = |key: &str| bytes(key).map(|v| String::from_utf8_lossy(v).into_owned());
        if address.scheme == Scheme::Ssh {
            let identity = bytes("identity").ok_or(AuthError::Missing("identity"))?;
            let known_hosts = bytes("known_hosts").ok_or(AuthError::Missing("known_hosts"))?;
            return Ok(Auth::Ssh {
                user: address.user.clone().unwrap_or_else(|| "git".to_owned()),
                identity: Secret::new(identity.clone()),
                passphrase: text("password").map(Secret::new),
                known_hosts: String::from_utf8(known_hosts.clone())
                    .map_err(|_| AuthError::NotText("known_hosts"))?,
            });
        }
        let ca = bytes("ca.crt").or_else(|| bytes("caFile")).cloned();
        let client_certificate = match (bytes("tls.crt"), bytes("tls.key")) {
            (Some(chain), Some(key)) => {
                Some(ClientCertificate { chain: chain.clone(), key: Secret::new(key.clone()) })
            }
            _ => None,
        };
        let bearer = data.get("bearerToken").map(|t| String::from_utf8_lossy(t).into_owned());
        let (mut username, mut password) = match bearer {
            Some(_) => (None, None),
            None => (text("username"), text("password").map(Secret::new)),
        };
        username = username.or_else(|| address.user.clone());
        password = password.or_else(|| address.password.clone());
        if username.is_none() && password.is_some() {
            return Err(AuthError::PasswordAlone(address.scheme.as_str()));
        }
        let credentials = match (username, bearer) {
            (Some(username), _) => Credentials::Basic {
                username,
                password: password.unwrap_or_else(|| Secret::new(String::new())),
            },
            (None, Some(token)) if !token.is_empty() => Credentials::Bearer(Secret::new(token)),
            _ => Credentials::None,
        };
        Ok(Auth::Http { credentials, ca, client_certificate })
    }

    /// The same certificates with other credentials, for a token that was exchanged.
    #[must_use]
    pub fn with_credentials(self, new: Credentials) -> Self {
        match self {
            Auth::Http { ca, client_certificate, .. } => {
                Auth::Http { credentials: new, ca, client_certificate }
            }
            ssh => ssh,
        }
    }

    /// The same certificates without any credentials, for another server.
    pub(crate) fn anonymous(&self) -> Self {
        match self {
            Auth::Http { ca, client_certificate: _, .. } => {
                Auth::Http { credentials: Credentials::None, ca: ca.clone(), client_certificate: None }
            }
            Auth::Ssh { .. } => Self::none(),
        }
    }

    /// Whether the SSH key needs a passphrase that the Secret does not have.
    pub fn lacks_passphrase(&self) -> bool {
        matches!(self, Auth::Ssh { identity, passphrase: None, .. } if crate::ssh::is_encrypted(identity.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str, data: &[(&str, &str)]) -> Result<Auth, AuthError> {
        let data = data.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect();
        Auth::from_secret(&Address::parse(url).unwrap(), &data)
    }

    fn credentials(auth: Auth) -> Credentials {
        match auth {
            Auth::Http { credentials, .. } => credentials,
            Auth::Ssh { .. } => panic!("SSH"),
        }
    }

    #[test]
    fn basic_bearer_and_address() {
        let basic = credentials(read("https://h/x", &[("username", "u"), ("password", "p")]).unwrap());
        assert!(
            matches!(basic, Credentials::Basic { username, password } if username == "u" && password.expose() == "p")
        );
        let half = credentials(read("https://h/x", &[("username", "u")]).unwrap());
        assert!(matches!(half, Credentials::Basic { password, .. } if password.expose().is_empty()));
        let bearer = credentials(read("https://h/x", &[("bearerToken", "t"), ("username", "u")]).unwrap());
        assert!(matches!(bearer, Credentials::Bearer(t) if t.expose() == "t"));
        let address = credentials(read("https://a:b@h/x", &[]).unwrap());
        assert!(
            matches!(address, Credentials::Basic { username, password } if username == "a" && password.expose() == "b")
        );
        assert_eq!(
            read("https://h/x", &[("password", "p")]).unwrap_err().to_string(),
            "invalid 'https' auth option: 'password' requires 'username' to be set"
        );
    }

    #[test]
    fn ssh_needs_a_key_and_known_hosts() {
        let error = |data: &[(&str, &str)]| read("ssh://h/x", data).unwrap_err().to_string();
        assert_eq!(error(&[]), "invalid 'ssh' auth option: 'identity' is required");
        assert_eq!(error(&[("identity", "k")]), "invalid 'ssh' auth option: 'known_hosts' is required");
        let auth = read("ssh://h/x", &[("identity", "k"), ("known_hosts", "h ssh-rsa AA")]).unwrap();
        assert!(matches!(auth, Auth::Ssh { user, passphrase: None, .. } if user == "git"));
    }
}
