//! Masks secret values that a reconcile has read in all text it produces.
//!
//! An error may quote a value that a chart's schema or the API server rejects, or a line of a file. So the
//! values of every Secret that a reconcile reads, and everything it decrypts, are collected here
//! ([`KnownSecrets::learn_secret`] is called where Secrets are read), and text is masked where it leaves the
//! reconcile: in its log, its events ([`MaskedText`]) and its conditions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The mask.
const MASK: &str = "***";
/// From this length on a value is masked wherever it occurs.
const LONG: usize = 8;
/// From this length on a value is masked where it is a separate word and not part of a name or path; shorter
/// ones only inside quotes.
const WORD: usize = 4;
/// Longer values are known by their lines only.
const LONGEST: usize = 16 << 10;
/// With more patterns than this a text is withheld as a whole.
const MOST: usize = 200_000;
/// Values that are not secret.
const PLAIN_WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "none", "~"];
/// go-yaml quotes this much of a longer text.
const GO_YAML_SHOWN: usize = 7;
const GO_YAML_LONG: usize = 10;
/// Maximum depth of values in a document.
const DEEPEST: usize = 64;

/// Where a pattern is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Anywhere,
    Word,
    Quoted,
}

#[derive(Debug, Default)]
struct Patterns {
    /// In lower case.
    places: BTreeMap<String, Place>,
    /// Public names; in lower case.
    public: Vec<String>,
    too_many: bool,
}

/// The secret values of a reconcile. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct KnownSecrets {
    patterns: Arc<Mutex<Patterns>>,
}

/// Masked text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedText(String);

impl MaskedText {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for MaskedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

tokio::task_local! {
    static CURRENT: KnownSecrets;
}

impl KnownSecrets {
    /// An empty set. The `public` names are never masked.
    pub fn with_public_names<'a>(public: impl IntoIterator<Item = &'a str>) -> Self {
        let public = public.into_iter().map(str::to_ascii_lowercase).collect();
        KnownSecrets { patterns: Arc::new(Mutex::new(Patterns { public, ..Patterns::default() })) }
    }

    /// Those of the reconcile that runs in this task; outside of one, an empty set.
    pub fn current() -> Self {
        CURRENT.try_with(Clone::clone).unwrap_or_default()
    }

    /// Runs a reconcile with this set.
    pub async fn during<F: Future>(self, pass: F) -> F::Output {
        CURRENT.scope(self, pass).await
    }

    /// Adds the values of a Secret object.
    pub fn learn_secret(&self, secret: &Value) {
        // Helm release Secrets are large, and their values come from Secrets that are read anyway.
        if secret["type"] == "helm.sh/release.v1" {
            return;
        }
        for (_, value) in secret["data"].as_object().into_iter().flatten() {
            if let Some(bytes) = value.as_str().and_then(|text| STANDARD.decode(text.trim()).ok()) {
                self.learn_bytes(&bytes);
            }
        }
        for (_, value) in secret["stringData"].as_object().into_iter().flatten() {
            if let Some(text) = value.as_str() {
                self.learn_bytes(text.as_bytes());
            }
        }
    }

    /// Adds a value and, if it is a document (YAML, JSON, lines of `name=value`), the values in it.
    pub fn learn_bytes(&self, bytes: &[u8]) {
        let mut patterns = self.lock();
        if bytes.len() <= LONGEST {
            patterns.add(&STANDARD.encode(bytes), Place::Anywhere);
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        patterns.learn_text(text);
        if text.contains([':', '{', '['])
            && let Ok(Some(node)) = fl_yaml::parse_first(bytes, &fl_yaml::Options::sigs())
            && !node.is_scalar()
        {
            patterns.learn_node(&node, DEEPEST);
        }
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            if let Some((_, value)) = line.split_once('=') {
                patterns.learn_text(value.trim().trim_matches(['"', '\'']));
            }
        }
    }

    /// Adds one value.
    pub fn learn_text(&self, text: &str) {
        self.lock().learn_text(text);
    }

    /// Whether a value, or a line of it, is masked.
    pub fn contains(&self, value: &str) -> bool {
        let patterns = self.lock();
        let known = |text: &str| patterns.places.contains_key(&text.trim().to_ascii_lowercase());
        known(value) || value.lines().any(known)
    }

    /// Masks a text.
    #[must_use]
    pub fn mask(&self, text: &str) -> MaskedText {
        MaskedText(self.masked(text).unwrap_or_else(|| text.to_owned()))
    }

