//! The commands of flux alone, without the engine: quick to build and to try.

use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};
use fl_cli::Flux;

fn main() -> ExitCode {
    let version =
        Arg::new("version").short('v').long("version").action(ArgAction::Version).help("Print version");
    let program = Command::new("flux")
        .version(fl_cli::VERSION_LINE)
        .disable_version_flag(true)
        .arg(version)
        .arg_required_else_help(true);
    let definition = Flux::augment(program, "flux");
    let args: Vec<_> = std::env::args_os().collect();
    if args.get(1).is_some_and(|word| word == "__complete") {
        let words: Vec<String> = args[2..].iter().map(|w| w.to_string_lossy().into_owned()).collect();
        fl_cli::complete(&definition, &words);
        return ExitCode::SUCCESS;
    }
    if let Some(code) = fl_cli::run_plugin(&args, &|name| definition.find_subcommand(name).is_some()) {
        return code;
    }
    match definition.clone().try_get_matches_from(args) {
        Err(error) => fl_cli::usage_error(&error, &definition),
        Ok(matches) => match Flux::from_matches(&matches) {
            Some(flux) => flux.run(definition),
            None => ExitCode::FAILURE,
        },
    }
}
