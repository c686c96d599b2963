//! Writes charts as archives, as `helm package` does, with the changes that source-controller makes.

use fl_yaml::{Dialect, JsonStyle, Node};
use flate2::write::GzEncoder;

use crate::chart::{ArchiveLimits, Chart, Metadata, archive};
use crate::decode::{self, DecodeError};
use crate::error::LoadError;
use crate::files::Files;
use crate::index::{Fields, metadata_fields};
use crate::values::JsonValue;

/// Maximum bytes of `Chart.yaml`.
const MAX_CHART_FILE_BYTES: u64 = 5 << 20;

/// Error of packaging a chart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    #[error("failed to package chart: chart validation: {0}")]
    Invalid(LoadError),
    #[error("failed to package chart: invalid JSON in values.schema.json")]
    Schema,
    #[error("failed to package chart: invalid chart name {0:?}")]
    Name(String),
    #[error("failed to package chart: {0}")]
    Yaml(String),
    #[error("failed to locate values file: values.yaml")]
    NoValues,
    #[error("failed to package chart: {0}")]
    Io(#[from] std::io::Error),
}

/// Packages a chart as a gzipped archive. The same chart gives the same bytes: files carry the times of the
/// archive they came from, or none.
pub fn package(chart: &Chart) -> Result<Vec<u8>, PackageError> {
    chart.metadata.clone().validate().map_err(PackageError::Invalid)?;
    let gzip = flate2::GzBuilder::new().comment("Helm").write(Vec::new(), flate2::Compression::default());
    let mut tar = tar::Builder::new(gzip);
    write_chart(&mut tar, chart, "")?;
    Ok(tar.into_inner()?.finish()?)
}

type Archive = tar::Builder<GzEncoder<Vec<u8>>>;

fn write_chart(tar: &mut Archive, chart: &Chart, below: &str) -> Result<(), PackageError> {
    let name = chart.name();
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return Err(PackageError::Name(name.to_owned()));
    }
    let base = format!("{below}{name}");
    let mut file =
        |name: &str, data: &[u8], modified: u64| write_file(tar, &format!("{base}/{name}"), data, modified);
    let times = chart.times;
    let mut metadata = chart.metadata.clone();
    if metadata.api_version == "v1" {
        // API version v1 has its dependencies in `requirements.yaml`.
        metadata.dependencies = None;
    }
    let mut fields = Fields::default();
    metadata_fields(&metadata, &mut fields);
    file("Chart.yaml", yaml(&fields.0)?.as_bytes(), times.metadata)?;
    if chart.metadata.api_version == "v2" && chart.lock != JsonValue::Null {
        file("Chart.lock", yaml(&node(&chart.lock))?.as_bytes(), times.lock)?;
    }
    if let Some(values) = &chart.values_file {
        file("values.yaml", values, times.values)?;
    }
    if let Some(schema) = &chart.schema {
        serde_json::from_slice::<serde::de::IgnoredAny>(schema).map_err(|_| PackageError::Schema)?;
        file("values.schema.json", schema, times.schema)?;
    }
    for inner in chart.templates.iter().chain(&chart.files) {
        file(&inner.name, inner.data.read()?.as_bytes(), inner.modified)?;
    }
    for inner in &chart.dependencies {
        write_chart(tar, inner, &format!("{base}/charts/"))?;
    }
    Ok(())
}

fn write_file(tar: &mut Archive, name: &str, data: &[u8], modified: u64) -> Result<(), PackageError> {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    header.set_mtime(modified);
    header.set_uid(0);
    header.set_gid(0);
    header.set_device_major(0)?;
    header.set_device_minor(0)?;
    header.set_entry_type(tar::EntryType::Regular);
    if header.set_path(name).is_err() {
        // A long name needs an extra entry before the file.
        return Ok(tar.append_data(&mut header, name, data)?);
    }
    // Go writes the checksum with one digit less; this makes the archive byte-identical.
    header.set_cksum();
    let sum = header.cksum()?;
    header.as_old_mut().cksum = *format!("{sum:06o}\0 ").as_bytes().first_chunk().unwrap_or(&[b' '; 8]);
    Ok(tar.append(&header, data)?)
}

fn yaml(node: &Node) -> Result<String, PackageError> {
    fl_yaml::to_sigs_yaml(node, Dialect::Sigs).map_err(|e| PackageError::Yaml(e.go_text(Dialect::Sigs)))
}

/// Parses a values file, which must be a table or empty.
pub fn values_from_yaml(data: &[u8]) -> Result<JsonValue, DecodeError> {
    JsonValue::table_from_yaml(&decode::document(data)?)
}

