//! IP addresses and CIDRs.

use std::net::IpAddr;

use crate::error::EvalError;
use crate::eval::Eval;
use crate::functions::{bool_of, opaque};
use crate::value::{Opaque, Value};

/// Error of parsing an address or network, with Kubernetes' message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum AddressError {
    #[error("IP address {0:?} with zone value is not allowed")]
    Zone(String),
    #[error(
        "IP Address {0:?} parse error during conversion from string: ParseAddr({0:?}): unable to parse IP"
    )]
    Ip(String),
    #[error("IPv4-mapped IPv6 address {0:?} is not allowed")]
    Mapped(String),
    #[error("network address parse error during conversion from string: netip.ParsePrefix({text:?}): {why}")]
    Cidr { text: String, why: &'static str },
}

impl From<AddressError> for EvalError {
    fn from(error: AddressError) -> Self {
        EvalError::new(error.to_string())
    }
}

fn parse_ip(text: &str) -> Result<IpAddr, AddressError> {
    if text.contains('%') {
        return Err(AddressError::Zone(text.to_owned()));
    }
    let ip: IpAddr = text.parse().map_err(|_| AddressError::Ip(text.to_owned()))?;
    match ip {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(AddressError::Mapped(text.to_owned())),
        ip => Ok(ip),
    }
}

fn parse_cidr(text: &str) -> Result<(IpAddr, u8), AddressError> {
    let wrong = |why| AddressError::Cidr { text: text.to_owned(), why };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let ip: IpAddr = address.parse().map_err(|_| wrong("unable to parse IP"))?;
    let limit = if ip.is_ipv4() { 32 } else { 128 };
    let fine = !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    let bits = bits
        .parse::<u8>()
        .ok()
        .filter(|n| fine && *n <= limit)
        .ok_or_else(|| wrong("prefix length out of range"))?;
    if let IpAddr::V6(v6) = ip
        && v6.to_ipv4_mapped().is_some()
    {
        return Err(AddressError::Mapped(text.to_owned()));
    }
    Ok((ip, bits))
}

fn number(ip: IpAddr) -> (u128, u8) {
    match ip {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)) << 96, 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    }
}

fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    let mask = if bits == 0 { 0 } else { u128::MAX << (128 - u32::from(bits)) };
    let value = number(ip).0 & mask;
    match ip {
        IpAddr::V4(_) => IpAddr::V4(((value >> 96) as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(value.into()),
    }
}

fn contains(net: (IpAddr, u8), ip: IpAddr) -> bool {
    net.0.is_ipv4() == ip.is_ipv4() && masked(net.0, net.1) == masked(ip, net.1)
}

pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    let ip_of = |text: &str| parse_ip(text).map_err(EvalError::from);
    match (name, args) {
        ("isIP", [Value::Text(text)]) => bool_of(parse_ip(text).is_ok()),
        ("ip", [Value::Text(text)]) => Some(ip_of(text).map(|ip| opaque(Opaque::Ip(ip)))),
        ("ip.isCanonical", [Value::Text(text)]) => {
            Some(ip_of(text).map(|ip| Value::Bool(ip.to_string() == text.as_ref())))
        }
        ("isCIDR", [Value::Text(text)]) => bool_of(parse_cidr(text).is_ok()),
        ("cidr", [Value::Text(text)]) => {
            // Upstream's message contains the error twice.
            let wrong = |why| {
                EvalError::new(format!("network address parse error during conversion from string: {why}"))
            };
            Some(parse_cidr(text).map(|(ip, bits)| opaque(Opaque::Cidr(ip, bits))).map_err(wrong))
        }
        (_, [Value::Opaque(Opaque::Ip(ip))]) => on_ip(name, *ip),
        (_, [Value::Opaque(Opaque::Cidr(ip, bits)), rest @ ..]) => on_cidr(name, (*ip, *bits), rest),
        _ => None,
    }
}

fn on_ip<'a>(name: &str, ip: IpAddr) -> Option<Eval<'a>> {
    let link_local = match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    };
    let link_local_multicast = match ip {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    };
    let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    match name {
        "family" => Some(Ok(Value::Int(if ip.is_ipv4() { 4 } else { 6 }))),
        "isUnspecified" => bool_of(ip.is_unspecified()),
        "isLoopback" => bool_of(ip.is_loopback()),
        "isLinkLocalMulticast" => bool_of(link_local_multicast),
        "isLinkLocalUnicast" => bool_of(link_local),
        "isGlobalUnicast" => bool_of(
            !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !link_local && !broadcast,
        ),
        _ => None,
    }
}

fn on_cidr<'a>(name: &str, net: (IpAddr, u8), rest: &[Value<'a>]) -> Option<Eval<'a>> {
    let other_net = || match rest {
        [Value::Opaque(Opaque::Cidr(ip, bits))] => Some(Ok((*ip, *bits))),
        [Value::Text(text)] => Some(parse_cidr(text).map_err(EvalError::from)),
        _ => None,
    };
    match (name, rest) {
        ("containsIP", [Value::Opaque(Opaque::Ip(ip))]) => bool_of(contains(net, *ip)),
        ("containsIP", [Value::Text(text)]) => {
            let ip = parse_ip(text).map_err(|_| EvalError::no_overload());
            Some(ip.map(|ip| Value::Bool(contains(net, ip))))
        }
        ("containsCIDR", _) => {
            Some(other_net()?.map(|other| Value::Bool(other.1 >= net.1 && contains(net, other.0))))
        }
        ("ip", []) => Some(Ok(opaque(Opaque::Ip(net.0)))),
        ("masked", []) => Some(Ok(opaque(Opaque::Cidr(masked(net.0, net.1), net.1)))),
        ("prefixLength", []) => Some(Ok(Value::Int(i64::from(net.1)))),
        _ => None,
    }
}
