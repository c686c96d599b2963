//! String formats that the API server validates; all others are ignored.

use std::net::Ipv6Addr;
use std::sync::OnceLock;

use regex::Regex;

/// Whether `text` has the format; `None` for a format that the server does not validate.
pub fn check(format: &str, text: &str) -> Option<bool> {
    let normalized = format.replace('-', "");
    Some(match normalized.as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_request_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && is_ip_sloppy(text),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "ssn" => is_ssn(text),
        "hexcolor" => is_hex_color(text),
        "rgbcolor" => rgb_color().is_match(text),
        "byte" => base64_text().is_match(text),
        "password" => true,
        "date" => is_date(text),
        "duration" => is_duration(text),
        "datetime" => is_date_time(text),
        _ => return None,
    })
}

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        fn $name() -> &'static Regex {
            static CELL: OnceLock<Regex> = OnceLock::new();
            CELL.get_or_init(|| Regex::new($pattern).expect("a constant pattern"))
        }
    };
}

pattern!(
    rgb_color,
    r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"
);
pattern!(base64_text, r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$");
pattern!(
    credit_card,
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"
);
pattern!(time_of_day, r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$");
pattern!(
    hostname,
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
);
pattern!(duration_part, r"(\d+)\s*([A-Za-zµ]+)");
pattern!(go_duration, r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$");

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|p| p.len() <= 63) && hostname().is_match(text)
}

fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    let escapes_fine = text.split('%').skip(1).all(|rest| {
        let mut digits = rest.bytes();
        digits.next().is_some_and(|b| b.is_ascii_hexdigit())
            && digits.next().is_some_and(|b| b.is_ascii_hexdigit())
    });
    if text.starts_with('/') || text == "*" {
        return escapes_fine;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_fine = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let host = rest.strip_prefix("//").map(|r| r.split(['/', '?', '#']).next().unwrap_or(r));
    scheme_fine && escapes_fine && host.is_none_or(|h| !h.contains(' '))
}

fn is_email(text: &str) -> bool {
    let inner = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(open), Some(without)) => &without[open + 1..],
        (None, None) => text.trim(),
        _ => return false,
    };
    let Some((local, domain)) = inner.rsplit_once('@') else { return false };
    let atom = |s: &str| {
        !s.is_empty()
            && s.split('.').all(|p| !p.is_empty())
            && s.chars()
                .all(|c| c.is_ascii_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~.".contains(c))
    };
    let quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || atom(local)) && (literal || atom(domain))
}

/// Go's lenient parser: IPv4 parts with leading zeroes are decimal.
fn is_ip_sloppy(text: &str) -> bool {
    let v4 = |t: &str| {
        let parts: Vec<&str> = t.split('.').collect();
        parts.len() == 4
            && parts.iter().all(|p| {
                !p.is_empty()
                    && p.bytes().all(|b| b.is_ascii_digit())
                    && p.parse::<u32>().is_ok_and(|n| n < 256)
            })
    };
    v4(text) || text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = if address.contains(':') { 128 } else { 32 };
    is_ip_sloppy(address)
        && !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|n| n <= limit)
}