/// Merges `over` into `base`: tables are merged key by key, everything else is replaced.
pub fn merge_values(base: JsonValue, over: &JsonValue) -> JsonValue {
    let (JsonValue::Map(mut entries), JsonValue::Map(new)) = (base, over) else {
        return match over {
            JsonValue::Map(_) => over.clone(),
            _ => JsonValue::Map(Vec::new()),
        };
    };
    for (key, value) in new {
        match entries.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) if matches!((&*old, value), (JsonValue::Map(_), JsonValue::Map(_))) => {
                *old = merge_values(std::mem::take(old), value);
            }
            Some((_, old)) => *old = value.clone(),
            None => entries.push((key.clone(), value.clone())),
        }
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    JsonValue::Map(entries)
}

impl Chart {
    /// Replaces the default values; returns `false` if the file has exactly this text already.
    pub fn set_default_values(&mut self, values: JsonValue) -> Result<bool, PackageError> {
        let empty = matches!(&values, JsonValue::Map(entries) if entries.is_empty());
        let text = if empty { String::new() } else { yaml(&node(&values))? };
        match &self.values_file {
            None => Err(PackageError::NoValues),
            Some(old) if old.as_slice() == text.as_bytes() => Ok(false),
            Some(_) => {
                self.values_file = Some(text.into_bytes());
                self.values = values;
                Ok(true)
            }
        }
    }
}

fn node(tree: &JsonValue) -> Node {
    match tree {
        JsonValue::Null => Node::null(),
        JsonValue::Bool(value) => Node::bool(*value),
        // Go's encoder writes whole numbers up to this size without an exponent.
        JsonValue::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => Node::int(*value as i64),
        JsonValue::Number(value) => Node::float(*value),
        JsonValue::Str(text) => Node::string(text.to_string()),
        JsonValue::List(items) => Node::seq(items.iter().map(node)),
        JsonValue::Map(entries) => {
            let mut out = Node::map();
            if let Some(map) = out.as_map_mut() {
                for (key, value) in entries {
                    map.insert(key.to_string(), node(value));
                }
            }
            out
        }
    }
}

/// Reads the metadata of a chart directory, including `requirements.yaml`, without loading the rest.
pub fn chart_metadata(files: &dyn Files) -> Result<Metadata, LoadError> {
    let read = |path: &str| {
        files
            .read(path, MAX_CHART_FILE_BYTES)
            .map_err(|source| LoadError::Read { path: path.to_owned(), source })
    };
    let mut metadata = Metadata::default();
    add_metadata(&mut metadata, "Chart.yaml", &read("Chart.yaml")?)?;
    let has_requirements = files.list("").is_ok_and(|l| l.iter().any(|e| e.name == "requirements.yaml"));
    if has_requirements {
        add_metadata(&mut metadata, "requirements.yaml", &read("requirements.yaml")?)?;
    }
    Ok(metadata)
}

/// Reads the metadata of a chart archive, including `requirements.yaml`. Every path and size is checked, but
/// the content of the other files is not.
pub fn archive_metadata(data: &[u8], limits: ArchiveLimits) -> Result<Metadata, LoadError> {
    let (files, _) = archive::read_bytes(data, limits)?;
    let mut metadata = None;
    for file in files {
        let name = match file.name.as_str() {
            "Chart.yaml" => "Chart.yaml",
            "requirements.yaml" => "requirements.yaml",
            _ => continue,
        };
        add_metadata(metadata.get_or_insert_with(Metadata::default), name, &file.data)?;
    }
    metadata.ok_or_else(|| LoadError::Archive("no 'Chart.yaml' found".to_owned()))
}

fn add_metadata(metadata: &mut Metadata, file: &'static str, data: &[u8]) -> Result<(), LoadError> {
    // Helm quotes the file name here, but not when it loads a whole chart.
    let unreadable = |why: DecodeError| LoadError::Archive(format!("cannot load '{file}': {why}"));
    let document = decode::document(data).map_err(unreadable)?;
    metadata.read(&document).map_err(unreadable)?;
    if metadata.api_version.is_empty() {
        metadata.api_version = "v1".to_owned();
    }
    Ok(())
}

