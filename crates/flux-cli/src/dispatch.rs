//! Mounts the commands below a clap program and runs the one that was called.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};

use crate::args::{Call, CommandResult, ExitError};
use crate::command::{Node, Plain, argument};
use crate::commands;
use crate::completion::complete;
use crate::flag::Flag;
use crate::kubeconfig::{self, DEFAULT_NAMESPACE, GLOBAL_FLAGS};
use crate::logger;

/// One call of a flux command, taken from clap's matches.
#[derive(Clone, Debug)]
pub struct Flux {
    matches: ArgMatches,
}

/// Which commands a definition is built for. There are some two hundred, each with dozens of flags: building them all takes
/// longer than most of them run, so a call builds those that its words name.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Every command: for help, completion and errors.
    All,
    /// Those with a name or alias among these words.
    NamedIn(Vec<String>),
}

impl Wanted {
    /// Whether a command of this name belongs into the definition.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match self {
            Wanted::All => true,
            Wanted::NamedIn(words) => words.iter().any(|word| word == name),
        }
    }
}

/// Builds the definition of a program with the wanted commands.
pub type Definition = fn(&Wanted) -> Command;

/// A whole program: completion, plugins, the commands of flux, and `own` for those that are not flux's.
pub fn program(definition: Definition, own: impl FnOnce(&ArgMatches) -> ExitCode) -> ExitCode {
    let mut args: Vec<_> = std::env::args_os().collect();
    // Flux takes an empty word in the place of a command for none.
    if args.len() > 1 && args[1].is_empty() {
        args.remove(1);
    }
    if args.get(1).is_some_and(|word| word == "__complete") {
        let words: Vec<String> = args[2..].iter().map(|w| w.to_string_lossy().into_owned()).collect();
        complete(&definition(&Wanted::All), &words);
        return ExitCode::SUCCESS;
    }
    let known =
        |name: &str| definition(&Wanted::NamedIn(vec![name.to_owned()])).find_subcommand(name).is_some();
    if let Some(code) = commands::plugin::run(&args, &known) {
        return code;
    }
    if let Some((topic, words)) = help_topic(&args) {
        return help_on(topic, words, definition(&Wanted::All));
    }
    match read(definition, &args) {
        Err(error) => usage_error(&error, &definition(&Wanted::All)),
        Ok(matches) => match Flux::from_matches(&matches) {
            Some(flux) => flux.run(definition),
            None => own(&matches),
        },
    }
}

/// The words after `help`, when that is what was called: the first one apart.
fn help_topic(args: &[OsString]) -> Option<(&str, Vec<&str>)> {
    if args.get(1)?.to_str()? != "help" {
        return None;
    }
    let words: Option<Vec<&str>> = args[2..].iter().map(|word| word.to_str()).collect();
    let words = words?;
    if words.iter().any(|word| word.starts_with('-')) {
        return None;
    }
    Some((words.first().copied()?, words))
}

/// Help on the command that the words name, as far as they name one. A first word that names none is no failure to flux:
/// it says so and shows what there is.
fn help_on(topic: &str, words: Vec<&str>, mut definition: Command) -> ExitCode {
    if definition.find_subcommand(topic).is_none() {
        logger::data_line(&format!("Unknown help topic [`{topic}`]"));
        logger::data(&definition.render_help().to_string());
        return ExitCode::SUCCESS;
    }
    let mut path = Vec::new();
    let mut command = &definition;
    for word in words {
        let Some(found) = command.find_subcommand(word) else { break };
        path.push(found.get_name().to_owned());
        command = found;
    }
    match show_help(definition, &path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ended(&error),
    }
}

/// Reads the arguments. Errors are those of the whole program, which knows what else could have been meant.
fn read(definition: Definition, args: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let words = args.iter().skip(1).filter_map(|word| word.to_str().map(str::to_owned)).collect();
    match definition(&Wanted::NamedIn(words)).try_get_matches_from(args) {
        Ok(matches) if matches.subcommand().is_some() => Ok(matches),
        Err(error) if error.kind() == ErrorKind::DisplayVersion => Err(error),
        _ => definition(&Wanted::All).try_get_matches_from(args),
    }
}

impl Flux {
    /// Adds the commands that are `wanted` and the flags they share to a program called `name`.
    #[must_use]
    pub fn augment(mut program: Command, name: &str, wanted: &Wanted) -> Command {
        for flag in GLOBAL_FLAGS {
            program = program.arg(argument(flag).help_heading("Global Flags"));
        }
        for node in commands::tree() {
            if !wanted.has(node.name) && !node.aliases.iter().any(|alias| wanted.has(alias)) {
                continue;
            }
            program = program.subcommand(node.definition(name, GLOBAL_FLAGS));
        }
        program
    }

    /// Whether `name` is one of the commands here.
    #[must_use]
    pub fn knows(name: &str) -> bool {
        commands::tree().iter().any(|node| node.name == name || node.aliases.contains(&name))
    }

