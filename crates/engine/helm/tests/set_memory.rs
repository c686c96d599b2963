//! D09: `--set` arguments with huge indexes or deep paths are rejected before they allocate. A process of its
//! own, since it measures the process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use fl_helm::{Overrides, SetKind};

/// Maximum additional MiB for all rejected arguments.
const EXTRA: u64 = 8;

/// Peak resident size since the last reset, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn d09_rejected_arguments_use_little_memory() {
    let deep = format!("{}=1", vec!["a"; 100_000].join("."));
    let texts = ["a[1000000000]=1", "a[0][1000000000]=1", "a[4294967296].b=1", &deep];
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    for text in texts {
        for kind in [SetKind::Typed, SetKind::String, SetKind::Json, SetKind::Literal] {
            assert!(Overrides::new().set(kind, text, &mut |_| Err("no files".into())).is_err());
        }
    }
    let extra = peak().saturating_sub(before) / 1024;
    assert!(extra <= EXTRA, "refusing took {extra} MiB");
}
