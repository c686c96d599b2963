//! Chart archives: gzipped tars, unpacked in memory with every path and size checked.

use std::io::Read;

use super::BufferedFile;
use crate::error::LoadError;

/// How much an archive may hold; the defaults are Helm's.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveLimits {
    /// Bytes of all files together, after decompression.
    pub total: u64,
    /// Bytes of one file.
    pub file: u64,
    /// Number of entries, directories too.
    pub entries: usize,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self { total: 100 << 20, file: 5 << 20, entries: 100_000 }
    }
}

/// Whether the bytes begin like a gzip file.
pub(crate) fn is_gzip(data: &[u8]) -> bool {
    data.starts_with(b"\x1f\x8b\x08")
}

/// Reads all files of an archive. Links, devices and the like become ordinary (usually empty) files, never links.
pub(crate) fn read(data: &[u8], limits: ArchiveLimits) -> Result<Vec<BufferedFile>, LoadError> {
    if !is_gzip(data) {
        return Err(LoadError::Archive("gzip: invalid header".into()));
    }
    // Headers and padding count too: without this a tar of endless empty entries would never reach a limit.
    let allowance = limits.total + limits.entries as u64 * 2048;
    let unzipped = flate2::bufread::MultiGzDecoder::new(data).take(allowance);
    let mut tar = tar::Archive::new(unzipped);
    let mut files = Vec::new();
    let mut remaining = limits.total;
    let unreadable = |error: std::io::Error| LoadError::Archive(error.to_string());
    for (count, entry) in tar.entries().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        if count >= limits.entries {
            return Err(LoadError::Archive(format!(
                "chart archive has more than {} entries",
                limits.entries
            )));
        }
        let kind = entry.header().entry_type();
        let raw_name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if kind.is_dir()
            || raw_name.ends_with('/')
            || kind.is_pax_global_extensions()
            || kind.is_pax_local_extensions()
        {
            continue;
        }
        let name = checked_name(&raw_name)?;
        let size = entry.size();
        if size > remaining {
            return Err(LoadError::Archive(too_large(limits.total)));
        }
        if size > limits.file {
            return Err(LoadError::Archive(format!(
                "decompressed chart file {raw_name:?} is larger than the maximum file size {}",
                limits.file
            )));
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(1 << 20));
        entry.by_ref().take(remaining).read_to_end(&mut content).map_err(unreadable)?;
        let read = content.len() as u64;
        remaining -= read;
        if read < size || remaining == 0 {
            return Err(LoadError::Archive(too_large(limits.total)));
        }
        super::trim_bom(&mut content);
        files.push(BufferedFile { name, data: content });
    }
    if files.is_empty() {
        return Err(LoadError::Archive("no files in chart archive".into()));
    }
    Ok(files)
}

fn too_large(limit: u64) -> String {
    format!("decompressed chart is larger than the maximum file size {limit}")
}

/// The name inside the chart: the first part (the chart's folder) is taken off, and nothing may lead out.
fn checked_name(raw: &str) -> Result<String, LoadError> {
    let refuse = |why: &str| LoadError::Archive(why.to_owned());
    let delimiter = if raw.contains('\\') { '\\' } else { '/' };
    let (top, rest) = raw.split_once(delimiter).unwrap_or((raw, ""));
    let rest = rest.replace(delimiter, "/");
    if rest.starts_with('/') {
        return Err(refuse("chart illegally contains absolute paths"));
    }
    let name = clean(&rest);
    if name == "." {
        return Err(LoadError::Archive(format!(
            "chart illegally contains content outside the base directory: {raw:?}"
        )));
    }
    if name.starts_with("..") {
        return Err(refuse("chart illegally references parent directory"));
    }
    let drive = name.as_bytes();
    if drive.len() > 2 && drive[0].is_ascii_alphabetic() && drive[1..].starts_with(b":/")
        || name.contains('\0')
    {
        return Err(refuse("chart contains illegally named files"));
    }
    if top == "Chart.yaml" {
        return Err(refuse("chart yaml not in base directory"));
    }
    Ok(name)
}

/// Go's `path.Clean` for relative paths.
pub(crate) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    if parts.is_empty() { ".".into() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_are_refused() {
        for bad in [
            "c/../../etc/passwd",
            "c//etc/passwd",
            "c/..",
            "Chart.yaml",
            "c\\..\\..\\x",
            "c/C:/x",
            "values.yaml",
            "c/.",
            "c/a\0b",
            "/etc/passwd/../..",
        ] {
            assert!(checked_name(bad).is_err(), "{bad}");
        }
        assert_eq!(checked_name("c/templates//a/../b.yaml").as_deref().ok(), Some("templates/b.yaml"));
        assert_eq!(checked_name("c\\templates\\b.yaml").as_deref().ok(), Some("templates/b.yaml"));
    }
}
