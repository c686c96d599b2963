//! Threats D: malicious charts, values and schemas end with an error, never with a crash, a read outside the
//! chart or unbounded work.

use std::io::Write;
use std::rc::Rc;
use std::time::Instant;

use fl_gotemplate::{DEEP_STACK_BUDGET, Limits, Value, on_deep_stack};
use fl_helm::{
    ArchiveLimits, Capabilities, CompiledChart, DiskFiles, Links, Loader, MemoryFiles, Overrides, Release,
    ReleaseOptions, RenderOptions, SetKind,
};

struct FixedHost;

impl fl_sprig::Host for FixedHost {
    fn now(&self) -> (i64, u32) {
        (0, 0)
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(7);
    }
}

/// D05: `lookup` uses the identity behind this trait and nothing else.
struct Tenant;

impl fl_sprig::Host for Tenant {
    fn now(&self) -> (i64, u32) {
        (0, 0)
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(7);
    }

    fn lookup(&self, _: &str, kind: &str, namespace: &str, name: &str) -> Result<Value, String> {
        Err(format!("tenant may not read {kind} {namespace}/{name}"))
    }
}

const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.0.0\n";

fn options(host: Rc<dyn fl_sprig::Host>) -> RenderOptions {
    RenderOptions {
        release: ReleaseOptions { name: "r".into(), namespace: "ns".into(), revision: 1, is_upgrade: false },
        capabilities: Capabilities::default(),
        limits: Limits { stack: DEEP_STACK_BUDGET, ..Limits::default() },
        host,
        skip_schema: false,
        subchart_notes: false,
    }
}

fn render(files: &[(&str, &str)]) -> Result<Release, String> {
    let files: MemoryFiles = files.iter().map(|(path, text)| (*path, *text)).collect();
    on_deep_stack(|| {
        let chart = Loader::new().directory(&files).map_err(|error| error.to_string())?;
        let compiled = CompiledChart::new(chart);
        compiled
            .render(&Overrides::new(), &options(Rc::new(FixedHost)), None)
            .map_err(|error| error.to_string())
    })
    .expect("a thread")
}

fn archive(entries: &[(&str, &[u8], tar::EntryType)]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, data, kind) in entries {
        let mut header = tar::Header::new_gnu();
        // Set by hand: the builder rejects these names.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(data.len() as u64);
        header.set_mode(0o6777);
        header.set_entry_type(*kind);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").expect("short");
        }
        header.set_cksum();
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(data);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    gzip(&tar)
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn a01_archives_with_outside_paths_are_rejected() {
    let file = tar::EntryType::Regular;
    for bad in ["c/../../x", "c//etc/x", "c/..", "c/C:/x", "c\\..\\..\\x", "Chart.yaml", "x"] {
        let data = archive(&[("c/Chart.yaml", CHART.as_bytes(), file), (bad, b"x".as_slice(), file)]);
        assert!(Loader::new().archive(&data).is_err(), "{bad}");
    }
}

#[test]
fn a02_a03_links_and_devices_become_plain_empty_files() {
    let mut entries = vec![("c/Chart.yaml", CHART.as_bytes(), tar::EntryType::Regular)];
    let kinds = [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Char, tar::EntryType::Fifo];
    entries.extend(kinds.iter().map(|kind| ("c/values.yaml", b"".as_slice(), *kind)));
    entries.push(("c/passwd", b"".as_slice(), tar::EntryType::Symlink));
    let chart = Loader::new().archive(&archive(&entries)).expect("only odd entries");
    assert!(chart.files.iter().all(|file| file.data.read().expect("in memory").is_empty()));
}

