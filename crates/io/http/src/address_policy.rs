//! Which machines may be connected to.
//!
//! Untrusted addresses may name the machine itself or the metadata of a cloud. What counts is where a connection goes:
//! an address in a URL is checked before each request, also after a redirect; a name is checked each time it is resolved, and the
//! connection goes to what was checked.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// The addresses that a client may connect to. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddressPolicy {
    guarded: bool,
    allowed: Vec<Network>,
    denied: Vec<Network>,
}

/// An address and how many bits of it count: `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// What is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network; write an address, or one with the number of bits that count, as in 10.0.0.0/8")]
pub struct NetworkError(String);

/// An address that a policy refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connections to {address} are refused: it is {why}")]
pub struct Forbidden {
    address: IpAddr,
    why: &'static str,
}

/// What nothing outside of this machine has a reason to name. Metadata of clouds gives out credentials of the machine.
const GUARDED: &[(&str, &str)] = &[
    ("0.0.0.0/8", "this machine"),
    ("127.0.0.0/8", "a loopback address"),
    ("169.254.0.0/16", "a link-local address"),
    ("100.100.100.200/32", "an address of a cloud's metadata"),
    ("168.63.129.16/32", "an address of a cloud's metadata"),
    ("192.0.0.192/32", "an address of a cloud's metadata"),
    ("224.0.0.0/4", "no address of one machine"),
    ("240.0.0.0/4", "no address of one machine"),
    ("::/128", "this machine"),
    ("::1/128", "a loopback address"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a link-local address"),
    ("fd00:ec2::254/128", "an address of a cloud's metadata"),
    ("fd20:ce::254/128", "an address of a cloud's metadata"),
    ("ff00::/8", "no address of one machine"),
];

impl AddressPolicy {
    /// For addresses that tenants of a cluster write: this machine, link-local addresses and metadata are refused. Private networks
    /// are where clusters have their servers, and stay open unless they are denied.
    #[must_use]
    pub fn cluster() -> Self {
        AddressPolicy { guarded: true, ..Self::default() }
    }

    /// These too, whatever else is refused.
    #[must_use]
    pub fn allow(mut self, networks: impl IntoIterator<Item = Network>) -> Self {
        self.allowed.extend(networks);
        self
    }

    /// Not these, unless a part of them is allowed.
    #[must_use]
    pub fn deny(mut self, networks: impl IntoIterator<Item = Network>) -> Self {
        self.denied.extend(networks);
        self
    }

    /// Whether there is anything to check.
    pub(crate) fn is_open(&self) -> bool {
        !self.guarded && self.denied.is_empty()
    }

    /// Whether an address may be connected to.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        if self.is_open() || self.allowed.iter().any(|n| n.contains(address.to_canonical())) {
            return Ok(());
        }
        for meant in meanings(address) {
            let listed =
                self.denied.iter().any(|n| n.contains(meant)).then_some("in a network that is denied");
            let guarded = || {
                let within = |text: &str| text.parse::<Network>().is_ok_and(|n| n.contains(meant));
                GUARDED.iter().find(|(network, _)| self.guarded && within(network)).map(|(_, why)| *why)
            };
            if let Some(why) = listed.or_else(guarded) {
                return Err(Forbidden { address, why });
            }
        }
        Ok(())
    }

    /// Whether the address that a URL names may be connected to; names are checked when they are resolved.
    pub(crate) fn check_host(&self, url: &Url) -> Result<(), Forbidden> {
        match url.host() {
            Some(Host::Ipv4(address)) => self.check(address.into()),
            Some(Host::Ipv6(address)) => self.check(address.into()),
            _ => Ok(()),
        }
    }

    /// Resolves a host, for connections that are not HTTP; only addresses that may be connected to.
    ///
    /// # Errors
    /// The host has no address, or none that is allowed.
    pub async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((host, port)).await?.collect();
        self.filter(found).map_err(io::Error::other)
    }

    fn filter(&self, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Forbidden> {
        let mut refused = None;
        let mut good = Vec::with_capacity(found.len());
        for address in found {
            match self.check(address.ip()) {
                Ok(()) => good.push(address),
                Err(forbidden) => refused = Some(forbidden),
            }
        }
        match refused {
            Some(forbidden) if good.is_empty() => Err(forbidden),
            _ => Ok(good),
        }
    }
}

