//! Warnings about IP addresses and CIDRs in forms that a later version rejects.

use std::net::IpAddr;

use crate::field::Path;
use crate::validate::ip::{parse_cidr, parse_ip};

/// The canonical form of an address: an IPv4-mapped IPv6 address becomes IPv4.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The network address of a CIDR.
fn network_of(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

pub(super) fn address(path: &Path, value: &str) -> Option<String> {
    let read = parse_ip(value)?;
    let path = path.as_str();
    match value.parse::<IpAddr>() {
        Ok(strict) if unmapped(strict) == strict => {
            let shown = strict.to_string();
            (strict.is_ipv6() && shown != value).then(|| {
                format!("{path}: IPv6 address {value:?} should be in RFC 5952 canonical format ({shown:?})")
            })
        }
        _ => Some(format!(
            "{path}: non-standard IP address {value:?} will be considered invalid in a future Kubernetes release: use {:?}",
            unmapped(read).to_string()
        )),
    }
}

pub(super) fn network(path: &Path, value: &str) -> Vec<String> {
    let Some((read, bits)) = parse_cidr(value) else { return Vec::new() };
    let path = path.as_str();
    let base = network_of(read, bits);
    let net = format!("{base}/{bits}");
    let mut found = Vec::new();
    if base != read {
        let single = format!("{read}/{}", if read.is_ipv4() { 32 } else { 128 });
        found.push(format!(
            "{path}: CIDR value {value:?} is ambiguous in this context (should be {net:?} or {single:?}?)"
        ));
    }
    let (head, tail) = value.split_once('/').unwrap_or((value, ""));
    let strict =
        head.parse::<IpAddr>().is_ok_and(|a| unmapped(a) == a) && !(tail.len() > 1 && tail.starts_with('0'));
    if !strict {
        found.push(format!(
            "{path}: non-standard CIDR value {value:?} will be considered invalid in a future Kubernetes release: use {net:?}"
        ));
    }
    if found.is_empty() && read.is_ipv6() && net != value {
        found.push(format!(
            "{path}: IPv6 CIDR value {value:?} should be in RFC 5952 canonical format ({net:?})"
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecated_address_forms_are_reported() {
        let path = Path::new("p");
        assert_eq!(address(&path, "10.0.0.1"), None);
        assert!(address(&path, "010.0.0.1").is_some_and(|w| w.ends_with("use \"10.0.0.1\"")));
        assert!(address(&path, "::ffff:1.2.3.4").is_some_and(|w| w.ends_with("use \"1.2.3.4\"")));
        assert!(address(&path, "FE80::1").is_some_and(|w| w.ends_with("(\"fe80::1\")")));
        assert!(network(&path, "10.0.0.0/8").is_empty());
        assert_eq!(
            network(&path, "10.0.0.1/8"),
            [
                "p: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"
            ]
        );
    }
}
