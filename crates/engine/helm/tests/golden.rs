//! Every run of `golden/<case>/runs.txt` prints what helm printed; see `golden/README.md`.

use std::path::Path;
use std::rc::Rc;

use fl_gotemplate::{DEEP_STACK_BUDGET, Limits, on_deep_stack};
use fl_helm::{
    Capabilities, CompiledChart, DiskFiles, KubeVersion, Loader, Overrides, PrintOptions, ReleaseOptions,
    RenderOptions, SetKind,
};

/// A host whose clock and randomness are fixed.
struct FixedHost;

impl fl_sprig::Host for FixedHost {
    fn now(&self) -> (i64, u32) {
        (0, 0)
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(7);
    }
}

/// Does what the command does for the flags that the cases use.
fn run(case: &Path, arguments: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut words = arguments.split_whitespace();
    let mut free: Vec<&str> = Vec::new();
    let mut overrides = Overrides::new();
    let mut sets: Vec<(usize, SetKind, &str)> = Vec::new();
    let mut capabilities = Capabilities::default();
    let mut print = PrintOptions::default();
    let (mut namespace, mut is_upgrade, mut skip_schema) = ("default", false, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the flag");
        match word {
            "-n" => namespace = value(),
            "-f" => {
                let name = value();
                overrides.add_file(name, &std::fs::read(case.join(name))?)?;
            }
            "--set-json" => sets.push((0, SetKind::Json, value())),
            "--set" => sets.push((1, SetKind::Typed, value())),
            "--set-string" => sets.push((2, SetKind::String, value())),
            "--set-file" => sets.push((3, SetKind::File, value())),
            "--set-literal" => sets.push((4, SetKind::Literal, value())),
            "--kube-version" => capabilities.kube_version = KubeVersion::parse(value())?,
            "-a" => capabilities.api_versions.extend(value().split(',').map(str::to_owned)),
            "-s" => print.show_only.push(value().to_owned()),
            "--include-crds" => print.crds = true,
            "--no-hooks" => print.hooks = false,
            "--skip-tests" => print.tests = false,
            "--is-upgrade" => is_upgrade = true,
            "--skip-schema-validation" => skip_schema = true,
            other => free.push(other),
        }
    }
    sets.sort_by_key(|(order, ..)| *order);
    let mut read = |name: &str| std::fs::read(case.join(name)).map_err(|error| error.to_string());
    for (_, kind, text) in sets {
        overrides.set(kind, text, &mut read)?;
    }
    let (name, chart) = match free[..] {
        [name, chart] => (name, chart),
        _ => ("release-name", free[0]),
    };
    let chart = Loader::new().directory(&DiskFiles::open(&case.join(chart))?)?;
    let options = RenderOptions {
        release: ReleaseOptions { name: name.into(), namespace: namespace.into(), revision: 1, is_upgrade },
        capabilities,
        limits: Limits { stack: DEEP_STACK_BUDGET, ..Limits::default() },
        host: Rc::new(FixedHost),
        skip_schema,
        subchart_notes: false,
    };
    let compiled = CompiledChart::new(chart);
    let first = compiled.render(&overrides, &options, None)?.printed(&print)?;
    let again = compiled.render(&overrides, &options, None)?.printed(&print)?;
    assert_eq!(first, again, "a compiled chart renders the same twice");
    Ok(first)
}

fn check(case: &str) {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case);
    let runs = std::fs::read_to_string(case.join("runs.txt")).expect("the runs");
    for line in runs.lines() {
        let (name, arguments) = line.split_once(": ").expect("name: arguments");
        let got =
            on_deep_stack(|| run(&case, arguments).map_err(|error| error.to_string())).expect("a thread");
        match std::fs::read_to_string(case.join("want").join(format!("{name}.out"))) {
            Ok(want) => assert_eq!(got.as_deref(), Ok(want.as_str()), "{name}: {arguments}"),
            Err(_) => {
                let want =
                    std::fs::read_to_string(case.join("want").join(format!("{name}.err"))).expect("a golden");
                let got = got.expect_err("helm refuses this");
                // Helm prints notices before and a hint after the message.
                assert!(
                    want.contains(&format!("Error: {}", got.trim_end())),
                    "{name}: helm says\n{want}\nwe say\n{got}"
                );
            }
        }
    }
}

#[test]
fn web() {
    check("web");
}

#[test]
fn umbrella() {
    check("umbrella");
}

#[test]
fn edges() {
    check("edges");
}
