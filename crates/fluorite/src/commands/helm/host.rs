//! The world as templates may see it: the clock and random bytes. There is no cluster, so `lookup` finds nothing.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use fl_sprig::Host;

#[derive(Debug, Default)]
pub(super) struct LocalWorld {
    zone: OnceLock<String>,
}

impl Host for LocalWorld {
    fn now(&self) -> (i64, u32) {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos()),
            Err(before) => (-i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX), 0),
        }
    }

    fn random(&self, buffer: &mut [u8]) {
        rand::fill(buffer);
    }

    fn local_zone(&self) -> &str {
        // Only a chart that prints dates asks; looking at the system's files is not free.
        self.zone.get_or_init(|| jiff::tz::TimeZone::system().iana_name().unwrap_or("UTC").to_owned())
    }
}
