//! The engine with the arguments of `kustomize build`, for benchmarks and conformance checks without the
//! whole binary.
//!
//! `cargo run --release -p fl-kustomize --example kustomize -- kustomize build [--reorder none] DIR`

use std::io::Write;

use fl_kustomize::{Disk, LoadRestrictor, Options, Reorder, build};

fn main() -> std::process::ExitCode {
    let mut options = Options::default();
    let mut directory = ".".to_owned();
    let args = std::env::args().skip(1).flat_map(|a| a.split('=').map(str::to_owned).collect::<Vec<_>>());
    for arg in args {
        match arg.as_str() {
            "kustomize"
            | "build"
            | "--load-restrictor"
            | "--reorder"
            | "LoadRestrictionsRootOnly"
            | "legacy" => {}
            "LoadRestrictionsNone" => options.load_restrictor = LoadRestrictor::None,
            "none" => options.reorder = Reorder::None,
            _ => directory = arg,
        }
    }
    let text = build(&Disk, directory.as_ref(), &options)
        .map_err(|e| e.to_string())
        .and_then(|o| o.to_yaml().map_err(|e| e.to_string()));
    match text {
        Ok(text) => {
            let written = std::io::stdout().lock().write_all(text.as_bytes());
            if written.is_ok() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "✗ {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
