//! One binary for everything: the engine, the embedded API server and the commands of `flux`.
//!
//! Called through a link named `flux` it presents itself as `flux`, so scripts and habits keep working.

mod commands;
mod output;

use std::process::ExitCode;

use clap::{Arg, ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};
use fl_flux_cli::{Flux, Wanted};

/// GitOps delivery for Kubernetes in one binary.
#[derive(Debug, Parser)]
#[command(name = "fluorite", version, arg_required_else_help = true)]
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

/// The command-line definition with the wanted commands; shell completion and docs use it too.
fn definition(wanted: &Wanted) -> clap::Command {
    named(called_as(), wanted)
}

fn named(name: &'static str, wanted: &Wanted) -> clap::Command {
    let version =
        Arg::new("version").short('v').long("version").action(ArgAction::Version).help("Print version");
    let own = match wanted {
        // None of ours among the words: leave out their flags.
        Wanted::NamedIn(words) if !words.iter().any(|word| commands::Command::has_subcommand(word)) => {
            clap::Command::new(name).version(env!("CARGO_PKG_VERSION"))
        }
        _ => commands::refined(Cli::command()),
    };
    let own = own.name(name).bin_name(name).disable_version_flag(true).arg(version);
    // Called as flux, it answers as the flux whose behaviour it has.
    let own = if name == "flux" { own.version(fl_flux_cli::VERSION_LINE) } else { own };
    Flux::augment(own, name, wanted)
}

fn main() -> ExitCode {
    fl_flux_cli::program(definition, |matches| {
        let run =
            Cli::from_arg_matches(matches).map_err(anyhow::Error::from).and_then(|cli| cli.command.run());
        match run {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                output::failure(&error);
                ExitCode::FAILURE
            }
        }
    })
}
