//! Builds a chart with its subcharts from a list of files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};

use super::background_parse::{self, ParsedTemplates, PendingTemplates, TemplateQueue};
use super::{ArchiveLimits, ArchiveSource, BufferedFile, Chart, archive, directory};
use crate::decode::{self, DecodeError};
use crate::error::LoadError;
use crate::files::Files;
use crate::render::{CompiledChart, empty_set};
use crate::values::JsonValue;

/// Maximum nesting of charts in charts.
const MAX_DEPTH: usize = 32;

/// Archive size from which unpacking and parsing on two threads pays off.
const MIN_PARALLEL_BYTES: usize = 128 << 10;

/// Loads charts. Notices (a symlink, an outdated file) are collected instead of printed.
#[derive(Debug, Default)]
pub struct Loader {
    limits: ArchiveLimits,
    /// Bytes that nested archives may still unpack to, in total.
    nested_bytes: Option<u64>,
    notices: Vec<String>,
}

impl Loader {
    /// A loader with Helm's limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// A loader with other limits.
    pub fn with_limits(limits: ArchiveLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Notices about the charts loaded so far, to be shown to the user.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Loads a chart directory.
    pub fn directory(&mut self, files: &dyn Files) -> Result<Chart, LoadError> {
        let found = directory::read(files, self.limits.file, &mut self.notices)?;
        self.files(found, 0)
    }

    /// Loads a chart archive.
    pub fn archive(&mut self, data: &[u8]) -> Result<Chart, LoadError> {
        let (files, _) = archive::read_bytes(data, self.limits)?;
        self.files(files, 0)
    }

    /// Loads and compiles a chart archive. `source` is read again when files that are not unpacked yet are
    /// needed.
    ///
    /// The templates of a large archive are parsed while a second thread still unpacks it; that thread then
    /// helps to parse the rest. The first render waits for both.
    pub fn compiled_archive(&mut self, source: &ArchiveSource) -> Result<CompiledChart, LoadError> {
        if source.len() < MIN_PARALLEL_BYTES {
            return self.source(source, TemplateQueue::disabled()).map(CompiledChart::new);
        }
        let (found, texts) = mpsc::channel();
        let (loaded, chart) = mpsc::channel();
        let texts = Arc::new(Mutex::new(texts));
        let mut loader = Self::with_limits(self.limits);
        let load = {
            let (source, texts) = (source.clone(), Arc::clone(&texts));
            move || {
                let chart = loader.source(&source, TemplateQueue::new(found));
                // The send fails only if the first thread has panicked.
                let _ = loaded.send((chart, loader.notices));
                background_parse::parse_remaining(&texts)
            }
        };
        let Ok(thread) = std::thread::Builder::new().spawn(load) else {
            return self.source(source, TemplateQueue::disabled()).map(CompiledChart::new);
        };
        let mut set = empty_set();
        let mut done = None;
        let until_loaded = std::iter::from_fn(|| {
            done = chart.try_recv().ok();
            if done.is_none() { background_parse::next_batch(&texts) } else { None }
        });
        set.pre_parse(until_loaded.flatten());
        let Some((chart, notices)) = done.or_else(|| chart.recv().ok()) else {
            // The thread ends without a result only if it panicked.
            return Err(thread
                .join()
                .map_or_else(|panic| std::panic::resume_unwind(panic), |_| LoadError::NoChartFile));
        };
        self.notices.extend(notices);
        Ok(CompiledChart::with_parsed(chart?, ParsedTemplates::new(set, PendingTemplates { texts, thread })))
    }

    fn source(&mut self, source: &ArchiveSource, mut queue: TemplateQueue) -> Result<Chart, LoadError> {
        let packed = source.open().map_err(|error| LoadError::Archive(error.to_string()))?;
        let (files, _) = archive::read(packed, || source.clone(), self.limits, &mut queue)?;
        // No more templates follow; closing the queue ends the parsing threads.
        drop(queue);
        self.files(files, 0)
    }

    fn nested_archive(&mut self, data: &[u8], depth: usize) -> Result<Chart, LoadError> {
        let left = self.nested_bytes.unwrap_or(self.limits.total);
        let limits = ArchiveLimits { total: left, ..self.limits };
        let (files, used) = archive::read_bytes(data, limits)?;
        self.nested_bytes = Some(left.saturating_sub(used));
        self.files(files, depth)
    }

    fn files(&mut self, files: Vec<BufferedFile>, depth: usize) -> Result<Chart, LoadError> {
        if depth > MAX_DEPTH {
            return Err(LoadError::TooDeep(MAX_DEPTH));
        }
        let mut chart = Chart::default();
        let mut has_metadata = false;
        // The result does not depend on the order of files, as in Helm.
        for file in files.iter().filter(|f| f.name == "Chart.yaml") {
            has_metadata = true;
            chart.times.metadata = file.modified;
            read_metadata(&mut chart, "Chart.yaml", &file.data)?;
            if chart.metadata.api_version.is_empty() {
                chart.metadata.api_version = "v1".into();
            }
        }
        let mut subcharts: BTreeMap<String, Vec<BufferedFile>> = BTreeMap::new();
        for file in files {
            match file.name.as_str() {
                "Chart.yaml" => {}
                "Chart.lock" => {
                    chart.times.lock = file.modified;
                    chart.lock = read_lock("Chart.lock", &file.data)?;
                }
                "values.yaml" => {
                    let document = read_document("values.yaml", &file.data)?;
                    chart.values = JsonValue::table_from_yaml(&document)
                        .map_err(|why| LoadError::File { file: "values.yaml", why })?;
                    chart.times.values = file.modified;
                    chart.values_file = Some(file.data);
                }
                "values.schema.json" => {
                    chart.times.schema = file.modified;
                    chart.schema = Some(file.data);
                }
                "requirements.yaml" => {
                    has_metadata = true;
                    self.warn_v2(
                        &chart,
                        "Dependencies are handled in Chart.yaml since apiVersion \"v2\". \
                                          We recommend migrating dependencies to Chart.yaml.",
                    );
                    read_metadata(&mut chart, "requirements.yaml", &file.data)?;
                    if chart.metadata.api_version == "v1" {
                        chart.files.push(file.into());
                    }
                }
                "requirements.lock" => {
                    has_metadata = true;
                    chart.lock = read_lock("requirements.lock", &file.data)?;
                    self.warn_v2(
                        &chart,
                        "Dependency locking is handled in Chart.lock since apiVersion \"v2\". \
                                          We recommend migrating to Chart.lock.",
                    );
                    if chart.metadata.api_version == "v1" {
                        chart.files.push(file.into());
                    }
                }
                name if name.starts_with("templates/") => chart.templates.push(file.into()),
                name if name.starts_with("charts/") && !name.ends_with(".prov") => {
                    let inner = name["charts/".len()..].to_owned();
                    let folder = inner.split('/').next().unwrap_or_default().to_owned();
                    subcharts.entry(folder).or_default().push(file.renamed(inner));
                }
                _ => chart.files.push(file.into()),
            }
        }
        if !has_metadata {
            return Err(LoadError::NoChartFile);
        }
        chart.metadata.validate()?;
        for (name, files) in subcharts {
            if name.starts_with(['_', '.']) {
                continue;
            }
            let sub = self.subchart(&name, files, depth + 1, chart.name()).map_err(|source| {
                LoadError::Subchart { name, parent: chart.name().to_owned(), source: Box::new(source) }
            })?;
            chart.dependencies.push(sub);
        }
        Ok(chart)
    }

    fn subchart(
        &mut self,
        name: &str,
        mut files: Vec<BufferedFile>,
        depth: usize,
        parent: &str,
    ) -> Result<Chart, LoadError> {
        if name.ends_with(".tgz") {
            let file = files.swap_remove(0);
            if file.name != name {
                return Err(LoadError::Archive(format!(
                    "error unpacking subchart tar in {parent}: expected {name}, got {}",
                    file.name
                )));
            }
            return self.nested_archive(&file.data, depth);
        }
        // A plain file in `charts/` is not a chart and has no folder to strip.
        let inner = files.into_iter().filter_map(|file| {
            let name = file.name.split_once('/')?.1.to_owned();
            Some(file.renamed(name))
        });
        self.files(inner.collect(), depth)
    }

    fn warn_v2(&mut self, chart: &Chart, text: &str) {
        if chart.metadata.api_version != "v1" {
            self.notices.push(format!("Warning: {text}"));
        }
    }
}

fn read_document(file: &'static str, data: &[u8]) -> Result<fl_yaml::Node, LoadError> {
    decode::document(data).map_err(|why| LoadError::File { file, why })
}

fn read_lock(file: &'static str, data: &[u8]) -> Result<JsonValue, LoadError> {
    let document = read_document(file, data)?;
    super::metadata::check_lock(&document)
        .and_then(|()| JsonValue::from_yaml(&document))
        .map_err(|why| LoadError::File { file, why })
}

fn read_metadata(chart: &mut Chart, file: &'static str, data: &[u8]) -> Result<(), LoadError> {
    let document = read_document(file, data)?;
    chart.metadata.read(&document).map_err(|why| match why {
        DecodeError::NullEntry(list) => {
            LoadError::Validation(format!("{list} must not contain empty or null nodes"))
        }
        why => LoadError::File { file, why },
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    /// A chart that is large even when compressed.
    fn large() -> Vec<u8> {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        let mut tar = tar::Builder::new(gzip);
        let mut add = |name: &str, text: &str| {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, name, text.as_bytes()).expect("written");
        };
        add("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
        let filler = "# filler\n".repeat(1000);
        add("c/crds/a.yaml", &filler);
        for n in 0..60 {
            let text = format!(
                "{filler}kind: K{n}\n{{{{ define \"t{n}\" }}}}{n}{{{{ end }}}}t: {{{{ include \"t{}\" . }}}}\n",
                59 - n
            );
            add(&format!("c/templates/{n:02}.yaml"), &text);
        }
        tar.into_inner().and_then(flate2::write::GzEncoder::finish).expect("written")
    }

    /// An archive that is gone when its CRDs are read is an error, not a chart without CRDs.
    #[test]
    fn unreadable_archive_is_an_error_on_second_read() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&large()).and_then(|()| file.rewind()).expect("written");
        let source = ArchiveSource::File(Arc::new(file.try_clone().expect("the same file")));
        let chart = Loader::new().compiled_archive(&source).expect("a chart");
        file.set_len(1000).expect("cut");
        let crd = chart.crds(&crate::Overrides::new()).expect("listed").remove(0);
        let error = crd.data.read().expect_err("cut off").to_string();
        assert!(error.contains("cannot read crds/a.yaml of the chart's archive a second time"), "{error}");
        let error =
            chart.render(&crate::Overrides::new(), &options(), None).map(drop).expect_err("known by now");
        assert!(error.to_string().contains("crds/a.yaml"), "{error}");
    }

    /// Loading from a file with two threads equals loading from memory with one.
    #[test]
    fn parallel_loading_equals_sequential_loading() {
        let data = large();
        assert!(data.len() > MIN_PARALLEL_BYTES);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&data).and_then(|()| file.rewind()).expect("written");
        let one = CompiledChart::new(Loader::new().archive(&data).expect("a chart"));
        let expected = one.render(&crate::Overrides::new(), &options(), None).expect("a release");
        assert_eq!(expected.manifests.len(), 60);
        for source in [ArchiveSource::Memory(Arc::new(data)), ArchiveSource::File(Arc::new(file))] {
            let chart = Loader::new().compiled_archive(&source).expect("a chart");
            for _ in 0..2 {
                assert_eq!(
                    chart.render(&crate::Overrides::new(), &options(), None).expect("a release"),
                    expected
                );
            }
        }
    }

    fn options() -> crate::RenderOptions {
        crate::RenderOptions {
            release: crate::ReleaseOptions {
                name: "r".into(),
                namespace: "n".into(),
                revision: 1,
                is_upgrade: false,
            },
            capabilities: crate::Capabilities::default(),
            limits: fl_gotemplate::Limits::default(),
            host: std::rc::Rc::new(FixedHost),
            skip_schema: false,
            subchart_notes: false,
        }
    }

    #[derive(Debug)]
    struct FixedHost;

    impl fl_sprig::Host for FixedHost {
        fn now(&self) -> (i64, u32) {
            (0, 0)
        }
        fn random(&self, _: &mut [u8]) {}
        fn local_zone(&self) -> &str {
            "UTC"
        }
    }
}
