//! Metrics with Flux's names, in Prometheus' text form.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fl_client::Key;

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
/// controller-runtime's buckets for the duration of a reconcile.
const CONTROLLER_BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0];

/// Name, type and help text of a metric family.
#[derive(Debug)]
pub struct Described {
    pub name: &'static str,
    pub help: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
}

const RECONCILE_DURATION: Described = Described {
    name: "gotk_reconcile_duration_seconds",
    help: "The duration in seconds of a GitOps Toolkit resource reconciliation.",
    kind: "histogram",
};
const RECONCILE_TIME: Described = Described {
    name: "controller_runtime_reconcile_time_seconds",
    help: "Length of time per reconciliation per controller",
    kind: "histogram",
};
const RECONCILE_TOTAL: Described = Described {
    name: "controller_runtime_reconcile_total",
    help: "Total number of reconciliations per controller",
    kind: "counter",
};
const RECONCILE_ERRORS: Described = Described {
    name: "controller_runtime_reconcile_errors_total",
    help: "Total number of reconciliation errors per controller",
    kind: "counter",
};
const ACTIVE_WORKERS: Described = Described {
    name: "controller_runtime_active_workers",
    help: "Number of currently used workers per controller",
    kind: "gauge",
};
const MAX_WORKERS: Described = Described {
    name: "controller_runtime_max_concurrent_reconciles",
    help: "Maximum number of concurrent reconciles per controller",
    kind: "gauge",
};
const QUEUE_DEPTH: Described =
    Described { name: "workqueue_depth", help: "Current depth of workqueue", kind: "gauge" };
const REQUESTS: Described = Described {
    name: "rest_client_requests_total",
    help: "Number of HTTP requests, partitioned by status code, method, and host.",
    kind: "counter",
};
pub(crate) const RESOURCE_INFO: Described = Described {
    name: "gotk_resource_info",
    help: "The current state of a GitOps Toolkit resource.",
    kind: "gauge",
};
pub(crate) const CPU_SECONDS: Described = Described {
    name: "process_cpu_seconds_total",
    help: "Total user and system CPU time spent in seconds.",
    kind: "counter",
};
pub(crate) const RESIDENT_MEMORY: Described = Described {
    name: "process_resident_memory_bytes",
    help: "Resident memory size in bytes.",
    kind: "gauge",
};

/// All metric families; dashboards and alerts may only name these.
pub const FAMILIES: [&Described; 11] = [
    &RECONCILE_DURATION,
    &RECONCILE_TIME,
    &RECONCILE_TOTAL,
    &RECONCILE_ERRORS,
    &ACTIVE_WORKERS,
    &MAX_WORKERS,
    &QUEUE_DEPTH,
    &REQUESTS,
    &RESOURCE_INFO,
    &CPU_SECONDS,
    &RESIDENT_MEMORY,
];

#[derive(Debug)]
enum Value {
    Number(f64),
    Histogram { bounds: &'static [f64], counts: Vec<u64>, sum: f64, count: u64 },
}

#[derive(Debug)]
struct Family {
    described: &'static Described,
    /// By rendered labels.
    series: BTreeMap<String, Value>,
}

/// All metrics of the process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    families: Arc<Mutex<BTreeMap<&'static str, Family>>>,
}

/// The `HELP` and `TYPE` lines of a family.
pub(crate) fn head(out: &mut String, described: &Described) {
    let Described { name, help, kind } = described;
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (i, (name, value)) in pairs.iter().enumerate() {
        let _ = write!(out, "{}{name}=\"", if i == 0 { "" } else { "," });
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out
}

impl Metrics {
    fn family<R>(&self, described: &'static Described, act: impl FnOnce(&mut Family) -> R) -> R {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = || Family { described, series: BTreeMap::new() };
        act(families.entry(described.name).or_insert_with(empty))
    }

    /// Adds to a counter.
    fn add(&self, described: &'static Described, by: f64, pairs: &[(&str, &str)]) {
        self.family(described, |f| {
            if let Value::Number(n) = f.series.entry(labels(pairs)).or_insert(Value::Number(0.0)) {
                *n += by;
            }
        });
    }

    /// Sets a gauge.
    fn set(&self, described: &'static Described, to: f64, pairs: &[(&str, &str)]) {
        self.family(described, |f| {
            f.series.insert(labels(pairs), Value::Number(to));
        });
    }

    /// Records into a histogram.
    fn observe(
        &self,
        described: &'static Described,
        bounds: &'static [f64],
        value: f64,
        pairs: &[(&str, &str)],
    ) {
        self.family(described, |f| {
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

    /// Records duration and result of a reconcile.
    pub(crate) fn pass(&self, controller: &str, key: &Key, took: Duration, result: &str, failed: bool) {
        let seconds = took.as_secs_f64();
        let object = [("kind", key.kind()), ("name", key.name()), ("namespace", key.namespace())];
        self.observe(&RECONCILE_DURATION, &DURATION_BUCKETS, seconds, &object);
        let controller = ("controller", controller);
        self.observe(&RECONCILE_TIME, &CONTROLLER_BUCKETS, seconds, &[controller]);
        self.add(&RECONCILE_TOTAL, 1.0, &[controller, ("result", result)]);
        self.add(&RECONCILE_ERRORS, f64::from(u8::from(failed)), &[controller]);
    }

    /// Drops the metrics of a deleted object.
    pub(crate) fn remove_object(&self, key: &Key) {
        self.remove(
            RECONCILE_DURATION.name,
            &[("kind", key.kind()), ("name", key.name()), ("namespace", key.namespace())],
        );
    }

    pub(crate) fn workers(&self, controller: &str, most: usize) {
        self.set(&MAX_WORKERS, most as f64, &[("controller", controller)]);
    }

    pub(crate) fn queue(&self, controller: &str, ready: usize, running: usize) {
        self.set(&QUEUE_DEPTH, ready as f64, &[("controller", controller), ("name", controller)]);
        self.set(&ACTIVE_WORKERS, running as f64, &[("controller", controller)]);
    }

    /// Prometheus' text format.
    pub fn render(&self) -> String {
        let families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        for (name, family) in families.iter() {
            head(&mut out, family.described);
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

impl fl_client::Observer for Metrics {
    /// Counts a request to an API server.
    fn answered(&self, method: &str, status: u16) {
        self.add(&REQUESTS, 1.0, &[("code", &status.to_string()), ("method", method)]);
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
        assert!(text.contains("# TYPE controller_runtime_reconcile_errors_total counter"), "{text}");
        metrics.remove_object(&key);
        assert!(!metrics.render().contains("a\\\"b"));
    }
}
