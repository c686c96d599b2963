//! Charts: archives, values, `--set`, schemas.

use fl_helm::{ArchiveLimits, Loader, MemoryFiles, Overrides, SetKind};

use super::Target;

pub(crate) const TARGETS: &[Target] =
    &[("helm-set", set), ("helm-values", values), ("helm-archive", archive), ("helm-chart", chart)];

/// Small limits keep a run short; the code that enforces them is the same.
const LIMITS: ArchiveLimits = ArchiveLimits { total: 1 << 20, file: 1 << 18, entries: 200 };

fn set(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for kind in [SetKind::Typed, SetKind::String, SetKind::Json, SetKind::File, SetKind::Literal] {
        let mut overrides = Overrides::new();
        for line in text.lines() {
            let _ = overrides.set(kind, line, &mut |name| Ok(name.as_bytes().to_vec()));
        }
    }
}

/// Documents between lines of `%%`: laid over each other.
fn values(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut overrides = Overrides::new();
    for part in text.split("%%\n") {
        let _ = overrides.add_file("fuzz", part.as_bytes());
    }
}

/// The input is a tar; it is compressed first so that mutations reach the entries, and tried as it is too.
fn archive(input: &[u8]) {
    let _ = Loader::with_limits(LIMITS).archive(input);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    if std::io::Write::write_all(&mut gzip, input).is_ok()
        && let Ok(data) = gzip.finish()
    {
        let _ = Loader::with_limits(LIMITS).archive(&data);
    }
}

/// Files after lines of `%% path`: a chart whose metadata, ignore rules and schema are read.
fn chart(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut files = MemoryFiles::default();
    for part in text.split("%% ").skip(1) {
        let (path, body) = part.split_once('\n').unwrap_or((part, ""));
        files.insert(path.trim(), body);
    }
    let Ok(chart) = Loader::with_limits(LIMITS).directory(&files) else { return };
    if let Some(schema) = &chart.schema {
        let _ = fl_helm::check_schema(&chart.values, schema);
    }
}
