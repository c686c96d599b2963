//! Tasks of the repository, run as `cargo xtask TASK`. Each task is one file.

mod layers;

use anyhow::bail;

const USAGE: &str = "usage: cargo xtask TASK
  layers        check that crates depend only downwards and that pure engines stay pure";

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("layers") => layers::check(),
        _ => bail!("{USAGE}"),
    }
}
