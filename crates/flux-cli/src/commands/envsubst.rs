//! `flux envsubst`.

use std::io::BufRead;

use anyhow::{anyhow, bail};
use fl_envsubst::Missing;

use crate::args::{Call, CommandResult, action};
use crate::command::{Node, Plain};
use crate::flag::switch;
use crate::logger;

pub(crate) fn envsubst_node() -> Node {
    Node::leaf(
        "envsubst",
        "Replace ${VAR} in stdin by environment variables",
        action(|call: Call| async move { envsubst(&call) }),
    )
    .plain(Plain::None)
    .flags(&[switch("strict", "Fail when a variable without default is not set")])
    .example("Between a build and an apply", "envsubst --strict < app.yaml | kubectl apply -f -")
}

/// Line by line, as flux does: lines before an error are printed, and the first error ends the command.
fn envsubst(call: &Call) -> CommandResult {
    let missing = if call.on("strict") { Missing::Refuse } else { Missing::Empty };
    let mut stdin = std::io::stdin().lock();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if stdin.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let Ok(text) = std::str::from_utf8(&line) else { bail!("line {number}: not valid UTF-8") };
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut expanded = fl_envsubst::expand_bytes(text, missing, |name| std::env::var(name).ok())
            .map_err(|error| anyhow!(error.flux_text()))?;
        expanded.push(b'\n');
        logger::bytes(&expanded);
    }
    Ok(())
}
