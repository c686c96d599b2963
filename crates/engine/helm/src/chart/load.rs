//! From a list of files to a chart with its subcharts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};

use super::ahead::{self, Ahead, First, Rest};
use super::{ArchiveLimits, BufferedFile, Chart, Source, archive, directory};
use crate::decode;
use crate::error::LoadError;
use crate::files::Files;
use crate::render::{CompiledChart, empty_set};
use crate::values::Tree;

/// Charts inside charts inside charts: more levels than any real one has.
const DEEPEST: usize = 32;

/// Bytes of an archive from which on unpacking and parsing take longer than starting a thread by far.
const WORTH_A_THREAD: usize = 128 << 10;

/// Loads charts. Notices (a link, an outdated file) are collected instead of printed.
#[derive(Debug, Default)]
pub struct Loader {
    limits: ArchiveLimits,
    /// What nested archives may still unpack to, all of them together.
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

    /// What a person should know about the charts loaded so far.
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

    /// Loads a chart archive, which the chart reads again when somebody wants the files that are not unpacked yet. The
    /// templates of a large one are parsed while a second thread still unpacks it, which then helps with what is left;
    /// rendering waits for that.
    pub fn compiled_archive(&mut self, source: &Source) -> Result<CompiledChart, LoadError> {
        if source.len() < WORTH_A_THREAD {
            return self.source(source, Ahead::nobody()).map(CompiledChart::new);
        }
        let (found, texts) = mpsc::channel();
        let (loaded, chart) = mpsc::channel();
        let texts = Arc::new(Mutex::new(texts));
        let mut loader = Self::with_limits(self.limits);
        let load = {
            let (source, texts) = (source.clone(), Arc::clone(&texts));
            move || {
                let chart = loader.source(&source, Ahead::new(found));
                // Nobody listens when the first thread has panicked.
                let _ = loaded.send((chart, loader.notices));
                ahead::parse_rest(&texts)
            }
        };
        let Ok(thread) = std::thread::Builder::new().spawn(load) else {
            return self.source(source, Ahead::nobody()).map(CompiledChart::new);
        };
        let mut set = empty_set();
        let mut done = None;
        let until_loaded = std::iter::from_fn(|| {
            done = chart.try_recv().ok();
            if done.is_none() { ahead::next_batch(&texts) } else { None }
        });
        set.parse_ahead(until_loaded.flatten());
        let Some((chart, notices)) = done.or_else(|| chart.recv().ok()) else {
            // It cannot end without a chart but by a panic.
            return Err(thread
                .join()
                .map_or_else(|panic| std::panic::resume_unwind(panic), |_| LoadError::NoChartFile));
        };
        self.notices.extend(notices);
        Ok(CompiledChart::with_first(chart?, First::new(set, Rest { texts, thread })))
    }

    fn source(&mut self, source: &Source, mut ahead: Ahead) -> Result<Chart, LoadError> {
        let packed = source.open().map_err(|error| LoadError::Archive(error.to_string()))?;
        let (files, _) = archive::read(packed, || source.clone(), self.limits, &mut ahead)?;
        // No more templates will be found; whoever parses them need not wait for the rest.
        drop(ahead);
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
        if depth > DEEPEST {
            return Err(LoadError::TooDeep(DEEPEST));
        }
        let mut chart = Chart::default();
        let mut has_metadata = false;
        // Helm does not rely on the order of files; neither do we.
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
                    chart.values = Tree::table_from_yaml(&document)
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
        // A plain file in charts/ is not a chart and has no folder to take off.
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

fn read_lock(file: &'static str, data: &[u8]) -> Result<Tree, LoadError> {
    let document = read_document(file, data)?;
    super::metadata::check_lock(&document)
        .and_then(|()| Tree::from_yaml(&document))
        .map_err(|why| LoadError::File { file, why })
}

fn read_metadata(chart: &mut Chart, file: &'static str, data: &[u8]) -> Result<(), LoadError> {
    let document = read_document(file, data)?;
    chart.metadata.read(&document).map_err(|why| match why.strip_prefix("validation: ") {
        Some(rule) => LoadError::Validation(rule.to_owned()),
        None => LoadError::File { file, why },
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    /// A chart that is large however it is packed.
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

    /// An archive that is gone when its CRDs are wanted has not become one without CRDs.
    #[test]
    fn what_cannot_be_read_again_is_an_error_and_not_nothing() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&large()).and_then(|()| file.rewind()).expect("written");
        let source = Source::File(Arc::new(file.try_clone().expect("the same file")));
        let chart = Loader::new().compiled_archive(&source).expect("a chart");
        file.set_len(1000).expect("cut");
        let crd = chart.crds(&crate::Overrides::new()).expect("listed").remove(0);
        let error = crd.data.read().expect_err("cut off").to_string();
        assert!(error.contains("cannot read crds/a.yaml of the chart's archive a second time"), "{error}");
        let error =
            chart.render(&crate::Overrides::new(), &options(), None).map(drop).expect_err("known by now");
        assert!(error.to_string().contains("crds/a.yaml"), "{error}");
    }

    /// Two threads and a file give what one thread and memory give.
    #[test]
    fn large_archives_are_loaded_as_small_ones_are() {
        let data = large();
        assert!(data.len() > WORTH_A_THREAD);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&data).and_then(|()| file.rewind()).expect("written");
        let one = CompiledChart::new(Loader::new().archive(&data).expect("a chart"));
        let expected = one.render(&crate::Overrides::new(), &options(), None).expect("a release");
        assert_eq!(expected.manifests.len(), 60);
        for source in [Source::Memory(Arc::new(data)), Source::File(Arc::new(file))] {
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
            outside: std::rc::Rc::new(Nowhere),
            skip_schema: false,
            subchart_notes: false,
        }
    }

    #[derive(Debug)]
    struct Nowhere;

    impl fl_sprig::Outside for Nowhere {
        fn now(&self) -> (i64, u32) {
            (0, 0)
        }
        fn random(&self, _: &mut [u8]) {}
        fn local_zone(&self) -> &str {
            "UTC"
        }
    }
}
