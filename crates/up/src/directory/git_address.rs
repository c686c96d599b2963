//! URLs of repositories, and when two of them name the same one.

use std::path::Path;

/// `http://up.localhost/home/me/shop`. Names below `localhost` never leave a machine.
pub(crate) fn address_of(root: &Path) -> String {
    let mut path = String::new();
    for part in root.components() {
        if let std::path::Component::Normal(part) = part {
            path.push('/');
            path.extend(url::form_urlencoded::byte_serialize(part.as_encoded_bytes()));
        }
    }
    format!("http://up.localhost{}", path.replace('+', "%20"))
}

/// Host and path without scheme, user, port and `.git`: `git@host:org/repo.git` and `https://host/org/repo` are one.
pub(super) fn normalized(address: &str) -> Option<String> {
    let (host, path) = match url::Url::parse(address) {
        Ok(url) if url.has_host() => (url.host_str()?.to_owned(), url.path().to_owned()),
        _ => {
            let (host, path) = address.split_once(':')?;
            (host.rsplit('@').next()?.to_owned(), path.to_owned())
        }
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.is_empty() && !path.is_empty()).then(|| format!("{}/{path}", host.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_repository_are_equal() {
        let one = normalized("https://Git.example/org/shop.git").unwrap();
        assert_eq!(one, "git.example/org/shop");
        for other in [
            "git@git.example:org/shop.git",
            "ssh://git@git.example:2222/org/shop",
            "https://user:word@git.example/org/shop/",
        ] {
            assert_eq!(normalized(other).as_deref(), Some(one.as_str()), "{other}");
        }
        assert_eq!(normalized("/srv/shop"), None);
    }

    #[test]
    fn directory_url_is_escaped() {
        let address = address_of(Path::new("/srv/my shop/ä"));
        assert_eq!(address, "http://up.localhost/srv/my%20shop/%C3%A4");
        assert_eq!(normalized(&address).unwrap(), "up.localhost/srv/my%20shop/%C3%A4");
    }
}
