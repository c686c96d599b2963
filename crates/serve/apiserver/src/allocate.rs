//! Cluster IPs and node ports of services.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use crate::store::Store;

/// The addresses of services, as those of the recorded server.
pub(crate) const RANGE: &str = "10.0.0.0/16";
const BASE: u32 = 0x0A00_0000;
const SIZE: u32 = 1 << 16;
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

#[derive(Debug, Default)]
struct Taken {
    addresses: HashSet<u32>,
    ports: HashSet<u16>,
    next_address: u32,
    next_port: u16,
}

/// What is in use. Rebuilt from the services at start, kept by their writes.
#[derive(Debug)]
pub(crate) struct Allocator(Mutex<Taken>);

/// Why an address or port cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    Taken,
    OutOfRange,
    Full,
}

impl Allocator {
    pub(crate) fn new(store: &Store) -> Self {
        let mut taken = Taken { next_address: 10, ..Taken::default() };
        // The first addresses are for the API and DNS.
        taken.addresses.extend([0, 1, 10, SIZE - 1]);
        let allocator = Self(Mutex::new(taken));
        for (_, entry) in store.list("/services", "", None, 0).1 {
            allocator.keep(&entry.value());
        }
        allocator
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn service_of_the_api(&self) -> String {
        Ipv4Addr::from(BASE + 1).to_string()
    }

    /// The next free address.
    pub(crate) fn address(&self) -> Result<String, Refused> {
        let mut taken = self.taken();
        for _ in 0..SIZE {
            taken.next_address = (taken.next_address + 1) % SIZE;
            let candidate = taken.next_address;
            if taken.addresses.insert(candidate) {
                return Ok(Ipv4Addr::from(BASE + candidate).to_string());
            }
        }
        Err(Refused::Full)
    }

    /// One particular address.
    pub(crate) fn take_address(&self, text: &str) -> Result<(), Refused> {
        let address: Ipv4Addr = text.parse().map_err(|_| Refused::OutOfRange)?;
        let offset = u32::from(address).checked_sub(BASE).filter(|o| *o < SIZE).ok_or(Refused::OutOfRange)?;
        if self.taken().addresses.insert(offset) { Ok(()) } else { Err(Refused::Taken) }
    }

    pub(crate) fn port(&self) -> Result<u16, Refused> {
        let mut taken = self.taken();
        let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
        for _ in 0..count {
            // A stride that visits every port, so that neighbours are not handed out in a row.
            taken.next_port = (taken.next_port + 857) % count;
            let candidate = NODE_PORTS.start() + taken.next_port;
            if taken.ports.insert(candidate) {
                return Ok(candidate);
            }
        }
        Err(Refused::Full)
    }

    pub(crate) fn take_port(&self, port: u16) -> Result<(), Refused> {
        if !NODE_PORTS.contains(&port) {
            return Err(Refused::OutOfRange);
        }
        if self.taken().ports.insert(port) { Ok(()) } else { Err(Refused::Taken) }
    }

    fn each(service: &Value, mut address: impl FnMut(u32), mut port: impl FnMut(u16)) {
        let spec = service.get("spec");
        let ips = spec.and_then(|s| s.get("clusterIPs")).and_then(Value::as_array);
        for ip in ips.into_iter().flatten().filter_map(Value::as_str) {
            if let Some(offset) =
                ip.parse::<Ipv4Addr>().ok().and_then(|a| u32::from(a).checked_sub(BASE)).filter(|o| *o < SIZE)
            {
                address(offset);
            }
        }
        let ports = spec.and_then(|s| s.get("ports")).and_then(Value::as_array);
        let mut numbers: Vec<u64> =
            ports.into_iter().flatten().filter_map(|p| p.get("nodePort")).filter_map(Value::as_u64).collect();
        numbers.extend(spec.and_then(|s| s.get("healthCheckNodePort")).and_then(Value::as_u64));
        for number in numbers {
            if let Ok(n) = u16::try_from(number) {
                port(n);
            }
        }
    }

    /// Marks what a service uses.
    pub(crate) fn keep(&self, service: &Value) {
        let mut taken = self.taken();
        let (mut addresses, mut ports) = (Vec::new(), Vec::new());
        Self::each(service, |a| addresses.push(a), |p| ports.push(p));
        taken.addresses.extend(addresses);
        taken.ports.extend(ports);
    }

    /// Frees what a service used.
    pub(crate) fn free(&self, service: &Value) {
        let mut taken = self.taken();
        let (mut addresses, mut ports) = (Vec::new(), Vec::new());
        Self::each(service, |a| addresses.push(a), |p| ports.push(p));
        for address in addresses.into_iter().filter(|a| *a > 10) {
            taken.addresses.remove(&address);
        }
        for port in ports {
            taken.ports.remove(&port);
        }
    }
}