fn is_mac(text: &str) -> bool {
    let groups = |sep: char, size: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(sep).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|p| p.len() == size && p.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let bare = matches!(text.len(), 12 | 16 | 40) && text.bytes().all(|b| b.is_ascii_hexdigit());
    bare || groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut hex = Vec::with_capacity(32);
    for (group, size) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 && bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        let Some(part) = bytes.get(at..at + size) else { return false };
        hex.extend_from_slice(part);
        at += size;
    }
    at == bytes.len()
        && hex.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|v| {
            hex[12] == v && (v == b'3' || matches!(hex[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'))
        })
}

fn without_separators(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 10 || !digits[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match digits[9] {
        b'X' => 10,
        b if b.is_ascii_digit() => u32::from(b - b'0'),
        _ => return false,
    };
    let sum: u32 = digits[..9].iter().zip(1u32..).map(|(b, weight)| weight * u32::from(b - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        digits.iter().zip([1u32, 3].into_iter().cycle()).map(|(b, w)| w * u32::from(b - b'0')).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !credit_card().is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip([false, true].into_iter().cycle())
        .map(|(b, double)| {
            let n = u32::from(b - b'0') * if double { 2 } else { 1 };
            if n >= 10 { n % 10 + 1 } else { n }
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_ssn(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() == 11
        && matches!(b[3], b'-' | b' ')
        && matches!(b[6], b'-' | b' ')
        && b.iter().enumerate().all(|(i, c)| i == 3 || i == 6 || c.is_ascii_digit())
}

fn is_hex_color(text: &str) -> bool {
    let hex = text.strip_prefix('#').unwrap_or(text);
    matches!(hex.len(), 3 | 6) && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_date(text: &str) -> bool {
    let b = text.as_bytes();
    if b.len() != 10 || b[4] != b'-' || b[7] != b'-' || !text.is_ascii() {
        return false;
    }
    let (Ok(year), Ok(month), Ok(day)) =
        (text[..4].parse::<u32>(), text[5..7].parse::<u32>(), text[8..].parse::<u32>())
    else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = time_of_day().captures(time) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// Go's duration syntax, or any text with a count and a unit in it (`5 minutes`).
fn is_duration(text: &str) -> bool {
    const EXACT: &[&str] = &["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const STARTS: &[&str] = &["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    if go_duration().is_match(text) {
        return true;
    }
    let mut any = false;
    for part in duration_part().captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = part[2].to_lowercase();
        any |= EXACT.contains(&unit.as_str()) || STARTS.iter().any(|s| unit.starts_with(s));
    }
    any
}

#[cfg(test)]
mod tests {
    use super::check;

    /// Recorded from kube-apiserver: texts, and the formats that reject them.
    #[test]
    fn formats_match_kube_apiserver() {
        const FORMATS: &str = "bsonobjectid byte cidr creditcard date datetime duration email hexcolor hostname ipv4 ipv6 isbn isbn10 \
                               isbn13 k8s-long-name k8s-short-name mac password rgbcolor ssn uri uuid uuid3 uuid4 uuid5";
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(include_str!("formats.golden.json")).expect("a list");
        assert!(rows.len() > 40);
        let mut wrong = Vec::new();
        for row in rows {
            let text = row["text"].as_str().expect("a text");
            for format in FORMATS.split_ascii_whitespace() {
                let refused = row["refused"].as_array().expect("formats").iter().any(|f| f == format);
                if (check(format, text) == Some(false)) != refused {
                    wrong.push(format!("{format} {text:?}, refused: {refused}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn formats_accept_and_reject() {
        let table: &[(&str, &[&str], &[&str])] = &[
            (
                "date-time",
                &["2020-01-02T03:04:05Z", "2020-02-29t03:04:05.123+01:00"],
                &["not a date", "2019-02-29T00:00:00Z", "2020-01-02T24:00:00Z"],
            ),
            ("date", &["2020-12-31"], &["2020-13-01", "20-1-1"]),
            ("duration", &["5m", "1h30m", "22 ns", "5 minutes", "0"], &["abc", "5", ""]),
            ("ipv4", &["1.2.3.4", "01.2.3.4"], &["1.2.3", "::1", "300.1.1.1"]),
            ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "zz::"]),
            ("cidr", &["10.0.0.0/8", "fd00::/8"], &["10.0.0.0", "10.0.0.0/33"]),
            ("uri", &["http://x/y", "/path", "mailto:a@b"], &["", "no-scheme", "http://a b/"]),
            ("email", &["a@b.c", "A <a@b.c>"], &["a", "@b", "a b@c"]),
            ("hostname", &["a.example", "localhost"], &["-a.b", "a..b"]),
            ("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23"]),
            ("isbn10", &["0321751043"], &["0321751044"]),
            ("isbn13", &["978-0321751041"], &["9780321751042"]),
            ("byte", &["aGk="], &["aGk", "%%%="]),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ff"]),
            ("rgbcolor", &["rgb(1, 2,3)"], &["rgb(1,2)"]),
        ];
        for (format, good, bad) in table {
            for text in *good {
                assert_eq!(check(format, text), Some(true), "{format} {text}");
            }
            for text in *bad {
                assert_eq!(check(format, text), Some(false), "{format} {text}");
            }
        }
        assert_eq!(check("int32", "x"), None);
    }
}
