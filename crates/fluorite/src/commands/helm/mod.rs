//! `fluorite helm …`: the commands of `helm` that need no cluster.

mod chart_inflation;
mod flags;
mod host;
mod output_dir;
mod source;
mod template;

pub(crate) use chart_inflation::Inflator;
pub(crate) use flags::like_pflag;

/// Work with Helm charts
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Render the templates of a chart and print the manifests
    // `--version` is the chart's here, as in helm.
    #[command(disable_version_flag = true, args_override_self = true)]
    Template(Box<template::Args>),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Template(args) => args.run(),
        }
    }
}