    /// The call in the matches of the whole program; `None` when it is for someone else.
    fn from_matches(matches: &ArgMatches) -> Option<Flux> {
        let (name, _) = matches.subcommand()?;
        Flux::knows(name).then(|| Flux { matches: matches.clone() })
    }

    /// Runs the command and says how it ended. `definition` gives the whole program, for completion scripts and help.
    fn run(self, definition: Definition) -> ExitCode {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                logger::failure(format!("cannot start: {error}"));
                return ExitCode::FAILURE;
            }
        };
        // A second installation fails, which is as good as a first one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        match runtime.block_on(self.dispatch(definition)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => ended(&error),
        }
    }

    async fn dispatch(self, definition: Definition) -> CommandResult {
        let tree = commands::tree();
        let mut levels = vec![&self.matches];
        let (mut path, mut nodes, mut node): (Vec<String>, &[Node], Option<&Node>) =
            (Vec::new(), &tree, None);
        let mut flags: Vec<Flag> = GLOBAL_FLAGS.to_vec();
        while let Some((name, below)) = levels.last().and_then(|m| m.subcommand()) {
            let Some(found) = nodes.iter().find(|n| n.name == name) else { break };
            path.push(found.name.to_owned());
            levels.push(below);
            flags.splice(0..0, found.shared.iter().copied());
            nodes = &found.children;
            node = Some(found);
        }
        let Some(node) = node else { return Err(ExitError::Silent(1).into()) };
        flags.splice(0..0, node.flags.iter().copied());
        let mut seen = Vec::new();
        flags.retain(|f| {
            !seen.contains(&f.name) && {
                seen.push(f.name);
                true
            }
        });
        let args: Vec<String> =
            levels.last().and_then(|m| m.get_many::<String>("args")).into_iter().flatten().cloned().collect();
        let Some(action) = &node.action else {
            // A group alone, or with a word it does not know, shows its help.
            return show_help(definition(&Wanted::All), &path);
        };
        let mut call = Call::new(path, args, &flags, &given(&levels, &flags)).map_err(anyhow::Error::msg)?;
        for (name, notice) in call.notices(&flags) {
            logger::data_line(&format!("Flag --{name} has been deprecated, {notice}"));
        }
        check_plain(node, &call)?;
        prepare(&mut call)?;
        call.own = node.flags.iter().map(|f| f.name).collect();
        call.definition = Some(definition);
        action(call).await
    }
}

/// Every use of a flag in the order of the command line: outer levels come first there, too.
fn given<'a>(levels: &[&ArgMatches], flags: &'a [Flag]) -> Vec<(usize, &'a str, String)> {
    let mut uses = Vec::new();
    for (depth, matches) in levels.iter().enumerate() {
        for flag in flags {
            let Ok(Some(values)) = matches.try_get_many::<String>(flag.name) else { continue };
            let indices = matches.indices_of(flag.name).into_iter().flatten();
            uses.extend(
                values.zip(indices).map(|(value, index)| (depth * 100_000 + index, flag.name, value.clone())),
            );
        }
    }
    uses.sort_by_key(|(index, ..)| *index);
    uses
}

fn show_help(mut definition: Command, path: &[String]) -> CommandResult {
    // Building fills in the full names, which the usage line shows.
    definition.build();
    let mut command = &mut definition;
    for word in path {
        command = command.find_subcommand_mut(word).expect("the path was matched");
    }
    logger::data(&command.render_help().to_string());
    Ok(())
}

fn check_plain(node: &Node, call: &Call) -> CommandResult {
    let count = call.args.len();
    match node.plain {
        Plain::None if count > 0 => {
            anyhow::bail!(
                "unknown command {} for {}",
                fl_go::quote(&call.args[0]),
                fl_go::quote(&format!("flux {}", call.path.join(" ")))
            )
        }
        Plain::Exactly(wanted) if count != wanted => {
            anyhow::bail!("accepts {wanted} arg(s), received {count}")
        }
        Plain::AtMost(most) if count > most => {
            anyhow::bail!("accepts at most {most} arg(s), received {count}")
        }
        _ => Ok(()),
    }
}

/// The namespace from flag, environment or context, checked. `create` checks its name instead, `plugin` needs neither.
fn prepare(call: &mut Call) -> CommandResult {
    if !call.changed("namespace") {
        call.set("namespace", environment_namespace());
    }
    match call.path.first().map(String::as_str) {
        Some("plugin") => return Ok(()),
        Some("create") => return commands::create::check_name(call),
        _ => {}
    }
    let follows = std::env::var_os("FLUX_NS_FOLLOWS_KUBE_CONTEXT").is_some_and(|v| !v.is_empty());
    if !call.changed("namespace")
        && (follows || call.on("ns-follows-kube-context"))
        && let Some(namespace) = kubeconfig::context_namespace(call)
    {
        call.set("namespace", namespace);
    }
    if fl_types::check_dns1123_label(call.namespace()).is_err() {
        anyhow::bail!("namespace must be a valid DNS label: {}", fl_go::quote(call.namespace()));
    }
    Ok(())
}

