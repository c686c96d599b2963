//! `fluorite envsubst`: replaces `${VAR}` in what comes from stdin, line by line, as `flux envsubst` does.

use std::io::BufRead;

use anyhow::{anyhow, bail};
use fl_subst::{Error, Missing};

/// For example: `export REGION=eu; kustomize build . | fluorite envsubst --strict | kubectl apply -f -`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fail when a variable without default is not set in the environment; all of them are named
    #[arg(long)]
    strict: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let missing = if self.strict { Missing::Refuse } else { Missing::Empty };
        let mut unset = Vec::new();
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
                    crate::output::data(&expanded)?;
                }
                Ok(_) => {}
                Err(Error::Unset(names)) => {
                    let known = |name: &str, unset: &[fl_subst::Unset]| unset.iter().any(|u| u.name == name);
                    for mut name in names {
                        name.line = number;
                        if !known(&name.name, &unset) {
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
}
