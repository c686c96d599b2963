//! One run of a command: its arguments, read and checked.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use fl_types::Duration;

use crate::flag::{Flag, Kind};

/// What a command gives back: nothing, or an error whose chain is printed after `✗`.
pub(crate) type CommandResult = anyhow::Result<()>;

/// The behaviour behind a command.
pub(crate) type Action = Box<dyn Fn(Call) -> Pin<Box<dyn Future<Output = CommandResult>>>>;

/// Wraps an async function as the behaviour of a command.
pub(crate) fn action<F>(run: impl Fn(Call) -> F + 'static) -> Action
where
    F: Future<Output = CommandResult> + 'static,
{
    Box::new(move |call| Box::pin(run(call)))
}

/// An error that carries more than a message: how it is printed and the exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExitError {
    /// Printed with `⚠️`.
    #[error("{message}")]
    Warning { code: u8, message: String },
    /// Printed with `✗`.
    #[error("{message}")]
    Failure { code: u8, message: String },
    /// The error was already printed.
    #[error("exit code {0}")]
    Silent(u8),
}

/// The arguments of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// Words of the command, from the outermost group on.
    pub(crate) path: Vec<String>,
    /// Plain arguments.
    pub(crate) args: Vec<String>,
    values: BTreeMap<&'static str, Vec<String>>,
    changed: Vec<&'static str>,
    /// Flags of the command itself; one may have the name of a global one and hides it then.
    pub(crate) own: Vec<&'static str>,
    /// How the program is defined, for shell completion.
    pub(crate) definition: Option<crate::Definition>,
}

impl Call {
    /// Takes the flags with the values given for them; `given` yields each use in the order of the command line.
    ///
    /// # Errors
    /// A value that its flag does not take.
    pub(crate) fn new(
        path: Vec<String>,
        args: Vec<String>,
        flags: &[Flag],
        given: &[(usize, &str, String)],
    ) -> Result<Call, String> {
        let mut call = Call { path, args, ..Call::default() };
        for flag in flags {
            let default = match flag.kind {
                _ if flag.default.is_empty() => Vec::new(),
                Kind::List => flag.default.split(',').map(str::to_owned).collect(),
                _ => vec![flag.default.to_owned()],
            };
            call.values.insert(flag.name, default);
        }
        for (_, name, value) in given {
            let Some(flag) = flags.iter().find(|f| f.name == *name) else { continue };
            let read = flag.read(value)?;
            let first = !call.changed.contains(&flag.name);
            let slot = call.values.entry(flag.name).or_default();
            match flag.kind {
                Kind::List | Kind::Repeated if !first => slot.extend(read),
                _ => *slot = read,
            }
            if first {
                call.changed.push(flag.name);
            }
        }
        Ok(call)
    }

    /// The value of a flag, empty when it was not given and has no default.
    pub(crate) fn text(&self, name: &str) -> &str {
        debug_assert!(self.values.contains_key(name), "unknown flag {name}");
        self.values.get(name).and_then(|v| v.last()).map_or("", String::as_str)
    }

    /// The value of a global flag; empty when the command has a flag of that name for itself.
    pub(crate) fn global(&self, name: &str) -> &str {
        if self.own.contains(&name) { "" } else { self.text(name) }
    }

    /// The values of a list flag.
    pub(crate) fn list(&self, name: &str) -> &[String] {
        debug_assert!(self.values.contains_key(name), "unknown flag {name}");
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// A switch.
    pub(crate) fn on(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// A duration; zero when empty.
    pub(crate) fn duration(&self, name: &str) -> Duration {
        self.text(name).parse().unwrap_or(Duration::ZERO)
    }

    /// The value of a flag that takes a decimal number.
    pub(crate) fn decimal(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// A whole number; zero when empty.
    pub(crate) fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Whether the flag was on the command line.
    pub(crate) fn changed(&self, name: &str) -> bool {
        self.changed.contains(&name)
    }

    /// Whether this command knows the flag at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Flags in use that are deprecated, with their notices.
    pub(crate) fn notices<'a>(
        &'a self,
        flags: &'a [Flag],
    ) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
        flags
            .iter()
            .filter(|f| self.changed(f.name))
            .filter_map(|f| f.deprecated.map(|notice| (f.name, notice)))
    }

    /// Another namespace for the same arguments, as when a source lives elsewhere.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Call {
        let mut call = self.clone();
        call.values.insert("namespace", vec![namespace.to_owned()]);
        call
    }

    pub(crate) fn namespace(&self) -> &str {
        self.text("namespace")
    }

    pub(crate) fn set(&mut self, name: &'static str, value: String) {
        self.values.insert(name, vec![value]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flag::{list, repeated, switch, text};

    #[test]
    fn later_values_win_and_lists_grow() {
        let flags = [list("label", ""), repeated("tag", ""), text("url", "").or("x"), switch("all", "")];
        let given = [
            (1, "label", "a=b,c=d".to_owned()),
            (2, "label", "e=f".to_owned()),
            (3, "tag", "1,2".to_owned()),
            (4, "url", "u".to_owned()),
            (5, "url", "v".to_owned()),
        ];
        let call = Call::new(vec![], vec![], &flags, &given).unwrap();
        assert_eq!(call.list("label"), ["a=b", "c=d", "e=f"]);
        assert_eq!(
            (call.list("tag"), call.text("url"), call.on("all")),
            (&["1,2".to_owned()][..], "v", false)
        );
        assert!(call.changed("url") && !call.changed("all"));
    }
}