#[test]
fn a05_decompression_bombs_stop_at_the_limit() {
    let small = ArchiveLimits { total: 1 << 20, file: 1 << 19, entries: 50 };
    let zeros = vec![0; 2 << 20];
    let bomb = archive(&[("c/big", zeros.as_slice(), tar::EntryType::Regular)]);
    assert!(Loader::with_limits(small).archive(&bomb).is_err());
    let many = vec![("c/x", b"".as_slice(), tar::EntryType::Regular); 60];
    assert!(Loader::with_limits(small).archive(&archive(&many)).is_err());
    // Nested archives share one limit.
    let mut inner = archive(&[("c/Chart.yaml", CHART.as_bytes(), tar::EntryType::Regular)]);
    for _ in 0..40 {
        let entries = [
            ("c/Chart.yaml", CHART.as_bytes(), tar::EntryType::Regular),
            ("c/charts/c.tgz", inner.as_slice(), tar::EntryType::Regular),
        ];
        inner = archive(&entries);
    }
    assert!(Loader::new().archive(&inner).is_err(), "nested too deep");
    for damaged in [&bomb[..bomb.len() / 2], b"\x1f\x8b\x08", b"", b"PK\x03\x04"] {
        assert!(Loader::new().archive(damaged).is_err());
    }
}

/// D01: chart name and version become file names.
#[test]
fn d01_paths_as_chart_name_or_version_are_rejected() {
    for (name, version) in [
        (".", "1.0.0"),
        ("..", "1.0.0"),
        ("a/b", "1.0.0"),
        ("/etc", "1.0.0"),
        ("c", "1.0.0/../x"),
        ("c", "../1"),
        ("", "1.0.0"),
    ] {
        let chart = format!("apiVersion: v2\nname: {name:?}\nversion: {version:?}\n");
        assert!(render(&[("Chart.yaml", &chart)]).is_err(), "{name} {version}");
    }
}

/// D02: reads do not leave the chart. `fl-fluorite` tests that writes follow no symlink.
#[cfg(unix)]
#[test]
fn d02_links_out_of_the_chart_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let chart = folder.path().join("chart");
    std::fs::create_dir_all(chart.join("templates")).expect("folders");
    std::fs::write(chart.join("Chart.yaml"), CHART).expect("a file");
    std::fs::write(folder.path().join("secret"), "a: 1").expect("a file");
    for link in ["values.yaml", "Chart.lock", "templates/x.yaml", "templates/dir"] {
        let target =
            if link.ends_with("dir") { folder.path().to_owned() } else { folder.path().join("secret") };
        std::os::unix::fs::symlink(target, chart.join(link)).expect("a link");
        let loaded = DiskFiles::open(&chart).map(|files| Loader::new().directory(&files));
        assert!(loaded.expect("the folder").is_err(), "{link}");
        std::fs::remove_file(chart.join(link)).expect("the link");
    }
    // Symlinks inside the chart are allowed, with a notice.
    std::fs::write(chart.join("real.yaml"), "a: 1").expect("a file");
    std::os::unix::fs::symlink("real.yaml", chart.join("values.yaml")).expect("a link");
    let mut loader = Loader::new();
    loader.directory(&DiskFiles::open(&chart).expect("the folder")).expect("a chart");
    assert_eq!(loader.notices().len(), 1);
    // A loop of directories ends.
    std::os::unix::fs::symlink(".", chart.join("templates/again")).expect("a link");
    assert!(Loader::new().directory(&DiskFiles::open(&chart).expect("the folder")).is_err());
}