fn environment_namespace() -> String {
    match std::env::var("FLUX_SYSTEM_NAMESPACE") {
        Ok(name) if name.is_empty() => DEFAULT_NAMESPACE.to_owned(),
        Ok(name) if fl_types::check_dns1123_label(&name).is_ok() => name,
        Ok(name) => {
            logger::warning(format!(" ignoring invalid FLUX_SYSTEM_NAMESPACE: {}", fl_go::quote(&name)));
            DEFAULT_NAMESPACE.to_owned()
        }
        Err(_) => DEFAULT_NAMESPACE.to_owned(),
    }
}

/// Says what went wrong and with which code the program ends.
fn ended(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<ExitError>() {
        Some(ExitError::Silent(code)) => ExitCode::from(*code),
        Some(ExitError::Warning { code, message }) => {
            logger::warning(message);
            ExitCode::from(*code)
        }
        Some(ExitError::Failure { code, message }) => {
            logger::failure(message);
            ExitCode::from(*code)
        }
        None => {
            logger::failure(format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The one-letter flags of an argument from the unknown one on, as they were typed.
fn shorthands(letter: char) -> String {
    let typed = std::env::args().find_map(|arg| {
        let letters = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        letters.find(letter).map(|at| letters[at..].to_owned())
    });
    typed.unwrap_or_else(|| letter.to_string())
}

/// Names what was typed, and commands that look like it.
fn unknown_command(typed: &str, definition: &Command) -> String {
    let mut text = format!("unknown command {} for \"flux\"", fl_go::quote(typed));
    let lower = typed.to_lowercase();
    let mut close: Vec<&str> = definition
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .map(Command::get_name)
        .filter(|name| name.starts_with(&lower) || distance(name, &lower) <= 2)
        .collect();
    close.sort_unstable();
    if !close.is_empty() {
        text.push_str("\n\nDid you mean this?\n");
        close.iter().for_each(|name| text.push_str(&format!("\t{name}\n")));
    }
    text
}

/// How many letters differ between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// Bad usage in flux's words and with its exit code; help and version as clap prints them.
#[must_use]
fn usage_error(error: &clap::Error, definition: &Command) -> ExitCode {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            logger::data(&error.render().to_string());
            ExitCode::SUCCESS
        }
        // Flags alone ask for nothing: help, as without them.
        ErrorKind::MissingSubcommand => {
            logger::data(&definition.clone().render_help().to_string());
            ExitCode::SUCCESS
        }
        ErrorKind::UnknownArgument => {
            let arg = context(ContextKind::InvalidArg);
            logger::failure(match arg.strip_prefix("--") {
                Some(name) => format!("unknown flag: --{name}"),
                None => match arg.strip_prefix('-').and_then(|rest| rest.chars().next()) {
                    Some(letter) => {
                        format!("unknown shorthand flag: '{letter}' in -{}", shorthands(letter))
                    }
                    None => unknown_command(&arg, definition),
                },
            });
            ExitCode::FAILURE
        }
        ErrorKind::InvalidSubcommand => {
            logger::failure(unknown_command(&context(ContextKind::InvalidSubcommand), definition));
            ExitCode::FAILURE
        }
        ErrorKind::InvalidValue if !context(ContextKind::InvalidValue).is_empty() => {
            let (arg, value) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
            let name = arg.split([' ', '[', '=']).next().unwrap_or_default();
            logger::failure(format!(
                "invalid argument {} for {} flag",
                fl_go::quote(&value),
                fl_go::quote(name)
            ));
            ExitCode::FAILURE
        }
        ErrorKind::InvalidValue | ErrorKind::WrongNumberOfValues | ErrorKind::TooFewValues => {
            let arg = context(ContextKind::InvalidArg);
            let name = arg.split_whitespace().next().unwrap_or_default();
            let last = std::env::args().next_back().unwrap_or_default();
            logger::failure(match last.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
                Some(letters) => {
                    let letter = letters.chars().next_back().unwrap_or_default();
                    format!("flag needs an argument: '{letter}' in -{letter}")
                }
                None => format!("flag needs an argument: {name}"),
            });
            ExitCode::FAILURE
        }
        _ => {
            logger::failure(error.render().to_string().trim().trim_start_matches("error: "));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_commands_are_suggested() {
        assert_eq!((distance("logs", "bogus"), distance("get", "get"), distance("", "abc")), (2, 0, 3));
        let program = ["get", "logs", "reconcile"]
            .iter()
            .fold(Command::new("flux"), |program, name| program.subcommand(Command::new(*name)));
        assert_eq!(
            unknown_command("bogus", &program),
            "unknown command \"bogus\" for \"flux\"\n\nDid you mean this?\n\tlogs\n"
        );
        assert_eq!(unknown_command("frobnicate", &program), "unknown command \"frobnicate\" for \"flux\"");
    }

    #[test]
    fn help_shows_the_named_command() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(help_topic(&args(&["flux", "help", "get", "x"])), Some(("get", vec!["get", "x"])));
        for other in [&["flux", "help"][..], &["flux", "help", "--x"], &["flux", "get", "help"], &["flux"]] {
            assert_eq!(help_topic(&args(other)), None, "{other:?}");
        }
    }
}
