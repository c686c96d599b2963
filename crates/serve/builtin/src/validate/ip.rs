//! IP addresses and CIDRs.

use std::net::IpAddr;

use crate::field::{Errors, Path};

pub(crate) fn ip(errors: &mut Errors, path: &Path, value: &str) {
    if parse_ip(value).is_none() {
        errors.invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

/// Parses an address as Go's older parser does: leading zeros in IPv4 parts are allowed and read as decimal.
pub(crate) fn parse_ip(value: &str) -> Option<IpAddr> {
    if let Ok(ip) = value.parse() {
        return Some(ip);
    }
    let parts: Vec<&str> = value.split('.').collect();
    if parts.len() != 4 || parts.iter().any(|p| p.is_empty() || !p.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let numbers: Vec<u8> = parts
        .iter()
        .filter_map(|p| {
            p.trim_start_matches('0').parse().ok().or((p.bytes().all(|b| b == b'0')).then_some(0))
        })
        .collect();
    let four: [u8; 4] = numbers.try_into().ok()?;
    Some(IpAddr::from(four))
}

/// Parses a CIDR into network address and prefix length.
pub(crate) fn parse_cidr(value: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = value.split_once('/')?;
    let address = parse_ip(address)?;
    let bits: u8 = bits.parse().ok()?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    (bits <= max).then_some((address, bits))
}

pub(crate) fn cidr(errors: &mut Errors, path: &Path, value: &str) {
    if parse_cidr(value).is_none() {
        errors.invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    }
}

/// An address of an endpoint: not unspecified, loopback, link-local or link-local multicast.
pub(crate) fn endpoint_ip(errors: &mut Errors, path: &Path, value: &str) {
    let Some(address) = parse_ip(value) else {
        errors.invalid(path, value, "must be a valid IP address");
        return;
    };
    if address.is_unspecified() {
        errors.invalid(path, value, format!("may not be unspecified ({value})"));
    }
    if address.is_loopback() {
        errors.invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => ((v6.segments()[0] & 0xffc0) == 0xfe80, (v6.segments()[0] & 0xff0f) == 0xff02),
    };
    if link_local {
        errors.invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        errors.invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_addresses() {
        assert!(
            parse_ip("10.0.0.1").is_some() && parse_ip("::1").is_some() && parse_ip("010.0.0.1").is_some()
        );
        assert!(parse_ip("10.0.0").is_none() && parse_ip("x").is_none());
        assert!(parse_cidr("10.0.0.0/8").is_some() && parse_cidr("10.0.0.0/33").is_none());
    }
}