/// `helm template` follows a symlink in `charts/` to another chart, with a notice; the controllers do not.
#[cfg(unix)]
#[test]
fn subcharts_may_be_linked_where_the_caller_allows_it() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().expect("a folder");
    let place = |path: &str| folder.path().join(path);
    for (path, text) in [
        ("chart/Chart.yaml", CHART),
        ("chart/charts/_README.md", "x"),
        ("library/Chart.yaml", "apiVersion: v2\nname: library\nversion: 1.0.0\n"),
        ("library/templates/a.yaml", "a: 1"),
        ("deeper/Chart.yaml", "apiVersion: v2\nname: deeper\nversion: 1.0.0\n"),
        ("other/secret", "a: 1"),
    ] {
        std::fs::create_dir_all(place(path).parent().expect("a parent")).expect("folders");
        std::fs::write(place(path), text).expect("a file");
    }
    let load = |links: Links| {
        let mut loader = Loader::new();
        let chart = loader.directory(&DiskFiles::with_links(&place("chart"), links).expect("the folder"));
        chart.map(|chart| (chart, loader.notices().to_vec()))
    };
    std::fs::create_dir_all(place("library/charts")).expect("a folder");
    symlink("../../deeper", place("library/charts/deeper")).expect("a link");
    symlink("../../library", place("chart/charts/library")).expect("a link");
    assert!(load(Links::Inside).is_err());
    let (chart, notices) = load(Links::Subcharts).expect("a chart");
    assert_eq!(chart.dependencies.len(), 1);
    assert_eq!(chart.dependencies[0].dependencies.len(), 1);
    let notice = notices.iter().find(|n| n.contains("charts/library resolves to")).expect("a notice");
    assert!(notice.starts_with("found symbolic link in path: "), "{notice}");
    // Symlinks in the other chart must not lead out of it, and only charts are followed.
    symlink(place("other/secret"), place("library/values.yaml")).expect("a link");
    assert!(load(Links::Subcharts).is_err());
    std::fs::remove_file(place("library/values.yaml")).expect("the link");
    load(Links::Subcharts).expect("whole again");
    for (link, target) in
        [("chart/charts/other", "../../other"), ("chart/charts/x.yaml", "../../other/secret")]
    {
        symlink(target, place(link)).expect("a link");
        assert!(load(Links::Subcharts).is_err(), "{link}");
        std::fs::remove_file(place(link)).expect("the link");
    }
}

#[test]
fn d03_endless_templates_stop_with_their_name() {
    for template in [
        "{{ define \"x\" }}{{ include \"x\" . }}{{ end }}{{ include \"x\" . }}",
        "{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}",
        "{{ range until 1000000000 }}x{{ end }}",
        "{{ range 1000000000 }}{{ range 1000000000 }}{{ end }}{{ end }}",
        "{{ repeat 1000000000 \"x\" }}",
        "{{ $x := \"0123456789\" }}{{ range until 60 }}{{ $x = printf \"%s%s\" $x $x }}{{ end }}{{ $x }}",
        "{{ $m := dict }}{{ $_ := set $m \"m\" $m }}{{ toJson $m }}{{ $m }}",
        "{{ tpl \"{{ tpl . . }}\" \"{{ tpl . . }}\" }}",
    ] {
        let start = Instant::now();
        let outcome = render(&[("Chart.yaml", CHART), ("templates/bad.yaml", template)]);
        if !template.contains("toJson") && !template.starts_with("{{ tpl") {
            let error = outcome.expect_err(template);
            assert!(error.contains("c/templates/bad.yaml"), "{error}");
        }
        assert!(start.elapsed().as_secs() < 60, "{template} took {:?}", start.elapsed());
    }
}

#[test]
fn d04_environment_network_and_outside_files_are_unreachable() {
    for template in ["{{ env \"HOME\" }}", "{{ expandenv \"$HOME\" }}"] {
        assert!(render(&[("Chart.yaml", CHART), ("templates/a.yaml", template)]).is_err(), "{template}");
    }
    let template = "a: [{{ .Files.Get \"../secret\" | quote }}, {{ .Files.Get \"/etc/passwd\" | quote }}]\nb: {{ getHostByName \"localhost\" | quote }}";
    let release = render(&[("Chart.yaml", CHART), ("templates/a.yaml", template)]).expect("nothing is found");
    assert_eq!(release.manifests[0].content, "a: [\"\", \"\"]\nb: \"\"");
}

#[test]
fn d05_lookup_uses_only_the_callers_identity() {
    let files: MemoryFiles =
        [("Chart.yaml", CHART), ("templates/a.yaml", "{{ lookup \"v1\" \"Secret\" \"kube-system\" \"x\" }}")]
            .into_iter()
            .collect();
    let chart = Loader::new().directory(&files).expect("a chart");
    let error = CompiledChart::new(chart).render(&Overrides::new(), &options(Rc::new(Tenant)), None);
    assert!(error.expect_err("refused").to_string().contains("tenant may not read Secret kube-system/x"));
}

