//! Where a repository is: `https://…`, `ssh://user@host:port/path`, or `user@host:path`.

use url::Url;

use crate::Error;

/// How a repository is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
    Ssh,
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Ssh => "ssh",
        }
    }
}

/// A repository's address, taken apart. User and password are data: they go into headers, never onto a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub scheme: Scheme,
    pub host: String,
    pub port: Option<u16>,
    /// As the server gets it: with a leading slash, except for `host:path`, which is relative to the user's home.
    pub path: String,
    pub user: Option<String>,
    pub(crate) password: Option<fl_types::Secret<String>>,
    shown: String,
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.contains(|c: char| c.is_control()) {
            return Err(Error::Address("it has control characters".to_owned()));
        }
        if !text.contains("://") {
            return Self::parse_short(text);
        }
        if text.split_once("://").is_some_and(|(_, rest)| rest.starts_with('/')) {
            // The parser of browsers would take the first part of the path for the host.
            return Err(Error::Address("it has no host".to_owned()));
        }
        let url = Url::parse(text).map_err(|e| Error::Address(e.to_string()))?;
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "ssh" => Scheme::Ssh,
            other => return Err(Error::Address(format!("the scheme `{other}` is not http, https or ssh"))),
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        let decoded = |text: &str| percent_decode(text);
        let user = Some(decoded(url.username())).filter(|u| !u.is_empty());
        let address = Self {
            scheme,
            host,
            port: url.port(),
            path: if scheme == Scheme::Ssh { decoded(url.path()) } else { url.path().to_owned() },
            user,
            password: url.password().map(|p| decoded(p).into()),
            shown: shown(text, &url),
        };
        address.checked()
    }

    /// The short form of SSH, `[user@]host:path`.
    fn parse_short(text: &str) -> Result<Self, Error> {
        let (left, path) = text.split_once(':').filter(|(left, _)| !left.contains('/')).ok_or_else(|| {
            Error::Address("it is neither a URL nor of the form `user@host:path`".to_owned())
        })?;
        if path.starts_with(':') {
            // `ext::command` and its kind name a helper program.
            return Err(Error::Address("transports by a helper program are not known".to_owned()));
        }
        let (user, host) = match left.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, left),
        };
        let address = Self {
            scheme: Scheme::Ssh,
            host: host.to_owned(),
            port: None,
            path: path.to_owned(),
            user,
            password: None,
            shown: text.to_owned(),
        };
        address.checked()
    }

    /// A host or user that could be taken for an option is refused, though no program is ever started with it.
    fn checked(self) -> Result<Self, Error> {
        let bad = |problem: &str| Err(Error::Address(problem.to_owned()));
        if self.host.is_empty() {
            return bad("it has no host");
        }
        if self.host.starts_with('-') || self.user.as_deref().is_some_and(|u| u.starts_with('-')) {
            return bad("host and user cannot begin with `-`");
        }
        if self.scheme == Scheme::Ssh
            && (self.path.trim_matches('/').is_empty() || self.path.starts_with('-'))
        {
            return bad("it has no path");
        }
        if self.path.contains('\0') || self.path.contains('\n') {
            return bad("its path has control characters");
        }
        Ok(self)
    }

    /// The address without user and password, for people; SSH keeps the user, which is no secret there.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The address requests go to, without user and password.
    pub fn http_base(&self) -> Option<String> {
        if self.scheme == Scheme::Ssh {
            return None;
        }
        let port = self.port.map(|p| format!(":{p}")).unwrap_or_default();
        Some(format!("{}://{}{port}{}", self.scheme.as_str(), self.host, self.path.trim_end_matches('/')))
    }

    /// Whether both are on the same server, so that credentials of one may be used for the other.
    pub fn same_server(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.host == other.host && self.port == other.port
    }
}

fn shown(text: &str, url: &Url) -> String {
    if url.scheme() == "ssh" && url.password().is_none()
        || (url.username().is_empty() && url.password().is_none())
    {
        return text.to_owned();
    }
    let mut url = url.clone();
    let _ = url.set_password(None);
    if url.scheme() != "ssh" {
        let _ = url.set_username("");
    }
    url.into()
}

pub(crate) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |i: usize| bytes.get(i).and_then(|b| char::from(*b).to_digit(16));
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(hi), Some(lo)) => {
                out.push(u8::try_from(hi * 16 + lo).unwrap_or(b'?'));
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_an_address() {
        let a = Address::parse("https://u:p%40ss@git.example:8443/org/app.git").unwrap();
        assert_eq!((a.host.as_str(), a.port, a.user.as_deref()), ("git.example", Some(8443), Some("u")));
        assert_eq!(a.password.as_ref().unwrap().expose(), "p@ss");
        assert_eq!(a.shown(), "https://git.example:8443/org/app.git");
        assert_eq!(a.http_base().unwrap(), "https://git.example:8443/org/app.git");
        let a = Address::parse("ssh://git@git.example:2222/org/app.git").unwrap();
        assert_eq!((a.scheme, a.port, a.path.as_str()), (Scheme::Ssh, Some(2222), "/org/app.git"));
        assert_eq!(a.shown(), "ssh://git@git.example:2222/org/app.git");
        let a = Address::parse("me@git.example:org/app.git").unwrap();
        assert_eq!((a.user.as_deref(), a.path.as_str()), (Some("me"), "org/app.git"));
    }

    /// E02: users, hosts and paths that could be taken for something else.
    #[test]
    fn addresses_that_look_like_options_or_commands_are_refused() {
        for bad in [
            "",
            "app",
            "/srv/app",
            "file:///srv/app",
            "ext::sh -c x",
            "ssh://-oProxyCommand=x/app",
            "https:///x",
            "ssh://-u@host/x",
            "ssh://host/",
            "ssh://host/a\nb",
            "git://host/x",
            "-x@host:y",
            "host:",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad:?}");
        }
    }
}
