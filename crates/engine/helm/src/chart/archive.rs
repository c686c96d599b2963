//! Chart archives: gzipped tar files, unpacked in memory with every path and size checked.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{BufRead, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::sync::Arc;

use fl_gotemplate::Str;

use super::background_parse::TemplateQueue;
use super::gzip::GzipReader;
use super::lazy_file::{ArchiveSource, Content, PackedArchive};
use super::{BOM, BufferedFile, trim_bom};
use crate::error::LoadError;

/// Limits of a chart archive; the defaults are Helm's.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveLimits {
    /// Maximum bytes of all files together, after decompression.
    pub total: u64,
    /// Maximum bytes of one file.
    pub file: u64,
    /// Maximum number of entries, including directories.
    pub entries: usize,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self { total: 100 << 20, file: 5 << 20, entries: 100_000 }
    }
}

/// Whether the bytes start with the gzip magic number.
pub(crate) fn is_gzip(data: &[u8]) -> bool {
    data.starts_with(b"\x1f\x8b\x08")
}

/// Reads all files of an archive and returns them with their total size. Links, devices and the like become
/// ordinary (usually empty) files.
///
/// `reopen` gives access to the archive for files that are unpacked later; templates are added to `queue` as
/// they are found.
pub(crate) fn read(
    mut packed: impl BufRead,
    reopen: impl Fn() -> ArchiveSource,
    limits: ArchiveLimits,
    queue: &mut TemplateQueue,
) -> Result<(Vec<BufferedFile>, u64), LoadError> {
    let unreadable = |error: std::io::Error| LoadError::Archive(error.to_string());
    if !is_gzip(packed.fill_buf().map_err(unreadable)?) {
        return Err(LoadError::Archive("gzip: invalid header".into()));
    }
    // Headers and padding count too: without this a tar of endless empty entries would never reach a limit.
    let allowance = limits.total + limits.entries as u64 * 2048;
    let header_budget = Rc::new(Cell::new(MAX_HEADER_BYTES));
    let bounded =
        LimitedReader { inner: GzipReader::new(packed).take(allowance), left: Rc::clone(&header_budget) };
    let mut tar = tar::Archive::new(bounded);
    let mut files = Vec::new();
    let mut deferred = None;
    let mut remaining = limits.total;
    for (count, entry) in tar.entries_with_seek().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        // The content of a skipped entry is read on the way to the next one.
        header_budget.set(entry.size().saturating_add(MAX_HEADER_BYTES));
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
        let mut file = BufferedFile::new(name, Vec::new());
        file.modified = entry.header().mtime().unwrap_or_default();
        let mut content = entry.by_ref().take(remaining);
        let read = if is_deferred(&file.name) {
            // The content is still decompressed to reach the next entry, so a corrupt archive fails here and
            // not later.
            let packed = deferred.get_or_insert_with(|| Arc::new(PackedArchive::new(reopen())));
            file.kept = Some(Content::packed(Arc::clone(packed), count, &file.name));
            size
        } else if !is_for_loader(&file.name) && size <= MAX_PREALLOCATION {
            let (content, read) = read_content(&mut content, size as usize).map_err(unreadable)?;
            if in_chart(&file.name).starts_with("templates/") {
                queue.push(&raw_name, &content);
            }
            file.kept = Some(content.into());
            read
        } else {
            file.data.reserve_exact(usize::try_from(size).unwrap_or(0).min(1 << 20));
            let read = content.read_to_end(&mut file.data).map_err(unreadable)?;
            trim_bom(&mut file.data);
            read as u64
        };
        remaining -= read;
        if read < size || remaining == 0 {
            return Err(LoadError::Archive(too_large(limits.total)));
        }
        header_budget.set(MAX_HEADER_BYTES);
        files.push(file);
    }
    if files.is_empty() {
        return Err(LoadError::Archive("no files in chart archive".into()));
    }
    Ok((files, limits.total - remaining))
}

/// Like [`read`], for an archive in memory.
pub(crate) fn read_bytes(data: &[u8], limits: ArchiveLimits) -> Result<(Vec<BufferedFile>, u64), LoadError> {
    read(data, || ArchiveSource::Memory(Arc::new(data.to_vec())), limits, &mut TemplateQueue::disabled())
}

/// Maximum bytes between two entries: headers, padding, long names and PAX records, each up to 1 MiB in Go.
const MAX_HEADER_BYTES: u64 = 4 << 20;

/// A reader that fails after `left` bytes. The `tar` crate reads headers into memory at whatever size they
/// claim.
struct LimitedReader<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.get().checked_sub(read as u64) {
            Some(left) => self.left.set(left),
            None => return Err(std::io::Error::other("archive/tar: header field too long")),
        }
        Ok(read)
    }
}

/// Skipped bytes are never in memory.
impl<R: Seek> Seek for LimitedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.inner.seek(to)
    }
}

