//! `urlParse` and `urlJoin` with the rules of Go's `net/url`.

use fl_gotemplate::{CallError, Context, Functions, Map, Value};

use crate::args::{D, Out, S, bytes, dict, fixed, string};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "urlParse", &[S], |_, a| {
        let url = Url::parse(bytes(a, 0)).map_err(|e| CallError::new(format!("unable to parse url: {e}")))?;
        Ok(url.to_dict())
    });
    fixed(f, "urlJoin", &[D], join);
}

#[derive(Debug, Default)]
struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    force_query: bool,
    fragment: Vec<u8>,
}

/// Component of a URL; each one escapes other characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Component {
    Path,
    HostContext,
    Zone,
    UserPassword,
    Fragment,
}

fn shown(raw: &[u8]) -> String {
    fl_gotemplate::fmt::quoted(raw)
}

fn should_escape(c: u8, component: Component) -> bool {
    if c.is_ascii_alphanumeric() {
        return false;
    }
    if matches!(component, Component::HostContext | Component::Zone) && b"!$&'()*+,;=:[]<>\"".contains(&c) {
        return false;
    }
    match c {
        b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match component {
            Component::Path => c == b'?',
            Component::UserPassword => matches!(c, b'@' | b'/' | b'?' | b':'),
            Component::Fragment => false,
            Component::HostContext | Component::Zone => true,
        },
        b'!' | b'(' | b')' | b'*' if component == Component::Fragment => false,
        _ => true,
    }
}

fn escape(text: &[u8], component: Component) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &c in text {
        if should_escape(c, component) {
            out.extend_from_slice(format!("%{c:02X}").as_bytes());
        } else {
            out.push(c);
        }
    }
    out
}

fn unescape(text: &[u8], component: Component) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut i = 0;
    while i < text.len() {
        let c = text[i];
        if c == b'%' {
            let digits = text.get(i + 1..i + 3).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
            let Some(digits) = digits else {
                let part = &text[i..(i + 3).min(text.len())];
                return Err(format!("invalid URL escape {}", shown(part)));
            };
            let value =
                std::str::from_utf8(digits).ok().and_then(|d| u8::from_str_radix(d, 16).ok()).unwrap_or(0);
            if component == Component::HostContext && value < 0x80 && digits != b"25" {
                return Err(format!("invalid URL escape {}", shown(&text[i..i + 3])));
            }
            if component == Component::Zone
                && digits != b"25"
                && value != b' '
                && should_escape(value, Component::HostContext)
            {
                return Err(format!("invalid URL escape {}", shown(&text[i..i + 3])));
            }
            out.push(value);
            i += 3;
            continue;
        }
        if matches!(component, Component::HostContext | Component::Zone)
            && c < 0x80
            && should_escape(c, component)
        {
            return Err(format!("invalid character {} in host name", shown(&text[i..=i])));
        }
        out.push(c);
        i += 1;
    }
    Ok(out)
}

/// Splits off the scheme; fails if the text starts with a colon.
fn split_scheme(raw: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (i, &c) in raw.iter().enumerate() {
        match c {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' => {
                if i == 0 {
                    return Ok((b"", raw));
                }
            }
            b':' => {
                if i == 0 {
                    return Err("missing protocol scheme".to_owned());
                }
                return Ok((&raw[..i], &raw[i + 1..]));
            }
            _ => return Ok((b"", raw)),
        }
    }
    Ok((b"", raw))
}

impl Url {
    fn parse(raw: &[u8]) -> Result<Url, String> {
        let (rest, fragment) = match memchr::memchr(b'#', raw) {
            Some(at) => (&raw[..at], Some(&raw[at + 1..])),
            None => (raw, None),
        };
        let mut url = Self::parse_part(rest).map_err(|e| format!("parse {}: {e}", shown(rest)))?;
        if let Some(fragment) = fragment {
            url.fragment =
                unescape(fragment, Component::Fragment).map_err(|e| format!("parse {}: {e}", shown(raw)))?;
        }
        Ok(url)
    }

    fn parse_part(raw: &[u8]) -> Result<Url, String> {
        if raw.iter().any(|b| *b < b' ' || *b == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Url::default();
        if raw == b"*" {
            url.path = raw.to_vec();
            return Ok(url);
        }
        let (scheme, mut rest) = split_scheme(raw)?;
        url.scheme = scheme.to_ascii_lowercase();
        if rest.ends_with(b"?") && memchr::memchr_iter(b'?', rest).count() == 1 {
            url.force_query = true;
            rest = &rest[..rest.len() - 1];
        } else if let Some(at) = memchr::memchr(b'?', rest) {
            url.query = rest[at + 1..].to_vec();
            rest = &rest[..at];
        }
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Ok(url);
            }
            let segment = rest.split(|b| *b == b'/').next().unwrap_or_default();
            if segment.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if rest.starts_with(b"//") && (!url.scheme.is_empty() || !rest.starts_with(b"///")) {
            let authority = &rest[2..];
            let end = memchr::memchr(b'/', authority).unwrap_or(authority.len());
            url.parse_authority(&authority[..end])?;
            rest = &authority[end..];
        }
        url.path = unescape(rest, Component::Path)?;
        Ok(url)
    }

