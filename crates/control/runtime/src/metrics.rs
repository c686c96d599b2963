//! Metrics with Flux's names, in Prometheus' text form.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::kind::Key;

/// Ten buckets spread exponentially over 10 ms to 30 min, as Flux's.
const DURATION_BUCKETS: [f64; 10] = [
    0.01,
    0.038_381_861_633_112_19,
    0.147_316_730_227_316_28,
    0.565_429_033_616_158_3,
    2.170_221_993_206_053_5,
    8.329_716_026_113_046,
    31.970_800_794_196_16,
    122.709_885_297_553_19,
    470.977_383_802_293_1,
    1_799.999_999_999_999_8,
];
/// Buckets of controller-runtime for the time of a pass.
const CONTROLLER_BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0];

#[derive(Debug)]
enum Value {
    Number(f64),
    Histogram { bounds: &'static [f64], counts: Vec<u64>, sum: f64, count: u64 },
}

#[derive(Debug)]
struct Family {
    help: &'static str,
    kind: &'static str,
    /// By rendered labels.
    series: BTreeMap<String, Value>,
}

/// All numbers of the process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    families: Arc<Mutex<BTreeMap<&'static str, Family>>>,
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (i, (name, value)) in pairs.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{}{name}=\"{value}\"", if i == 0 { "" } else { "," });
    }
    out
}

impl Metrics {
    fn family<R>(
        &self,
        name: &'static str,
        help: &'static str,
        kind: &'static str,
        act: impl FnOnce(&mut Family) -> R,
    ) -> R {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        act(families.entry(name).or_insert_with(|| Family { help, kind, series: BTreeMap::new() }))
    }

    /// Adds to a counter.
    pub fn add(&self, name: &'static str, help: &'static str, by: f64, pairs: &[(&str, &str)]) {
        self.family(name, help, "counter", |f| {
            if let Value::Number(n) = f.series.entry(labels(pairs)).or_insert(Value::Number(0.0)) {
                *n += by;
            }
        });
    }

    /// Sets a gauge.
    pub fn set(&self, name: &'static str, help: &'static str, to: f64, pairs: &[(&str, &str)]) {
        self.family(name, help, "gauge", |f| {
            f.series.insert(labels(pairs), Value::Number(to));
        });
    }

    /// Records into a histogram.
    pub fn observe(
        &self,
        name: &'static str,
        help: &'static str,
        bounds: &'static [f64],
        value: f64,
        pairs: &[(&str, &str)],
    ) {
        self.family(name, help, "histogram", |f| {
            let empty = || Value::Histogram { bounds, counts: vec![0; bounds.len()], sum: 0.0, count: 0 };
            if let Value::Histogram { counts, sum, count, .. } =
                f.series.entry(labels(pairs)).or_insert_with(empty)
            {
                for (bound, slot) in bounds.iter().zip(counts) {
                    *slot += u64::from(value <= *bound);
                }
                *sum += value;
                *count += 1;
            }
        });
    }

    fn remove(&self, name: &'static str, pairs: &[(&str, &str)]) {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(family) = families.get_mut(name) {
            family.series.remove(&labels(pairs));
        }
    }

    /// The time a pass over an object took, and how it ended.
    pub(crate) fn pass(&self, controller: &str, key: &Key, took: Duration, result: &str, failed: bool) {
        let seconds = took.as_secs_f64();
        self.observe(
            "gotk_reconcile_duration_seconds",
            "The duration in seconds of a GitOps Toolkit resource reconciliation.",
            &DURATION_BUCKETS,
            seconds,
            &[("kind", key.kind()), ("name", key.name()), ("namespace", key.namespace())],
        );
        self.observe(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            &CONTROLLER_BUCKETS,
            seconds,
            &[("controller", controller)],
        );
        self.add(
            "controller_runtime_reconcile_total",
            "Total number of reconciliations per controller",
            1.0,
            &[("controller", controller), ("result", result)],
        );
        if failed {
            self.add(
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller",
                1.0,
                &[("controller", controller)],
            );
        }
    }

    /// An object is gone; so are its numbers.
    pub(crate) fn forget(&self, key: &Key) {
        self.remove(
            "gotk_reconcile_duration_seconds",
            &[("kind", key.kind()), ("name", key.name()), ("namespace", key.namespace())],
        );
    }

    pub(crate) fn queue(&self, controller: &str, ready: usize, running: usize) {
        let pairs = [("controller", controller), ("name", controller)];
        self.set("workqueue_depth", "Current depth of workqueue", ready as f64, &pairs);
        self.set(
            "controller_runtime_active_workers",
            "Number of currently used workers per controller",
            running as f64,
            &[("controller", controller)],
        );
    }

    pub(crate) fn count_request(&self, method: &str, code: u16) {
        self.add(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            1.0,
            &[("code", &code.to_string()), ("method", method)],
        );
    }

    /// The text Prometheus reads.
    pub fn render(&self) -> String {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        for (name, family) in families.iter() {
            let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {}", family.help, family.kind);
            for (labels, value) in &family.series {
                match value {
                    Value::Number(n) => {
                        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                        let _ = writeln!(out, "{name}{braces} {n}");
                    }
                    Value::Histogram { bounds, counts, sum, count } => {
                        let comma = if labels.is_empty() { "" } else { "," };
                        for (bound, n) in bounds.iter().zip(counts) {
                            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {n}");
                        }
                        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
                        let _ = writeln!(out, "{name}_sum{{{labels}}} {sum}");
                        let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
                    }
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form() {
        let metrics = Metrics::default();
        let key = Key::new("g", "GitRepository", "ns", "a\"b");
        metrics.pass("gitrepository", &key, Duration::from_millis(20), "success", false);
        let text = metrics.render();
        assert!(text.contains(
            "gotk_reconcile_duration_seconds_bucket{kind=\"GitRepository\",name=\"a\\\"b\",namespace=\"ns\",le=\"0.01\"} 0"
        ));
        assert!(text.contains(
            "controller_runtime_reconcile_total{controller=\"gitrepository\",result=\"success\"} 1"
        ));
        metrics.forget(&key);
        assert!(!metrics.render().contains("a\\\"b"));
    }
}
