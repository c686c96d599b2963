//! The commands of flux alone, without the engine: quick to build and to try.

use std::process::ExitCode;

use clap::Command;
use fl_cli::Flux;

fn main() -> ExitCode {
    let definition = Flux::augment(Command::new("flux").version("2.9.5").subcommand_required(false), "flux");
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(code) = fl_cli::run_plugin(&args, &|name| definition.find_subcommand(name).is_some()) {
        return code;
    }
    let mut help = definition.clone();
    match definition.clone().try_get_matches_from(args) {
        Err(error) => fl_cli::usage_error(&error, "flux"),
        Ok(matches) => match Flux::from_matches(&matches) {
            Some(flux) => flux.run(definition),
            None => {
                let _ = help.print_long_help();
                ExitCode::SUCCESS
            }
        },
    }
}
