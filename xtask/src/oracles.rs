//! Builds the upstream tools from the Go module proxy into a cache directory. Existing ones are kept.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::paths;

const KUBERNETES: &str = "1.34.4";

/// How a tool is built.
enum Recipe {
    /// `go install MODULE/PATH@VERSION`.
    Install { package: &'static str, version: &'static str },
    /// A command whose module cannot be installed by name because of its replace lines.
    Package { package: &'static str, version: &'static str },
    /// A command of k8s.io/kubernetes, whose staging modules need replace lines.
    Kubernetes { command: &'static str },
    /// A three-line main package around a module's entry point.
    Wrapper { module: &'static str, version: &'static str, main: &'static str },
}

const TOOLS: &[(&str, Recipe)] = &[
    (
        "etcd",
        Recipe::Wrapper {
            module: "go.etcd.io/etcd/server/v3",
            version: "v3.6.8",
            main: "package main\nimport (\"os\"; \"go.etcd.io/etcd/server/v3/etcdmain\")\nfunc main() { etcdmain.Main(os.Args) }\n",
        },
    ),
    ("kube-apiserver", Recipe::Kubernetes { command: "kube-apiserver" }),
    ("kube-controller-manager", Recipe::Kubernetes { command: "kube-controller-manager" }),
    ("kube-scheduler", Recipe::Kubernetes { command: "kube-scheduler" }),
    ("kubectl", Recipe::Kubernetes { command: "kubectl" }),
    ("kustomize", Recipe::Install { package: "sigs.k8s.io/kustomize/kustomize/v5", version: "v5.8.1" }),
    ("helm", Recipe::Install { package: "helm.sh/helm/v3/cmd/helm", version: "v3.22.0" }),
    ("kwok", Recipe::Install { package: "sigs.k8s.io/kwok/cmd/kwok", version: "v0.7.0" }),
    (
        "registry",
        Recipe::Package {
            package: "github.com/distribution/distribution/v3/cmd/registry",
            version: "v3.0.0",
        },
    ),
];

pub(crate) fn build(names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|n| !TOOLS.iter().any(|(t, _)| t == n)) {
        let known: Vec<&str> = TOOLS.iter().map(|(name, _)| *name).collect();
        bail!("no recipe for `{unknown}`; there are: {}", known.join(", "));
    }
    let bin = paths::oracles()?;
    std::fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    for (name, recipe) in TOOLS {
        if !names.is_empty() && !names.iter().any(|n| n == name) {
            continue;
        }
        if bin.join(name).is_file() {
            println!("oracles: {name} is there");
            continue;
        }
        println!("oracles: building {name}");
        let work = scratch(name)?;
        let built = recipe.build(name, &bin, &work);
        let _ = std::fs::remove_dir_all(&work);
        built.with_context(|| format!("cannot build {name}"))?;
    }
    Ok(())
}

fn scratch(name: &str) -> anyhow::Result<std::path::PathBuf> {
    let dir = std::env::temp_dir().join(format!("fluorite-oracle-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn go(work: &Path, bin: &Path, args: &[&str]) -> anyhow::Result<String> {
    let run = Command::new("go")
        .args(args)
        .current_dir(work)
        .env("CGO_ENABLED", "0")
        .env("GOBIN", bin)
        .env("GOFLAGS", "-buildvcs=false")
        .output()
        .context("cannot run go; the oracles need a Go toolchain")?;
    if !run.status.success() {
        bail!("go {}: {}", args.join(" "), String::from_utf8_lossy(&run.stderr));
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}

impl Recipe {
    fn build(&self, name: &str, bin: &Path, work: &Path) -> anyhow::Result<()> {
        let out = bin.join(name);
        let out = out.to_str().context("the cache path is not UTF-8")?;
        match self {
            Recipe::Install { package, version } => {
                go(work, bin, &["install", &format!("{package}@{version}")])?;
            }
            Recipe::Package { package, version } => {
                std::fs::write(work.join("go.mod"), "module local\ngo 1.26\n")?;
                go(work, bin, &["get", &format!("{package}@{version}")])?;
                go(work, bin, &["build", "-ldflags", "-s -w", "-o", out, package])?;
            }
            Recipe::Wrapper { module, version, main } => {
                std::fs::write(
                    work.join("go.mod"),
                    format!("module local\ngo 1.26\nrequire {module} {version}\n"),
                )?;
                std::fs::write(work.join("main.go"), main)?;
                go(work, bin, &["mod", "tidy"])?;
                go(work, bin, &["build", "-ldflags", "-s -w", "-o", out, "."])?;
            }
            Recipe::Kubernetes { command } => {
                kubernetes_module(work, bin, command)?;
                let version = "k8s.io/component-base/version";
                let flags = format!(
                    "-s -w -X {version}.gitVersion=v{KUBERNETES} -X {version}.gitMajor=1 -X {version}.gitMinor=34"
                );
                go(
                    work,
                    bin,
                    &["build", "-ldflags", &flags, "-o", out, &format!("k8s.io/kubernetes/cmd/{command}")],
                )?;
            }
        }
        if !bin.join(name).is_file() {
            bail!("the build left no binary");
        }
        Ok(())
    }
}

/// A module that requires k8s.io/kubernetes, with the staging modules (version v0.0.0 there) replaced by their releases.
fn kubernetes_module(work: &Path, bin: &Path, command: &str) -> anyhow::Result<()> {
    let head = format!("module local\ngo 1.26\nrequire k8s.io/kubernetes v{KUBERNETES}\n");
    std::fs::write(work.join("go.mod"), &head)?;
    let found = go(work, bin, &["mod", "download", "-json", &format!("k8s.io/kubernetes@v{KUBERNETES}")])?;
    let found: serde_json::Value = serde_json::from_str(&found)?;
    let manifest = Path::new(found["GoMod"].as_str().context("go mod download named no GoMod")?);
    let staged = KUBERNETES.strip_prefix("1.").context("the Kubernetes version does not start with 1.")?;
    let mut replaced = head;
    for line in std::fs::read_to_string(manifest)?.lines() {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        if let (Some(module), Some("v0.0.0")) = (words.next(), words.next()) {
            replaced.push_str(&format!("replace {module} => {module} v0.{staged}\n"));
        }
    }
    std::fs::write(work.join("go.mod"), replaced)?;
    let import = if command == "kubectl" {
        "k8s.io/kubectl/pkg/cmd".to_owned()
    } else {
        format!("k8s.io/kubernetes/cmd/{command}/app")
    };
    std::fs::write(work.join("main.go"), format!("package main\nimport _ \"{import}\"\nfunc main() {{}}\n"))?;
    go(work, bin, &["mod", "tidy"])?;
    // `tidy` drops what the stub does not import; the command's own package may need more.
    go(work, bin, &["get", &format!("k8s.io/kubernetes/cmd/{command}@v{KUBERNETES}")])?;
    Ok(())
}
