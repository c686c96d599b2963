//! `flux completion`.

use anyhow::bail;

use crate::args::{Call, CommandResult, action};
use crate::command::Node;
use crate::{Wanted, logger};

/// The scripts call the program itself for completions (see [`crate::completion`]); `PROGRAM` stands for its name.
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

fn completion(call: &Call, script: &str) -> CommandResult {
    let Some(definition) = call.definition else { bail!("no program to complete") };
    logger::data(&script.replace("PROGRAM", definition(&Wanted::NamedIn(Vec::new())).get_name()));
    Ok(())
}
