//! Log lines as Flux's controllers write them; `flux logs` reads their keys.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use fl_client::{KnownSecrets, MaskedText};

/// The log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Info,
    Debug,
    Trace,
}

impl std::str::FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "error" => Level::Error,
            "info" => Level::Info,
            "debug" => Level::Debug,
            "trace" => Level::Trace,
            _ => return Err(format!("{text:?} is no log level; use trace, debug, info or error")),
        })
    }
}

/// The log encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Console,
}

impl std::str::FromStr for Encoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "json" => Ok(Encoding::Json),
            "console" => Ok(Encoding::Console),
            _ => Err(format!("{text:?} is no log encoding; use json or console")),
        }
    }
}

// Process-wide, as the stream it guards is: level in the low bits, encoding above.
static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);
static CONSOLE: AtomicU8 = AtomicU8::new(0);

/// Sets level and encoding of the process.
pub fn configure(level: Level, encoding: Encoding) {
    LEVEL.store(level as u8, Ordering::Relaxed);
    CONSOLE.store(u8::from(encoding == Encoding::Console), Ordering::Relaxed);
}

static TO_FILE: OnceLock<File> = OnceLock::new();

/// Redirects all log lines of the process to a file, where stderr is used interactively. Only the first call
/// has an effect.
pub fn redirect(file: File) {
    let _ = TO_FILE.set(file);
}

/// A logger with fields.
#[derive(Clone, Debug, Default)]
pub struct Log {
    fields: Arc<Map<String, Value>>,
    /// Values that are masked in every line.
    secrets: Option<KnownSecrets>,
}

impl Log {
    /// A logger with further fields; later ones win.
    #[must_use]
    pub fn with(&self, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Log {
        self.with_named(fields.into_iter().map(|(k, v)| (k.to_owned(), v)))
    }

    /// As [`Log::with`], for field names known at run time.
    #[must_use]
    pub fn with_named(&self, fields: impl IntoIterator<Item = (String, Value)>) -> Log {
        let mut all = (*self.fields).clone();
        all.extend(fields);
        Log { fields: Arc::new(all), secrets: self.secrets.clone() }
    }

    /// The same logger, masking these values.
    #[must_use]
    pub(crate) fn masking(self, secrets: &KnownSecrets) -> Log {
        Log { secrets: Some(secrets.clone()), ..self }
    }

    pub fn enabled(&self, level: Level) -> bool {
        level as u8 <= LEVEL.load(Ordering::Relaxed)
    }

    pub fn trace(&self, message: &str) {
        self.write(Level::Trace, message, None);
    }

    pub fn debug(&self, message: &str) {
        self.write(Level::Debug, message, None);
    }

    pub fn info(&self, message: &str) {
        self.write(Level::Info, message, None);
    }

    /// `error` is the cause, `message` what was being done.
    pub fn error(&self, error: &str, message: &str) {
        self.write(Level::Error, message, Some(error));
    }

    fn write(&self, level: Level, message: &str, error: Option<&str>) {
        if !self.enabled(level) {
            return;
        }
        let console = CONSOLE.load(Ordering::Relaxed) != 0;
        let line = match &self.secrets {
            None => line(level, message, error, &self.fields, console),
            Some(secrets) => {
                let (message, error) = (secrets.mask(message), error.map(|e| secrets.mask(e)));
                let mut fields = (*self.fields).clone();
                fields.values_mut().for_each(|value| secrets.mask_value(value));
                line(level, message.as_str(), error.as_ref().map(MaskedText::as_str), &fields, console)
            }
        };
        // A log that cannot be written has nowhere to report that.
        let _ = match TO_FILE.get() {
            Some(mut file) => file.write_all(line.as_bytes()),
            None => std::io::stderr().lock().write_all(line.as_bytes()),
        };
    }
}

fn line(
    level: Level,
    message: &str,
    error: Option<&str>,
    fields: &Map<String, Value>,
    console: bool,
) -> String {
    let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    let name = match level {
        Level::Error => "error",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    };
    let mut out = String::with_capacity(128 + message.len());
    if console {
        let _ = write!(out, "{time}\t{}\t{message}", name.to_uppercase());
        if !fields.is_empty() || error.is_some() {
            let mut all = fields.clone();
            if let Some(error) = error {
                all.insert("error".to_owned(), error.into());
            }
            let _ = write!(out, "\t{}", Value::Object(all));
        }
    } else {
        let text = |t: &str| Value::String(t.to_owned());
        let _ = write!(out, "{{\"level\":\"{name}\",\"ts\":\"{time}\",\"msg\":{}", text(message));
        for (key, value) in fields {
            let _ = write!(out, ",{}:{value}", text(key));
        }
        if let Some(error) = error {
            let _ = write!(out, ",\"error\":{}", text(error));
        }
        out.push('}');
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_flux_logs_reads() {
        let log = Log::default().with([("controller", "gitrepository".into()), ("name", "a\"b".into())]);
        let text = line(Level::Error, "Reconciler error", Some("no"), &log.fields, false);
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["level"], "error");
        assert_eq!(parsed["msg"], "Reconciler error");
        assert_eq!(parsed["error"], "no");
        assert_eq!(parsed["name"], "a\"b");
        assert!(parsed["ts"].as_str().unwrap().ends_with('Z'));
    }
}
