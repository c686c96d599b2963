//! `build artifact` and the commands that talk to registries.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::call::{Call, Outcome, action};
use crate::flag::{Flag, list, switch, text};
use crate::node::Node;
use crate::pack::{self, DEFAULT_IGNORE};
use crate::say;

const IGNORE: Flag = list("ignore-paths", "Paths to leave out, in .gitignore form").or(DEFAULT_IGNORE);
const LINKS: Flag = switch("resolve-symlinks", "Replace links by what they point to");

pub(crate) fn build_node() -> Node {
    Node::leaf("artifact", "Build the archive of an artifact", action(|call: Call| async move { build(&call) }))
        .flags(&[
            text("path", "Folder or file; - for stdin").short('p'),
            text("output", "File to write").or("artifact.tgz").short('o'),
            IGNORE,
            LINKS,
        ])
        .example("A folder", "build artifact --path ./deploy --output deploy.tgz")
}

/// What a path flag names, ready to be packed; temporary files live as long as this.
struct Input {
    path: PathBuf,
    _stdin: Option<tempfile::NamedTempFile>,
    _copy: Option<tempfile::TempDir>,
}

impl Input {
    fn of(call: &Call, complain: impl Fn(&str, &std::io::Error) -> String) -> anyhow::Result<Input> {
        let named = call.text("path");
        let stdin = if named == "-" { Some(pack::from_stdin()?) } else { None };
        let mut path = stdin.as_ref().map_or_else(|| PathBuf::from(named), |f| f.path().to_owned());
        if let Err(error) = std::fs::metadata(&path) {
            bail!("{}", complain(named, &error));
        }
        let mut copy = None;
        if call.on("resolve-symlinks") {
            let (temporary, target) = pack::without_links(&path).context("resolving symlinks failed")?;
            path = target;
            copy = Some(temporary);
        }
        Ok(Input { path, _stdin: stdin, _copy: copy })
    }
}

fn build(call: &Call) -> Outcome {
    if call.text("path").is_empty() {
        bail!("invalid path \"\"");
    }
    let input = Input::of(call, |path, _| format!("invalid path '{path}', must point to an existing directory or file"))?;
    let shown = if call.on("resolve-symlinks") { input.path.display().to_string() } else { call.text("path").to_owned() };
    say::action(format!("building artifact from {shown}"));
    let bytes = pack::pack(&input.path, call.list("ignore-paths")).context("building artifact failed, error")?;
    let output = Path::new(call.text("output"));
    std::fs::write(output, bytes).with_context(|| format!("building artifact failed, error: cannot write {}", output.display()))?;
    say::success(format!("artifact created at {}", output.display()));
    Ok(())
}
