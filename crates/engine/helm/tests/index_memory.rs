//! D07: memory for reading an index does not grow with its size. A process of its own, since it measures the
//! process.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::io::{BufWriter, Seek as _, Write as _};

/// Maximum additional MiB.
const EXTRA: u64 = 25;
/// Charts and versions of each: in total far more bytes than `EXTRA`.
const CHARTS: usize = 300;
const VERSIONS: usize = 300;

/// Peak resident size since the last reset, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn large_index_uses_little_memory() {
    let mut file = tempfile::tempfile().unwrap();
    let mut out = BufWriter::new(&mut file);
    writeln!(out, "apiVersion: v1\nentries:").unwrap();
    for chart in 0..CHARTS {
        writeln!(out, "  chart-{chart:04}:").unwrap();
        for version in 0..VERSIONS {
            writeln!(
                out,
                "  - apiVersion: v2\n    name: chart-{chart:04}\n    version: 1.{version}.0\n    appVersion: \"{version}\"\n    \
                 created: \"2026-01-01T00:00:00Z\"\n    description: the chart number {chart} in its version {version}\n    \
                 digest: {version:064x}\n    urls:\n    - https://charts.example/chart-{chart:04}-1.{version}.0.tgz\n    \
                 keywords: [one, two, three]\n    maintainers:\n    - name: somebody\n      email: somebody@charts.example"
            )
            .unwrap();
        }
    }
    out.flush().unwrap();
    drop(out);
    file.rewind().unwrap();
    let size = file.metadata().unwrap().len() >> 20;
    assert!(size > EXTRA, "an index of {size} MiB shows nothing");

    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    let mut index = fl_helm::RepositoryIndex::read(file, tempfile::tempfile().unwrap()).unwrap();
    let mut json = tempfile::tempfile().unwrap();
    let mut out = BufWriter::new(&mut json);
    index.write_json(&mut out).unwrap();
    out.flush().unwrap();
    drop((out, index));
    json.rewind().unwrap();
    let found = fl_helm::find_versions(std::io::BufReader::new(json), "chart-0007").unwrap().unwrap();
    assert_eq!(found.len(), VERSIONS);
    let extra = peak().saturating_sub(before) / 1024;
    assert!(extra <= EXTRA, "an index of {size} MiB took {extra} MiB");
}
