//! The last log lines of an action, for the event that reports its failure.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Lines in the event.
const MAX_LINES: usize = 10;

#[derive(Debug)]
struct Line {
    first: Timestamp,
    last: Timestamp,
    text: String,
    repeats: u64,
}

/// The last lines of an action; equal neighbours are counted, not repeated.
#[derive(Debug, Default)]
pub(crate) struct ActionLog(Mutex<VecDeque<Line>>);

impl ActionLog {
    /// Adds a line with its attributes.
    pub(crate) fn note(&self, text: &str, about: &[(&str, &dyn std::fmt::Display)]) {
        let about: Map<String, Value> =
            about.iter().map(|(key, value)| ((*key).to_owned(), Value::String(value.to_string()))).collect();
        let text = format!("{text}: {}", Value::Object(about));
        let now = Timestamp::now();
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.back_mut().filter(|line| line.text == text) {
            line.repeats += 1;
            line.last = now;
            return;
        }
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(Line { first: now, last: now, text, repeats: 0 });
    }

    /// A message followed by the lines, if there are any.
    pub(crate) fn append_to(&self, message: &str) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return message.to_owned();
        }
        let mut text = format!("{message}\n\nLast Helm logs:\n");
        for line in lines.iter() {
            text.push_str(&format!("\n{}: {}", line.first, line.text));
            if line.repeats > 0 {
                text.push_str(&format!("\n{}: {}", line.last, line.text));
            }
            match line.repeats {
                0 | 1 => {}
                2 => text.push_str(" (1 duplicate line omitted)"),
                more => text.push_str(&format!(" ({} duplicate lines omitted)", more - 1)),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted() {
        let log = ActionLog::default();
        assert_eq!(log.append_to("m"), "m");
        for _ in 0..4 {
            log.note("a", &[("name", &"x")]);
        }
        for i in 0..20 {
            log.note("b", &[("n", &i)]);
        }
        let text = log.append_to("m");
        assert!(text.starts_with("m\n\nLast Helm logs:\n\n"));
        assert_eq!(text.lines().count(), 4 + MAX_LINES);
    }
}