/// The metadata of a chart as compact JSON, as stored in OCI registries.
pub fn metadata_json(metadata: &Metadata) -> Result<String, PackageError> {
    let mut fields = Fields::default();
    metadata_fields(metadata, &mut fields);
    let style = JsonStyle { escape_html: true, keep_order: true };
    fl_yaml::to_json(&fields.0, Dialect::Sigs, style)
        .map_err(|e| PackageError::Yaml(e.go_text(Dialect::Sigs)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loader, MemoryFiles};

    fn chart() -> Chart {
        let files: MemoryFiles = [
            ("Chart.yaml", "apiVersion: v2\nname: app\nversion: 1.0.0\nappVersion: 2\nextra: x\n"),
            ("values.yaml", "# kept\ncolor: red\ncount: 1000000\n"),
            ("templates/a.yaml", "a"),
            ("README.md", "hi"),
            ("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n"),
            (".helmignore", "*.tmp\n"),
            ("x.tmp", "no"),
        ]
        .into_iter()
        .collect();
        Loader::new().directory(&files).unwrap()
    }

    fn unpacked(archive: &[u8]) -> Vec<(String, String)> {
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        tar.entries()
            .unwrap()
            .map(|e| {
                let mut e = e.unwrap();
                let mut text = String::new();
                std::io::Read::read_to_string(&mut e, &mut text).unwrap();
                (e.path().unwrap().display().to_string(), text)
            })
            .collect()
    }

    #[test]
    fn package_contains_all_files() {
        let files = unpacked(&package(&chart()).unwrap());
        let names: Vec<&str> = files.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(
            names,
            [
                "app/Chart.yaml",
                "app/values.yaml",
                "app/templates/a.yaml",
                "app/.helmignore",
                "app/README.md",
                "app/charts/sub/Chart.yaml"
            ]
        );
        assert_eq!(files[0].1, "apiVersion: v2\nappVersion: \"2\"\nname: app\nversion: 1.0.0\n");
        assert_eq!(files[1].1, "# kept\ncolor: red\ncount: 1000000\n");
        assert_eq!(package(&chart()).unwrap(), package(&chart()).unwrap());
    }

    fn packed(files: &[(&str, &str)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (name, text) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    /// Recorded from source-controller: files keep the times of the archive they came from, and the header is
    /// Go's.
    #[test]
    fn times_and_headers_match_helm() {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (name, text) in
            [("app/Chart.yaml", "name: app\nversion: 1.0.0\n"), ("app/values.yaml", "a: 1\n"), ("app/x", "y")]
        {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mtime(1_700_000_000);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        let mut chart = Loader::new().archive(&tar.into_inner().unwrap().finish().unwrap()).unwrap();
        chart.set_default_values(values_from_yaml(b"a: 2\n").unwrap()).unwrap();
        let mut plain = Vec::new();
        let packed = package(&chart).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed.as_slice()), &mut plain).unwrap();
        for block in [0, 1024, 2048] {
            assert_eq!(&plain[block + 136..block + 148], b"14524770400\0", "the time");
            assert_eq!(&plain[block + 154..block + 156], b"\0 ", "the end of the checksum");
        }
        let members = tar::Archive::new(plain.as_slice()).entries().unwrap().filter(Result::is_ok).count();
        assert_eq!(members, 3);
    }

    #[test]
    fn metadata_is_read_without_the_other_files() {
        let read = |files: &[(&str, &str)]| archive_metadata(&packed(files), ArchiveLimits::default());
        let broken = [
            ("app/Chart.yaml", "name: app\nversion: 1.0.0\n"),
            ("app/values.yaml", "a: ["),
            ("app/charts/sub/values.yaml", "no chart"),
            ("app/requirements.yaml", "dependencies: [{name: dep, version: 1.x}]"),
        ];
        let metadata = read(&broken).unwrap();
        assert_eq!((metadata.name.as_str(), metadata.api_version.as_str()), ("app", "v1"));
        assert_eq!(metadata.dependencies.map(|d| d.len()), Some(1));
        assert!(Loader::new().archive(&packed(&broken)).is_err());
        let error = |files| read(files).unwrap_err().to_string();
        assert_eq!(error(&[("app/values.yaml", "a: 1")]), "no 'Chart.yaml' found");
        assert!(error(&[("app/Chart.yaml", "name: [")]).starts_with("cannot load 'Chart.yaml': "));
    }

    #[test]
    fn merged_values_replace_the_file() {
        let mut chart = chart();
        let merged = merge_values(
            chart.values.clone(),
            &values_from_yaml(b"color: blue\nnew: {a: [1, 2.5]}\n").unwrap(),
        );
        assert!(chart.set_default_values(merged.clone()).unwrap());
        let files = unpacked(&package(&chart).unwrap());
        assert_eq!(files[1].1, "color: blue\ncount: 1000000\nnew:\n  a:\n  - 1\n  - 2.5\n");
        assert!(!chart.set_default_values(merged).unwrap(), "written just so already");
    }

    #[test]
    fn names_outside_the_archive_are_rejected() {
        let mut bad = chart();
        bad.dependencies[0].metadata.name = "../evil".to_owned();
        assert!(package(&bad).is_err());
    }
}