#[test]
fn d06_schemas_with_external_references_are_rejected() {
    let schema = r#"{"$ref": "https://example.com/values.json"}"#;
    assert!(render(&[("Chart.yaml", CHART), ("values.schema.json", schema)]).is_err());
}

/// D09: rejected before memory is allocated; `set_memory.rs` measures it.
#[test]
fn d09_huge_indexes_and_deep_paths_are_rejected() {
    let deep_list = format!("a{}=1", "[0]".repeat(100_000));
    let deep_map = format!("{}=1", vec!["a"; 100_000].join("."));
    let mixed = format!("a{}=1", "[0].a".repeat(50_000));
    for text in [
        "a[1000000000]=1",
        "a[65537]=1",
        "a[-1]=1",
        "a[9223372036854775808]=1",
        &deep_list,
        &deep_map,
        &mixed,
    ] {
        for kind in [SetKind::Typed, SetKind::String, SetKind::Json, SetKind::Literal] {
            let outcome = Overrides::new().set(kind, text, &mut |_| Err("no files".into()));
            assert!(outcome.is_err(), "{}", &text[..text.len().min(40)]);
        }
    }
}

#[test]
fn d12_dependencies_by_file_address_are_not_followed() {
    let chart =
        format!("{CHART}dependencies: [{{name: other, version: 1.0.0, repository: \"file:///etc\"}}]\n");
    let error = render(&[("Chart.yaml", &chart)]).expect_err("it is not in charts/");
    assert!(error.contains("missing in charts/ directory: other"), "{error}");
}

#[test]
fn template_errors_have_file_line_and_expression() {
    let error = render(&[("Chart.yaml", CHART), ("templates/a.yaml", "a: 1\nb: {{ .Values.x.y.z }}\n")])
        .expect_err("nil");
    assert!(error.contains("c/templates/a.yaml:2:") && error.contains(".Values.x.y.z"), "{error}");
}

/// The excerpt of the error that a chart with this template gives.
fn excerpt(template: &str, values: &str) -> String {
    let files: MemoryFiles = [("Chart.yaml", CHART), ("templates/a.yaml", template), ("values.yaml", values)]
        .into_iter()
        .collect();
    let chart = CompiledChart::new(Loader::new().directory(&files).expect("a chart"));
    let options = RenderOptions { limits: Limits::default(), ..options(Rc::new(FixedHost)) };
    let error = chart.render(&Overrides::new(), &options, None).expect_err("the template is wrong");
    error.excerpt().expect("a template failed")
}

#[test]
fn template_error_excerpts_show_line_and_values() {
    let shown = excerpt("a: 1\nb: {{ .Values.x.y.z }}\n", "x: {}\n");
    assert!(shown.contains("--> c/templates/a.yaml:2"), "{shown}");
    assert!(shown.contains("2 | b: {{ .Values.x.y.z }}\n"), "{shown}");
    assert!(shown.ends_with("= .Values.x.y is nil"), "{shown}");
    let shown = excerpt("a: {{ .Values.count | trimPrefix \"v\" }}\n", "count: 7\n");
    assert!(shown.ends_with("= the value piped in is 7 (float64)"), "{shown}");
    let shown = excerpt("a: {{ required \"give s\" .Values.s }}\n", "s: \"\"\n");
    assert!(shown.ends_with("= .Values.s is \"\""), "{shown}");
    let inner = "{{ define \"p\" }}\n{{ .Values.name.first }}{{ end }}\na: {{ include \"p\" . }}\n";
    let shown = excerpt(inner, "name: bob\n");
    assert!(shown.contains("a.yaml:2") && shown.ends_with("= .Values.name is \"bob\""), "{shown}");
    let shown = excerpt("a: {{ nonsense }}\n", "");
    assert!(shown.contains("1 | a: {{ nonsense }}"), "{shown}");
    let shown = excerpt("a: {{ .Values.v }}\n  b: c: d\n", "v: 5\n");
    assert!(shown.contains("line 2 of the document") && shown.contains("1 | a: 5\n"), "{shown}");
}

/// A loaded chart is shared by many reconciliations.
#[test]
fn compiled_charts_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<CompiledChart>();
    shared::<fl_helm::Error>();
}
