//! One binary for everything: the engine, the embedded API server and the commands of `flux`.
//!
//! Called through a link named `flux` it presents itself as `flux`, so scripts and habits keep working.

mod commands;
mod output;
mod remote_bases;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches, Parser};

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

/// The definition of the commands that are not flux's.
fn own_definition(name: &'static str) -> clap::Command {
    let version =
        Arg::new("version").short('v').long("version").action(ArgAction::Version).help("Print version");
    let own = Cli::command().name(name).bin_name(name).disable_version_flag(true).arg(version);
    // Called as flux, it answers as the flux whose behaviour it has.
    let own = if name == "flux" { own.version(fl_cli::VERSION_LINE) } else { own };
    commands::refined(own)
}

/// The command-line definition under a name; shell completion and docs use it too.
fn definition(name: &'static str) -> clap::Command {
    fl_cli::Flux::augment(own_definition(name), name)
}

/// The matches when one of our own commands was called. Flux's tree of commands is large, and building it takes longer than
/// rendering a small chart; what does not need it does not pay for it.
fn own_matches(name: &'static str, args: &[OsString]) -> Option<clap::error::Result<ArgMatches>> {
    let own = own_definition(name);
    let word = args.get(1)?.to_str()?;
    own.find_subcommand(word)?;
    Some(own.try_get_matches_from(args))
}

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    match own_matches(called_as(), &args) {
        Some(Ok(matches)) => return run_own(&matches),
        Some(Err(error)) => return fl_cli::usage_error(&error, &definition(called_as())),
        None => {}
    }
    let definition = definition(called_as());
    if args.get(1).is_some_and(|word| word == "__complete") {
        let words: Vec<String> = args[2..].iter().map(|w| w.to_string_lossy().into_owned()).collect();
        fl_cli::complete(&definition, &words);
        return ExitCode::SUCCESS;
    }
    if let Some(code) = fl_cli::run_plugin(&args, &|name| definition.find_subcommand(name).is_some()) {
        return code;
    }
    let matches = match definition.clone().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return fl_cli::usage_error(&error, &definition),
    };
    if let Some(flux) = fl_cli::Flux::from_matches(&matches) {
        return flux.run(definition);
    }
    run_own(&matches)
}

fn run_own(matches: &ArgMatches) -> ExitCode {
    let run = Cli::from_arg_matches(matches).map_err(anyhow::Error::from).and_then(|cli| cli.command.run());
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::failure(&error);
            ExitCode::FAILURE
        }
    }
}
