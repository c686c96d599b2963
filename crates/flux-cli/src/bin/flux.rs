//! The commands of flux alone, without the engine: quick to build and to try.

use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};
use fl_flux_cli::{Flux, Wanted};

fn definition(wanted: &Wanted) -> Command {
    let version =
        Arg::new("version").short('v').long("version").action(ArgAction::Version).help("Print version");
    let program = Command::new("flux")
        .version(fl_flux_cli::VERSION_LINE)
        .disable_version_flag(true)
        .arg(version)
        .arg_required_else_help(true);
    Flux::augment(program, "flux", wanted)
}

fn main() -> ExitCode {
    fl_flux_cli::program(definition, |_| ExitCode::FAILURE)
}
