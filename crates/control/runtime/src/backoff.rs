//! Exponential backoff.

use std::time::Duration;

/// Doubles from `min` to `max`.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub fn new(min: Duration, max: Duration) -> Self {
        Backoff { min, max, failures: 0 }
    }

    /// The next delay.
    pub fn next_delay(&mut self) -> Duration {
        let delay = Self::delay(self.min, self.max, self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The delay after a number of failures.
    pub fn delay(min: Duration, max: Duration, failures: u32) -> Duration {
        min.checked_mul(1u32.checked_shl(failures).unwrap_or(u32::MAX)).map_or(max, |d| d.min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_limit() {
        let mut backoff = Backoff::new(Duration::from_millis(750), Duration::from_secs(900));
        let delays: Vec<u128> = (0..4).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [750, 1500, 3000, 6000]);
        for _ in 0..100 {
            backoff.next_delay();
        }
        assert_eq!(backoff.next_delay(), Duration::from_secs(900));
    }
}
