//! Flags as data, with the value rules of Go's flag library that flux's users know.
//!
//! Every value is kept as text on the way in; its type checks it once, so that a bad value is refused before a command
//! runs and with the words flux uses.

use fl_types::Duration;

/// What a flag takes.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// `--flag` or `--flag=true|false`.
    Switch,
    /// A whole number.
    Number,
    /// A decimal number.
    Decimal,
    /// A Go duration.
    Duration,
    /// Comma separated values, the flag may be repeated.
    List,
    /// One value per use, the flag may be repeated.
    Repeated,
    /// Checked and rewritten by a function.
    Checked(fn(&str) -> Result<String, String>),
}

/// What becomes of a value that is given. A test holds every flag to what it says here.
#[derive(Clone, Copy)]
pub(crate) enum Effect {
    /// The command reads it.
    Read,
    /// The command would ignore it, so a value is refused with this reason.
    Refused(&'static str),
    /// Nothing changes whatever the value: flux ignores it too, or what it asks for is always so.
    Constant,
}

/// One flag of a command.
#[derive(Clone, Copy)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) kind: Kind,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
    pub(crate) hidden: bool,
    pub(crate) deprecated: Option<&'static str>,
    pub(crate) effect: Effect,
}

const fn flag(name: &'static str, kind: Kind, help: &'static str) -> Flag {
    Flag { name, short: None, kind, default: "", help, hidden: false, deprecated: None, effect: Effect::Read }
}

pub(crate) const fn text(name: &'static str, help: &'static str) -> Flag {
    flag(name, Kind::Text, help)
}

pub(crate) const fn switch(name: &'static str, help: &'static str) -> Flag {
    let mut f = flag(name, Kind::Switch, help);
    f.default = "false";
    f
}

pub(crate) const fn number(name: &'static str, default: &'static str, help: &'static str) -> Flag {
    flag(name, Kind::Number, help).or(default)
}

pub(crate) const fn decimal(name: &'static str, default: &'static str, help: &'static str) -> Flag {
    flag(name, Kind::Decimal, help).or(default)
}

pub(crate) const fn duration(name: &'static str, default: &'static str, help: &'static str) -> Flag {
    flag(name, Kind::Duration, help).or(default)
}

pub(crate) const fn list(name: &'static str, help: &'static str) -> Flag {
    flag(name, Kind::List, help)
}

pub(crate) const fn repeated(name: &'static str, help: &'static str) -> Flag {
    flag(name, Kind::Repeated, help)
}

pub(crate) const fn checked(
    name: &'static str,
    check: fn(&str) -> Result<String, String>,
    help: &'static str,
) -> Flag {
    flag(name, Kind::Checked(check), help)
}

impl Flag {
    /// With a default value.
    pub(crate) const fn or(mut self, default: &'static str) -> Flag {
        self.default = default;
        self
    }

    /// With a one-letter form.
    pub(crate) const fn short(mut self, letter: char) -> Flag {
        self.short = Some(letter);
        self
    }

    /// Not shown in help.
    pub(crate) const fn hidden(mut self) -> Flag {
        self.hidden = true;
        self
    }

    /// Accepted, with a notice.
    pub(crate) const fn deprecated(mut self, notice: &'static str) -> Flag {
        self.hidden = true;
        self.deprecated = Some(notice);
        self
    }

    /// A flag of flux that is refused when it is given.
    pub(crate) const fn refused(mut self, why: &'static str) -> Flag {
        self.effect = Effect::Refused(why);
        self
    }

    /// A flag of flux that changes nothing here; the reason is for readers of the declaration.
    pub(crate) const fn constant(mut self, _why: &'static str) -> Flag {
        self.effect = Effect::Constant;
        self
    }