/// An address and those of the old protocol that it stands for: a translator on the way would lead there.
fn meanings(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(six) = address else { return vec![address] };
    let bytes = six.octets();
    let four = |at: usize, flip: u8| {
        IpAddr::V4(Ipv4Addr::from([
            bytes[at] ^ flip,
            bytes[at + 1] ^ flip,
            bytes[at + 2] ^ flip,
            bytes[at + 3] ^ flip,
        ]))
    };
    let mut all = vec![address];
    match six.segments() {
        // Mapped, and the older form of it; `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] if six != Ipv6Addr::LOCALHOST && six != Ipv6Addr::UNSPECIFIED => {
            all.push(four(12, 0));
        }
        // Translated.
        [0x64, 0xff9b, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => all.push(four(12, 0)),
        [0x2002, ..] => all.push(four(2, 0)),
        [0x2001, 0, ..] => all.push(four(12, 0xff)),
        _ => {}
    }
    all
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u8| {
            let rest = u32::from(width - self.bits);
            a.checked_shr(rest).unwrap_or(0) == b.checked_shr(rest).unwrap_or(0)
        };
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || NetworkError(text.to_owned());
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| bad())?)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        match bits.unwrap_or(width) {
            bits if bits <= width => Ok(Network { address, bits }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;
/// How names are resolved.
pub(crate) type Lookup = fn(String) -> Found;

/// As the system does it.
pub(crate) fn system(name: String) -> Found {
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

/// Resolves names for connections, and gives out only what a policy allows.
pub(crate) struct Guard {
    policy: Arc<AddressPolicy>,
    lookup: Lookup,
}

impl Guard {
    pub(crate) fn new(policy: &AddressPolicy, lookup: Lookup) -> Self {
        Guard { policy: Arc::new(policy.clone()), lookup }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, found) = (self.policy.clone(), (self.lookup)(name.as_str().to_owned()));
        Box::pin(async move {
            let good = policy.filter(found.await?)?;
            Ok(Box::new(good.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(all: &[&str]) -> Vec<Network> {
        all.iter().map(|n| n.parse().expect("a network")).collect()
    }

    /// C03: every way to write an address that is refused.
    #[test]
    fn this_machine_and_metadata_are_refused() {
        let policy = AddressPolicy::cluster();
        for bad in [
            "127.0.0.1",
            "127.255.1.2",
            "0.0.0.0",
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "2002:7f00:1::1",
            "2001:0:1:2:3:4:5601:5601",
        ] {
            let address: IpAddr = bad.parse().expect("an address");
            assert!(policy.check(address).is_err(), "{bad}");
            assert!(AddressPolicy::default().check(address).is_ok(), "{bad}");
        }
        for good in [
            "10.1.2.3",
            "192.168.0.1",
            "172.16.0.1",
            "140.82.121.4",
            "2606:50c0::153",
            "fd00::1",
            "::ffff:10.1.2.3",
        ] {
            assert!(policy.check(good.parse().expect("an address")).is_ok(), "{good}");
        }
    }

    #[test]
    fn lists_come_before_the_rest() {
        let policy = AddressPolicy::cluster()
            .deny(networks(&["10.0.0.0/8", "fc00::/7"]))
            .allow(networks(&["10.2.0.0/16", "127.0.0.2"]));
        for (address, good) in [
            ("10.1.0.1", false),
            ("10.2.0.1", true),
            ("::ffff:10.2.0.1", true),
            ("::ffff:10.1.0.1", false),
            ("127.0.0.1", false),
            ("127.0.0.2", true),
            ("fd00::1", false),
            ("11.0.0.1", true),
        ] {
            assert_eq!(policy.check(address.parse().expect("an address")).is_ok(), good, "{address}");
        }
        let only = AddressPolicy::default().deny(networks(&["0.0.0.0/0"]));
        assert!(
            only.check(Ipv4Addr::LOCALHOST.into()).is_err() && only.check(Ipv6Addr::LOCALHOST.into()).is_ok()
        );
    }

    #[test]
    fn networks_are_read() {
        assert_eq!(
            networks(&["10.0.0.0/8", "::1"]).iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.0.0.0/8", "::1/128"]
        );
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "example.com", "10.0.0.0/-1"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
        for (address, _) in GUARDED {
            assert!(address.parse::<Network>().is_ok(), "{address}");
        }
    }
}