/// Whether the loader itself reads the file, in the chart or in a subchart.
fn is_for_loader(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or_default();
    base.ends_with(".tgz")
        || matches!(
            base,
            "Chart.yaml"
                | "Chart.lock"
                | "values.yaml"
                | "values.schema.json"
                | "requirements.yaml"
                | "requirements.lock"
        )
}

/// Maximum bytes allocated before the content is read: the size in a header is not trusted.
const MAX_PREALLOCATION: u64 = 1 << 20;

/// Reads a file and returns its content and size.
fn read_content(content: &mut impl Read, size: usize) -> std::io::Result<(Str, u64)> {
    let mut room: Arc<[u8]> = std::iter::repeat_n(0, size).collect();
    let bytes = Arc::get_mut(&mut room).expect("the buffer is not shared yet");
    let mut read = 0;
    while read < bytes.len() {
        match content.read(&mut bytes[read..])? {
            0 => break,
            more => read += more,
        }
    }
    if read < size || room.starts_with(BOM) {
        let mut data = room[..read].to_vec();
        trim_bom(&mut data);
        return Ok((data.into(), read as u64));
    }
    Ok((room.into(), read as u64))
}

/// Whether a file stays packed until it is read: those in `crds/` of the chart or of a chart in its
/// `charts/`.
fn is_deferred(name: &str) -> bool {
    in_chart(name).starts_with("crds/")
}

/// The name within the innermost chart that the file belongs to.
fn in_chart(mut name: &str) -> &str {
    while let Some((_, inner)) = name.strip_prefix("charts/").and_then(|rest| rest.split_once('/')) {
        name = inner;
    }
    name
}

/// Reads the deferred files of an archive that [`read`] has accepted, by entry number.
pub(super) fn read_deferred(packed: impl BufRead) -> std::io::Result<HashMap<usize, Str>> {
    let mut tar = tar::Archive::new(GzipReader::new(packed));
    let mut contents = HashMap::new();
    for (count, entry) in tar.entries_with_seek()?.enumerate() {
        let mut entry = entry?;
        let name = checked_name(&String::from_utf8_lossy(&entry.path_bytes()));
        if name.is_ok_and(|name| is_deferred(&name)) {
            let mut content = Vec::with_capacity(usize::try_from(entry.size()).unwrap_or(0).min(1 << 20));
            entry.read_to_end(&mut content)?;
            trim_bom(&mut content);
            contents.insert(count, content.into());
        }
    }
    Ok(contents)
}

fn too_large(limit: u64) -> String {
    format!("decompressed chart is larger than the maximum file size {limit}")
}

/// The name inside the chart: without the chart's folder, and never outside of it.
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
    fn only_crds_stay_packed() {
        for deferred in
            ["crds/a.yaml", "charts/sub/crds/a.yaml", "charts/crds/crds/a.yaml", "charts/a/charts/b/crds/x"]
        {
            assert!(is_deferred(deferred), "{deferred}");
        }
        for read in [
            "Chart.yaml",
            "charts/crds/Chart.yaml",
            "templates/crds/a.yaml",
            "charts/crds.tgz",
            "files/crds/x",
        ] {
            assert!(!is_deferred(read), "{read}");
        }
    }

    /// A06: a header that claims a gigabyte is rejected early; file content may exceed the header limit.
    #[test]
    fn oversized_headers_are_rejected() {
        type Packer = tar::Builder<flate2::write::GzEncoder<Vec<u8>>>;
        let pack = |fill: &dyn Fn(&mut Packer)| {
            let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            let mut tar = tar::Builder::new(gzip);
            fill(&mut tar);
            tar.into_inner().and_then(flate2::write::GzEncoder::finish).expect("written")
        };
        let append = |tar: &mut tar::Builder<_>, name: &str, kind: tar::EntryType, size: u64| {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(kind);
            header.set_size(size);
            tar.append_data(&mut header, name, std::io::repeat(b'x').take(size)).expect("written");
        };
        let limits = ArchiveLimits { file: 50 << 20, ..ArchiveLimits::default() };
        let large = pack(&|tar| {
            append(tar, "c/Chart.yaml", tar::EntryType::Regular, 10);
            append(tar, "c/crds/large", tar::EntryType::Regular, 20 << 20);
            append(tar, "c/files/large", tar::EntryType::Regular, 20 << 20);
            append(tar, "c/skipped/", tar::EntryType::Directory, 0);
            append(tar, "c/last", tar::EntryType::Regular, 10);
        });
        assert_eq!(read_bytes(&large, limits).expect("fine").0.len(), 4);
        for kind in [tar::EntryType::XHeader, tar::EntryType::GNULongName] {
            let endless = pack(&|tar| {
                append(tar, "c/Chart.yaml", tar::EntryType::Regular, 10);
                append(tar, "c/header", kind, 64 << 20);
            });
            let error = read_bytes(&endless, limits).map(drop).expect_err("too long").to_string();
            assert!(error.contains("header field too long"), "{error}");
        }
    }

    #[test]
    fn names_outside_the_chart_are_rejected() {
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
