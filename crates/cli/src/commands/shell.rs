//! `envsubst` and `completion`: what shells and pipes need.

use std::io::BufRead;

use anyhow::{anyhow, bail};
use clap_complete::Shell;
use fl_subst::{Error, Missing, Unset};

use crate::call::{Call, Outcome, action};
use crate::flag::switch;
use crate::node::{Node, Plain};
use crate::say;

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

fn envsubst(call: &Call) -> Outcome {
    let missing = if call.on("strict") { Missing::Refuse } else { Missing::Empty };
    let mut unset: Vec<Unset> = Vec::new();
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
        match fl_subst::expand_bytes(text, missing, |name| std::env::var(name).ok()) {
            Ok(mut expanded) if unset.is_empty() => {
                expanded.push(b'\n');
                say::bytes(&expanded);
            }
            Ok(_) => {}
            Err(Error::Unset(names)) => {
                for mut name in names {
                    name.line = number;
                    if !unset.iter().any(|u| u.name == name.name) {
                        unset.push(name);
                    }
                }
            }
            Err(error) => return Err(anyhow!(error.flux_text())),
        }
    }
    match unset.len() {
        0 => Ok(()),
        // A single one reads as flux words it.
        1 => Err(anyhow!(Error::Unset(unset).flux_text())),
        _ => Err(anyhow!(Error::Unset(unset))),
    }
}

pub(crate) fn completion_node() -> Node {
    let one = |name, shell| {
        let about = format!("Print the completion script for {name}");
        Node::leaf(name, &about, action(move |call: Call| async move { completion(call, shell) }))
    };
    Node::group(
        "completion",
        "Print the completion script for a shell",
        vec![
            one("bash", Shell::Bash)
                .example("Load it for this session", "completion bash > /tmp/c && . /tmp/c"),
            one("fish", Shell::Fish),
            one("powershell", Shell::PowerShell),
            one("zsh", Shell::Zsh),
        ],
    )
}

fn completion(call: Call, shell: Shell) -> Outcome {
    let Some(mut definition) = call.definition else { bail!("no program to complete") };
    let name = definition.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, name, &mut script);
    say::bytes(&script);
    Ok(())
}
