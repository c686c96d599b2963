//! The command tree as data, and how it becomes clap's definition.

use clap::{Arg, ArgAction, Command};

use crate::args::Action;
use crate::flag::{Flag, Kind};

/// How many plain arguments a command takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain {
    /// Any number; the command itself says what is missing.
    Any,
    /// None at all.
    None,
    /// Exactly this many.
    Exactly(usize),
    /// Up to this many.
    AtMost(usize),
}

/// A command or a group of commands.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// What stands for the plain arguments in the usage line.
    pub(crate) usage: &'static str,
    pub(crate) about: String,
    /// Teaching by example: a remark and the command without the program's name.
    pub(crate) examples: Vec<(&'static str, String)>,
    pub(crate) flags: Vec<Flag>,
    /// Flags of this command and of everything below it.
    pub(crate) shared: Vec<Flag>,
    pub(crate) plain: Plain,
    pub(crate) children: Vec<Node>,
    pub(crate) action: Option<Action>,
}

impl Node {
    /// A group: it prints its help when called alone.
    pub(crate) fn group(name: &'static str, about: &str, children: Vec<Node>) -> Node {
        Node {
            name,
            aliases: &[],
            usage: "",
            about: about.to_owned(),
            examples: Vec::new(),
            flags: Vec::new(),
            shared: Vec::new(),
            plain: Plain::Any,
            children,
            action: None,
        }
    }

    /// A command that does something.
    pub(crate) fn leaf(name: &'static str, about: &str, action: Action) -> Node {
        Node { action: Some(action), ..Node::group(name, about, Vec::new()) }
    }

    pub(crate) fn alias(mut self, aliases: &'static [&'static str]) -> Node {
        self.aliases = aliases;
        self
    }

    pub(crate) fn takes(mut self, usage: &'static str) -> Node {
        self.usage = usage;
        self
    }

    pub(crate) fn plain(mut self, plain: Plain) -> Node {
        self.plain = plain;
        self
    }

    pub(crate) fn flags(mut self, flags: &[Flag]) -> Node {
        self.flags.extend_from_slice(flags);
        self
    }

    pub(crate) fn shared(mut self, flags: &[Flag]) -> Node {
        self.shared.extend_from_slice(flags);
        self
    }

    /// Examples for the command below of this name.
    pub(crate) fn child_examples(mut self, child: &str, examples: &[(&'static str, &str)]) -> Node {
        let examples = examples.iter().map(|(remark, command)| (*remark, (*command).to_owned()));
        if let Some(child) = self.children.iter_mut().find(|c| c.name == child) {
            child.examples.extend(examples);
        }
        self
    }

    pub(crate) fn example(mut self, remark: &'static str, command: &str) -> Node {
        self.examples.push((remark, command.to_owned()));
        self
    }

    /// clap's definition of this command under the program `program`; `globals` are the flags every command has.
    pub(crate) fn definition(&self, program: &str, globals: &[Flag]) -> Command {
        let mut shared = self.shared.clone();
        shared.extend_from_slice(globals);
        self.define(program, &shared, globals)
    }

    fn define(&self, program: &str, inherited: &[Flag], globals: &[Flag]) -> Command {
        let mut command = Command::new(self.name)
            .about(self.about.clone())
            .visible_aliases(self.aliases.iter().copied())
            .disable_help_subcommand(true)
            .disable_version_flag(true)
            .next_help_heading("Flags");
        if !self.examples.is_empty() {
            command = command.after_help(self.examples_text(program));
        }
        // Own flags first: one of them may stand in for an inherited one of the same name (`--interval`).
        for flag in &self.flags {
            command = command.arg(argument(flag));
        }
        let own = |name: &str| self.flags.iter().any(|f| f.name == name);
        for flag in inherited.iter().filter(|f| !own(f.name)) {
            let global = globals.iter().any(|g| g.name == flag.name);
            let arg = argument(flag);
            command = command.arg(if global { arg.help_heading("Global Flags") } else { arg });
        }
        let plain = Arg::new("args")
            .action(ArgAction::Append)
            .num_args(0..)
            .value_name(if self.usage.is_empty() { "ARGS" } else { self.usage })
            .help_heading("Arguments")
            .hide(self.usage.is_empty());
        command = command.arg(plain);
        for child in &self.children {
            let mut passed = inherited.to_vec();
            passed.splice(0..0, child.shared.iter().copied());
            command = command.subcommand(child.define(program, &passed, globals));
        }
        command
    }

    fn examples_text(&self, program: &str) -> String {
        let mut text = String::from("Examples:\n");
        for (i, (remark, line)) in self.examples.iter().enumerate() {
            if i > 0 {
                text.push('\n');
            }
            text.push_str(&format!("  # {remark}\n  {program} {line}\n"));
        }
        text
    }
}

/// A flag as clap sees it: every value is text, checked later and in the order it was given.
pub(crate) fn argument(flag: &Flag) -> Arg {
    let mut arg = Arg::new(flag.name).long(flag.name).action(ArgAction::Append).hide(flag.hidden);
    if let Some(letter) = flag.short {
        arg = arg.short(letter);
    }
    let shown = match (flag.kind, flag.default) {
        (Kind::Switch, "false") | (_, "") => flag.help.to_owned(),
        (_, default) => format!("{} (default {default})", flag.help),
    };
    arg = arg.help(shown);
    match flag.kind {
        Kind::Switch => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true)
            .value_name("BOOL"),
        Kind::Duration => arg.num_args(1).allow_hyphen_values(true).value_name("DURATION"),
        Kind::Number => arg.num_args(1).allow_hyphen_values(true).value_name("INT"),
        Kind::Decimal => arg.num_args(1).allow_hyphen_values(true).value_name("FLOAT"),
        Kind::List => arg.num_args(1).allow_hyphen_values(true).value_name("LIST"),
        Kind::Text | Kind::Repeated | Kind::Checked(_) => {
            arg.num_args(1).allow_hyphen_values(true).value_name("STRING")
        }
    }
}
