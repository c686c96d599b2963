//! Cluster IPs and node ports of services.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use crate::store::Store;

/// The service IP range, as on the recorded server.
pub(crate) const RANGE: &str = "10.0.0.0/16";
const BASE: u32 = 0x0A00_0000;
const SIZE: u32 = 1 << 16;
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

#[derive(Debug, Default)]
struct AllocatedSet {
    addresses: HashSet<u32>,
    ports: HashSet<u16>,
    next_address: u32,
    next_port: u16,
}

/// Addresses and ports in use. Rebuilt from the services on start, updated by their writes.
#[derive(Debug)]
pub(crate) struct Allocator(Mutex<AllocatedSet>);

/// Why an address or port cannot be allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllocateError {
    AlreadyAllocated,
    OutOfRange,
    Full,
}

impl Allocator {
    pub(crate) fn new(store: &Store) -> Self {
        let mut allocated = AllocatedSet { next_address: 10, ..AllocatedSet::default() };
        // Reserved for the API server and DNS.
        allocated.addresses.extend([0, 1, 10, SIZE - 1]);
        let allocator = Self(Mutex::new(allocated));
        for (_, entry) in store.list("/services", "", None, 0).1 {
            allocator.keep(&entry.value());
        }
        allocator
    }

    fn allocated(&self) -> MutexGuard<'_, AllocatedSet> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn service_of_the_api(&self) -> String {
        Ipv4Addr::from(BASE + 1).to_string()
    }

    /// Allocates the next free address.
    pub(crate) fn address(&self) -> Result<String, AllocateError> {
        let mut allocated = self.allocated();
        for _ in 0..SIZE {
            allocated.next_address = (allocated.next_address + 1) % SIZE;
            let candidate = allocated.next_address;
            if allocated.addresses.insert(candidate) {
                return Ok(Ipv4Addr::from(BASE + candidate).to_string());
            }
        }
        Err(AllocateError::Full)
    }

    /// Allocates a specific address.
    pub(crate) fn take_address(&self, text: &str) -> Result<(), AllocateError> {
        let address: Ipv4Addr = text.parse().map_err(|_| AllocateError::OutOfRange)?;
        let offset =
            u32::from(address).checked_sub(BASE).filter(|o| *o < SIZE).ok_or(AllocateError::OutOfRange)?;
        if self.allocated().addresses.insert(offset) { Ok(()) } else { Err(AllocateError::AlreadyAllocated) }
    }

    pub(crate) fn port(&self) -> Result<u16, AllocateError> {
        let mut allocated = self.allocated();
        let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
        for _ in 0..count {
            // A stride that visits every port, so that consecutive allocations are not adjacent.
            allocated.next_port = (allocated.next_port + 857) % count;
            let candidate = NODE_PORTS.start() + allocated.next_port;
            if allocated.ports.insert(candidate) {
                return Ok(candidate);
            }
        }
        Err(AllocateError::Full)
    }

    pub(crate) fn take_port(&self, port: u16) -> Result<(), AllocateError> {
        if !NODE_PORTS.contains(&port) {
            return Err(AllocateError::OutOfRange);
        }
        if self.allocated().ports.insert(port) { Ok(()) } else { Err(AllocateError::AlreadyAllocated) }
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

    /// Marks the addresses and ports of a service as used.
    pub(crate) fn keep(&self, service: &Value) {
        let mut allocated = self.allocated();
        let (mut addresses, mut ports) = (Vec::new(), Vec::new());
        Self::each(service, |a| addresses.push(a), |p| ports.push(p));
        allocated.addresses.extend(addresses);
        allocated.ports.extend(ports);
    }

    /// Releases the addresses and ports of a service.
    pub(crate) fn free(&self, service: &Value) {
        let mut allocated = self.allocated();
        let (mut addresses, mut ports) = (Vec::new(), Vec::new());
        Self::each(service, |a| addresses.push(a), |p| ports.push(p));
        for address in addresses.into_iter().filter(|a| *a > 10) {
            allocated.addresses.remove(&address);
        }
        for port in ports {
            allocated.ports.remove(&port);
        }
    }
}
