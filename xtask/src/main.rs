//! Tasks of the repository, run as `cargo xtask TASK`. Each task is one file.

mod conformance;
mod elf;
mod generate;
mod kubeschema;
mod layers;
mod oracles;
mod paths;
mod size;
mod soak;
mod source_rules;
mod threats;

use anyhow::bail;

const USAGE: &str = "usage: cargo xtask TASK
  layers                 check that crates depend only downwards, that engines stay pure and that one crate names the Kubernetes client
  oracles [NAME…]        build the real tools that end-to-end tests and benchmarks compare with (needs Go)
  conformance [NAME…]    run the shared checkers on the release binary and hold them against conformance.toml
  generate               write the files that the program makes: docs/reference, deploy/manifests, the chart's CRDs
  soak [NAME…]           run the long forms of randomised tests: store, kill, history, watches, storms, decryptions
  size                   print the size of the shipped binary (profile dist) and its dependencies, and check its hardening
  threats                write the column of tests in docs/threats.md from the comments of the tests
  kubeschema             write the tables of built-in types: --reference DIR (documents of a real API server; needs Go)";

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    match args.first().map(String::as_str) {
        Some("layers") => layers::check(),
        Some("oracles") => oracles::build(rest),
        Some("conformance") => conformance::run(rest),
        Some("generate") => generate::write(),
        Some("soak") => soak::run(rest),
        Some("size") => size::print(),
        Some("threats") => threats::write(),
        Some("kubeschema") => kubeschema::run(rest),
        _ => bail!("{USAGE}"),
    }
}