    /// How messages name the flag.
    fn title(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter}, --{}", self.name),
            None => format!("--{}", self.name),
        }
    }

    /// The values of one use of the flag.
    ///
    /// # Errors
    /// The value is not what the flag takes; the sentence names both.
    pub(crate) fn read(&self, value: &str) -> Result<Vec<String>, String> {
        if let Effect::Refused(why) = self.effect {
            return Err(format!("--{} cannot be used: {why}", self.name));
        }
        self.parse(value).map_err(|why| {
            format!("invalid argument {} for {:?} flag: {why}", fl_go::quote(value), self.title())
        })
    }

    fn parse(&self, value: &str) -> Result<Vec<String>, String> {
        match self.kind {
            Kind::Text | Kind::Repeated => Ok(vec![value.to_owned()]),
            Kind::Switch => go_bool(value)
                .map(|b| vec![b.to_string()])
                .ok_or_else(|| format!("strconv.ParseBool: parsing {}: invalid syntax", fl_go::quote(value))),
            Kind::Number => value
                .parse::<i64>()
                .map(|n| vec![n.to_string()])
                .map_err(|_| format!("strconv.ParseInt: parsing {}: invalid syntax", fl_go::quote(value))),
            Kind::Decimal => value
                .parse::<f32>()
                .map(|n| vec![n.to_string()])
                .map_err(|_| format!("strconv.ParseFloat: parsing {}: invalid syntax", fl_go::quote(value))),
            Kind::Duration => {
                value.parse::<Duration>().map(|d| vec![d.to_string()]).map_err(|error| error.to_string())
            }
            Kind::List => csv(value),
            Kind::Checked(check) => check(value).map(|v| vec![v]),
        }
    }
}

fn go_bool(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// The items of a flag that takes a list: one line of comma separated values, of which those in double quotes may hold commas.
/// What follows the line is not looked at.
///
/// # Errors
/// Quotes are where none may be. The sentence is the one of Go's CSV reader, which counts columns in bytes.
pub fn csv(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let (mut out, mut rest) = (Vec::new(), text);
    let column = |rest: &str| text.len() - rest.len() + 1;
    loop {
        let after = if let Some(inner) = rest.strip_prefix('"') {
            let (value, after) = quoted_field(inner).ok_or_else(|| extraneous(column("")))?;
            if !after.is_empty() && !after.starts_with([',', '\n']) {
                return Err(extraneous(column(after) - 1));
            }
            out.push(value);
            after
        } else {
            let (field, after) = rest.split_at(rest.find([',', '\n']).unwrap_or(rest.len()));
            if let Some(at) = field.find('"') {
                let column = column(rest) + at;
                return Err(format!("parse error on line 1, column {column}: bare \" in non-quoted-field"));
            }
            out.push(field.to_owned());
            after
        };
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(out),
        }
    }
}

fn extraneous(column: usize) -> String {
    format!("parse error on line 1, column {column}: extraneous or missing \" in quoted-field")
}

/// The field up to its closing quote (`""` is a quote in it) and what follows; nothing when there is no such quote.
fn quoted_field(text: &str) -> Option<(String, &str)> {
    let (mut value, mut rest) = (String::new(), text);
    loop {
        let (part, after) = rest.split_once('"')?;
        value.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_match_flux() {
        assert_eq!(
            duration("interval", "1m0s", "").read("soon").unwrap_err(),
            "invalid argument \"soon\" for \"--interval\" flag: time: invalid duration \"soon\""
        );
        assert_eq!(
            switch("prune", "").short('p').read("maybe").unwrap_err(),
            "invalid argument \"maybe\" for \"-p, --prune\" flag: strconv.ParseBool: parsing \"maybe\": invalid syntax"
        );
        assert_eq!(duration("interval", "", "").read("90s").unwrap(), ["1m30s"]);
    }

    #[test]
    fn lists_are_split_at_commas_outside_of_quotes() {
        assert_eq!(list("l", "").read("a=b,c=d").unwrap(), ["a=b", "c=d"]);
        assert_eq!(list("l", "").read("\"a,b\",c,").unwrap(), ["a,b", "c", ""]);
        assert_eq!(list("l", "").read("\"a\"\"b\"").unwrap(), ["a\"b"]);
        assert_eq!(list("l", "").read("a\nb").unwrap(), ["a"]);
        for (text, why) in [
            ("a\"b", "column 2: bare \" in non-quoted-field"),
            ("x,y\"z", "column 4: bare \" in non-quoted-field"),
            ("\"a", "column 3: extraneous or missing \" in quoted-field"),
            ("x,\"a\"b", "column 5: extraneous or missing \" in quoted-field"),
        ] {
            assert_eq!(csv(text).unwrap_err(), format!("parse error on line 1, {why}"), "{text}");
        }
        assert_eq!(repeated("r", "").read("a,b").unwrap(), ["a,b"]);
    }
}