    fn parse_authority(&mut self, authority: &[u8]) -> Result<(), String> {
        let Some(at) = memchr::memrchr(b'@', authority) else {
            self.host = parse_host(authority)?;
            return Ok(());
        };
        self.host = parse_host(&authority[at + 1..])?;
        let info = &authority[..at];
        let valid = info.iter().all(|c| c.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(c));
        if !valid {
            return Err("net/url: invalid userinfo".to_owned());
        }
        self.user = Some(match memchr::memchr(b':', info) {
            Some(colon) => (
                unescape(&info[..colon], Component::UserPassword)?,
                Some(unescape(&info[colon + 1..], Component::UserPassword)?),
            ),
            None => (unescape(info, Component::UserPassword)?, None),
        });
        Ok(())
    }

    fn userinfo(&self) -> Vec<u8> {
        let Some((name, password)) = &self.user else { return Vec::new() };
        let mut out = escape(name, Component::UserPassword);
        if let Some(password) = password {
            out.push(b':');
            out.extend(escape(password, Component::UserPassword));
        }
        out
    }

    fn hostname(&self) -> &[u8] {
        let host = &self.host[..];
        let colon = memchr::memrchr(b':', host).filter(|at| host[at + 1..].iter().all(u8::is_ascii_digit));
        let host = colon.map_or(host, |at| &host[..at]);
        host.strip_prefix(b"[").and_then(|h| h.strip_suffix(b"]")).unwrap_or(host)
    }

    fn to_dict(&self) -> Value {
        Map::from_iter([
            ("scheme", Value::str(&self.scheme[..])),
            ("host", Value::str(&self.host[..])),
            ("hostname", Value::str(self.hostname())),
            ("path", Value::str(&self.path[..])),
            ("query", Value::str(&self.query[..])),
            ("opaque", Value::str(&self.opaque[..])),
            ("fragment", Value::str(&self.fragment[..])),
            ("userinfo", Value::str(self.userinfo())),
        ])
        .into()
    }

    /// `URL.String`
    fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if !self.opaque.is_empty() {
            out.extend_from_slice(&self.opaque);
        } else {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    out.extend_from_slice(b"//");
                }
                if self.user.is_some() {
                    out.extend(self.userinfo());
                    out.push(b'@');
                }
                out.extend(escape(&self.host, Component::HostContext));
            }
            let path = if self.path == b"*" { b"*".to_vec() } else { escape(&self.path, Component::Path) };
            if !path.is_empty() && path[0] != b'/' && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() {
                let segment = path.split(|b| *b == b'/').next().unwrap_or_default();
                if segment.contains(&b':') {
                    out.extend_from_slice(b"./");
                }
            }
            out.extend(path);
        }
        if self.force_query || !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend(escape(&self.fragment, Component::Fragment));
        }
        out
    }
}

fn valid_port(port: &[u8]) -> bool {
    port.is_empty() || (port[0] == b':' && port[1..].iter().all(u8::is_ascii_digit))
}

fn parse_host(host: &[u8]) -> Result<Vec<u8>, String> {
    if host.starts_with(b"[") {
        let Some(close) = memchr::memrchr(b']', host) else { return Err("missing ']' in host".to_owned()) };
        let port = &host[close + 1..];
        if !valid_port(port) {
            return Err(format!("invalid port {} after host", shown(port)));
        }
        if let Some(zone) = memchr::memmem::find(&host[..close], b"%25") {
            let mut out = unescape(&host[..zone], Component::HostContext)?;
            out.extend(unescape(&host[zone..close], Component::Zone)?);
            out.extend(unescape(&host[close..], Component::HostContext)?);
            return Ok(out);
        }
    } else if let Some(colon) = memchr::memrchr(b':', host) {
        let port = &host[colon..];
        if !valid_port(port) {
            return Err(format!("invalid port {} after host", shown(port)));
        }
    }
    unescape(host, Component::HostContext)
}

fn join(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let part = |key: &str| -> Result<Vec<u8>, CallError> {
        match dict(a, 0).and_then(|d| d.get(key.as_bytes())) {
            None => Ok(Vec::new()),
            Some(Value::Str(text)) => Ok(text.to_vec()),
            Some(Value::Nil) => Err(crate::args::nil_dereference()),
            Some(other) => Err(CallError::new(format!(
                "unable to parse {key} key, must be of type string, but {} found",
                other.kind().name()
            ))),
        }
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        ..Url::default()
    };
    let info = part("userinfo")?;
    if !info.is_empty() {
        let probe = [b"proto://", &info[..], b"@host"].concat();
        let parsed = Url::parse(&probe)
            .map_err(|e| CallError::new(format!("unable to parse userinfo in dict: {e}")))?;
        url.user = parsed.user;
    }
    string(cx, url.text())
}
