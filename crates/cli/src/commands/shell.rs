//! `envsubst` and `completion`: what shells and pipes need.

use std::io::BufRead;

use anyhow::{anyhow, bail};
use fl_subst::Missing;

use crate::call::{Call, Outcome, action};
use crate::flag::switch;
use crate::node::{Node, Plain};
use crate::{Wanted, say};

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

/// Line by line: what stands before a mistake is printed, as a pipe has seen it by then, and the first mistake ends it.
fn envsubst(call: &Call) -> Outcome {
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
        let mut expanded = fl_subst::expand_bytes(text, missing, |name| std::env::var(name).ok())
            .map_err(|error| anyhow!(error.flux_text()))?;
        expanded.push(b'\n');
        say::bytes(&expanded);
    }
    Ok(())
}

/// The scripts leave the thinking to the program itself (see [`crate::complete`]); `PROGRAM` stands for its name.
const BASH: &str = r#"_PROGRAM() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _PROGRAM PROGRAM
"#;
const ZSH: &str = r#"#compdef PROGRAM
_PROGRAM() {
    local -a items
    local line
    for line in ${(f)"$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
        items+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#items )); then
        _describe 'PROGRAM' items
    else
        _files
    fi
}
compdef _PROGRAM PROGRAM
"#;
const FISH: &str = r#"function __PROGRAM_complete
    set -l words (commandline -opc)
    PROGRAM __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c PROGRAM -a '(__PROGRAM_complete)'
"#;
const POWERSHELL: &str = r#"Register-ArgumentCompleter -Native -CommandName PROGRAM -ScriptBlock {
    param($word, $line, $cursor)
    $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    if ($word -eq '') { $words += '""' }
    PROGRAM __complete @words 2>$null | ForEach-Object {
        $parts = $_ -split "`t", 2
        $meaning = if ($parts.Count -gt 1) { $parts[1] } else { $parts[0] }
        [System.Management.Automation.CompletionResult]::new($parts[0], $parts[0], 'ParameterValue', $meaning)
    }
}
"#;

pub(crate) fn completion_node() -> Node {
    let one = |name, script: &'static str| {
        let about = format!("Print the completion script for {name}");
        Node::leaf(name, &about, action(move |call: Call| async move { completion(&call, script) }))
    };
    Node::group(
        "completion",
        "Print the completion script for a shell",
        vec![
            one("bash", BASH).example("Load it for this session", "completion bash > /tmp/c && . /tmp/c"),
            one("fish", FISH),
            one("powershell", POWERSHELL),
            one("zsh", ZSH),
        ],
    )
}

fn completion(call: &Call, script: &str) -> Outcome {
    let Some(definition) = call.definition else { bail!("no program to complete") };
    say::data(&script.replace("PROGRAM", definition(&Wanted::NamedIn(Vec::new())).get_name()));
    Ok(())
}
