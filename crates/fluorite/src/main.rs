//! One binary for everything: the engine, the embedded API server and the commands of `flux`.
//!
//! Called through a link named `flux` it presents itself as `flux`, so scripts and habits keep working.

mod commands;
mod output;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

/// GitOps delivery for Kubernetes in one binary.
#[derive(Debug, Parser)]
#[command(name = "fluorite", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    long_about = "Fluorite delivers what Git, OCI registries and Helm repositories hold to Kubernetes.\n\n\
It speaks Flux's language: the same custom resources, the same commands. Called as `flux` it is the flux command."
)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

/// The name this process was called by: `flux` through a link of that name, `fluorite` otherwise.
fn called_as() -> &'static str {
    let first = std::env::args_os().next().unwrap_or_default();
    match std::path::Path::new(&first).file_stem().and_then(|s| s.to_str()) {
        Some("flux") => "flux",
        _ => "fluorite",
    }
}

/// The command-line definition under the name the user typed; shell completion and docs use it too.
fn definition() -> clap::Command {
    let name = called_as();
    Cli::command().name(name).bin_name(name)
}

fn main() -> ExitCode {
    let matches = match definition().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // clap knows which stream and exit code help, version and usage errors want; flux exits 1 on bad usage.
            let code = u8::from(error.use_stderr());
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let run = Cli::from_arg_matches(&matches).map_err(anyhow::Error::from).and_then(|cli| cli.command.run());
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::failure(&error);
            ExitCode::FAILURE
        }
    }
}