    /// Masks the messages of the conditions in a status.
    pub fn mask_status(&self, status: &mut Value) {
        // Not by index: that would add the field to a status without conditions.
        let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            if let Some(masked) = condition["message"].as_str().and_then(|text| self.masked(text)) {
                condition["message"] = masked.into();
            }
        }
    }

    /// Masks every text in a value, such as a field of a log line.
    pub fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.masked(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.mask_value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text with masks; none when nothing has to be masked.
    fn masked(&self, text: &str) -> Option<String> {
        let patterns = self.lock();
        if patterns.too_many {
            return Some(
                "the text is withheld: this object uses too many secret values to mask them".to_owned(),
            );
        }
        if patterns.places.is_empty() {
            return None;
        }
        let lower = text.to_ascii_lowercase();
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (pattern, place) in &patterns.places {
            let mut from = 0;
            while let Some(at) = lower.get(from..).and_then(|rest| rest.find(pattern.as_str())) {
                let (start, end) = (from + at, from + at + pattern.len());
                if place.counts(&lower, start, end) {
                    found.push((start, end));
                }
                from = start + lower[start..].chars().next().map_or(1, char::len_utf8);
            }
        }
        drop(patterns);
        if found.is_empty() {
            return None;
        }
        found.sort_unstable();
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in found {
            if start > done || (start == done && !out.ends_with(MASK)) {
                out.push_str(&text[done..start]);
                out.push_str(MASK);
            }
            done = done.max(end);
        }
        out.push_str(&text[done..]);
        Some(out)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Patterns> {
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn counts(self, text: &str, start: usize, end: usize) -> bool {
        let (before, after) = (text[..start].chars().next_back(), text[end..].chars().next());
        match self {
            Place::Anywhere => true,
            Place::Word => {
                // Part of a longer name, a path or a revision.
                let within = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@');
                let joined = |c: Option<char>| c.is_some_and(within);
                !joined(before) && !joined(after)
            }
            Place::Quoted => {
                let quote = |c: char| matches!(c, '"' | '\'' | '`');
                // An escaped quote is followed by a backslash.
                before.is_some_and(quote) && after.is_some_and(|c| quote(c) || c == '\\')
            }
        }
    }
}

impl Patterns {
    fn learn_node(&mut self, node: &fl_yaml::Node, depth: usize) {
        if depth == 0 {
            return;
        }
        if let Some(map) = node.as_map() {
            map.iter().for_each(|entry| self.learn_node(&entry.value, depth - 1));
        } else if let Some(items) = node.as_seq() {
            items.iter().for_each(|item| self.learn_node(item, depth - 1));
        } else if let Some(text) = node.as_text() {
            self.learn_text(text);
        }
    }

    /// The forms in which messages show a value.
    fn learn_text(&mut self, text: &str) {
        let text = text.trim();
        if text.len() <= LONGEST {
            self.learn_line(text);
        }
        let mut lines = text.lines().map(str::trim).filter(|line| line.len() >= WORD);
        if text.contains('\n') {
            // Substitution joins the lines of a value.
            self.learn_line(&text.replace('\n', ""));
            lines.by_ref().for_each(|line| self.learn_line(line));
        }
    }

    fn learn_line(&mut self, text: &str) {
        if text.is_empty()
            || text.len() > LONGEST
            || PLAIN_WORDS.contains(&text.to_ascii_lowercase().as_str())
        {
            return;
        }
        let place = match text.chars().count() {
            0..WORD => Place::Quoted,
            WORD..LONG => Place::Word,
            _ => Place::Anywhere,
        };
        self.add(text, place);
        if place == Place::Quoted {
            return;
        }
        for encoded in [STANDARD.encode(text), STANDARD.encode(format!("{text}\n"))] {
            self.add(encoded.trim_end_matches('='), Place::Anywhere);
        }
        // As Go, JSON and Rust quote it, also quoted twice.
        let json = |text: &str| {
            let quoted = Value::String(text.to_owned()).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let escaped = json(text);
        let html = escaped.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        let debug = text.escape_debug().to_string();
        let percent: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        for form in [
            json(&escaped),
            escaped,
            html,
            debug,
            percent.replace('+', "%20"),
            percent,
            text.replace('\'', "''"),
        ] {
            if form != text {
                self.add(&form, place);
            }
        }
        if text.len() > GO_YAML_LONG
            && let Some(shown) = text.get(..GO_YAML_SHOWN)
        {
            self.add(&format!("{shown}..."), Place::Anywhere);
        }
    }

    fn add(&mut self, pattern: &str, place: Place) {
        let pattern = pattern.to_ascii_lowercase();
        if pattern.is_empty() || self.public.contains(&pattern) {
            return;
        }
        let known = self.places.entry(pattern).or_insert(place);
        *known = place.min(*known);
        self.too_many = self.places.len() > MOST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known(values: &[&str]) -> KnownSecrets {
        let known = KnownSecrets::with_public_names(["app", "tenant-a"]);
        values.iter().for_each(|value| known.learn_bytes(value.as_bytes()));
        known
    }

    fn mask(values: &[&str], text: &str) -> String {
        known(values).mask(text).to_string()
    }

    #[test]
    fn values_are_masked_in_every_form_that_messages_use() {
        let value = "pa\"ss\\wo<rd & canary";
        for form in [
            value.to_owned(),
            value.to_uppercase(),
            format!("{value:?}"),
            Value::String(value.to_owned()).to_string(),
            json!({"message": json!({"a": value}).to_string()}).to_string(),
            STANDARD.encode(value),
            STANDARD.encode(format!("{value}\n")),
            "pa\\\"ss\\\\wo\\u003crd \\u0026 canary".to_owned(),
            "cannot unmarshal !!str `pa\"ss\\w...` into int".to_owned(),
        ] {
            let text = mask(&[value], &format!("before {form} after"));
            assert!(text.contains("***") && !text.to_lowercase().contains("canary"), "{form} -> {text}");
            assert!(!text.contains("pa\"ss\\w"), "{form} -> {text}");
            assert!(text.starts_with("before ") && text.ends_with(" after"), "{text}");
        }
    }

    #[test]
    fn short_values_are_masked_where_they_cannot_be_something_else() {
        assert_eq!(mask(&["ab"], "a cab: \"ab\" and 'ab' but ab"), "a cab: \"***\" and '***' but ab");
        assert_eq!(mask(&["main"], "remaining in main@sha1:1: main"), "remaining in main@sha1:1: ***");
        assert_eq!(mask(&["hunter22"], "xhunter22x"), "x***x");
        for plain in ["true", "", "  ", "\n"] {
            assert_eq!(
                mask(&[plain], "it is true that nothing is hidden"),
                "it is true that nothing is hidden"
            );
        }
        // Public names.
        assert_eq!(mask(&["tenant-a"], "Kustomization/tenant-a/app"), "Kustomization/tenant-a/app");
    }

    #[test]
    fn lines_and_values_of_documents_are_known() {
        let values = "db:\n  password: canary-one\n  ports: [54321]\nkey: |\n  first-line\n  second-line\n";
        for part in ["canary-one", "54321", "first-line", "second-line"] {
            assert_eq!(mask(&[values], &format!("bad {part}!")), "bad ***!");
        }
        assert_eq!(mask(&[values], "the key db.password is bad"), "the key db.password is bad");
        assert_eq!(mask(&["A=1\nTOKEN='canary-two'\n"], "got canary-two"), "got ***");
        assert_eq!(mask(&["one-part\ntwo-part"], "joined one-parttwo-part"), "joined ***");
        let secret =
            json!({"data": {"a": STANDARD.encode("canary-three")}, "stringData": {"b": "canary-four"}});
        let known = KnownSecrets::default();
        known.learn_secret(&secret);
        assert_eq!(known.mask("canary-three, canary-four").to_string(), "***, ***");
        let mut status =
            json!({"conditions": [{"type": "Ready", "message": "canary-three"}], "lastAppliedRevision": "x"});
        known.mask_status(&mut status);
        assert_eq!(status["conditions"][0]["message"], "***");
    }

    #[test]
    fn messages_are_truncated_between_characters() {
        assert_eq!(mask(&["pässwörd"], "ä pässwörd ö"), "ä *** ö");
        assert_eq!(mask(&["日本語"], "\"日本語\" 日本語"), "\"***\" 日本語");
        assert_eq!(mask(&["aaaaaaaa"], "aaaaaaaaaaa"), "***");
    }

    #[test]
    fn too_many_values_withhold_the_text() {
        let lines: String = (0..80_000).map(|n| format!("canary-{n:06}\n")).collect();
        assert!(mask(&[&lines], "something").starts_with("the text is withheld"));
    }

    #[tokio::test]
    async fn each_reconcile_has_its_own_secrets() {
        let one = KnownSecrets::default();
        one.clone().during(async { KnownSecrets::current().learn_text("canary-one") }).await;
        assert_eq!(one.mask("canary-one").to_string(), "***");
        assert_eq!(KnownSecrets::current().mask("canary-one").to_string(), "canary-one");
    }
}
