//! No flag is accepted and ignored: each is read by the code around its declaration, or says that it is refused or changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MAKERS: [&str; 8] = ["text", "switch", "number", "decimal", "duration", "list", "repeated", "checked"];

struct Declared {
    name: String,
    /// What follows the declaration: `.or("x").refused("…")`.
    options: String,
}

fn sources(folder: &Path, out: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            // Tests at the end of a file declare and name flags, too.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            out.insert(path, code);
        }
    }
}

/// Where the parentheses that open at the start of `text` close.
fn closing(text: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '(' if !in_string => depth += 1,
            ')' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// The flags that a source declares, and the source without their declarations.
fn declarations(code: &str) -> (Vec<Declared>, String) {
    let (mut found, mut rest, mut at) = (Vec::new(), String::new(), 0);
    while at < code.len() {
        let here = &code[at..];
        let before = code[..at].chars().next_back();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let maker = MAKERS.iter().find(|m| {
            let arguments = here.strip_prefix(**m).and_then(|tail| tail.strip_prefix('('));
            let name = arguments.and_then(|a| a.trim_start().strip_prefix('"')?.split_once('"'));
            let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            name.is_some_and(|(name, rest)| is_name(name) && rest.trim_start().starts_with(','))
        });
        let Some(maker) = maker.filter(|_| !before.is_some_and(is_word)) else {
            let c = here.chars().next().expect("not at the end");
            rest.push(c);
            at += c.len_utf8();
            continue;
        };
        let mut end = maker.len() + closing(&here[maker.len()..]);
        let name = here[maker.len() + 1..].trim_start().trim_start_matches('"').split('"').next();
        let options = end;
        while let Some(call) = here[end..].trim_start().strip_prefix('.') {
            let start = here.len() - call.len();
            let Some(open) = call.find('(') else { break };
            end = start + open + closing(&call[open..]);
        }
        found.push(Declared {
            name: name.unwrap_or_default().to_owned(),
            options: here[options..end].to_owned(),
        });
        at += end;
    }
    (found, rest)
}

#[test]
fn every_flag_is_read_or_marked_without_effect() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = BTreeMap::new();
    sources(&root, &mut files);
    let parsed: BTreeMap<&PathBuf, (Vec<Declared>, String)> =
        files.iter().map(|(path, code)| (path, declarations(code))).collect();
    let (mut ignored, mut count) = (Vec::new(), 0);
    for (path, (flags, _)) in &parsed {
        // Flags of every command are read anywhere, those of a folder of commands in that folder, others where they are declared.
        let folder = path.parent().expect("a folder");
        let is_reader = |reader: &Path| match path.file_name().and_then(|n| n.to_str()) {
            Some("kubeconfig.rs") => true,
            _ if folder == root || folder.ends_with("commands") => reader == path.as_path(),
            _ => reader.parent() == Some(folder),
        };
        for flag in flags {
            count += 1;
            let quoted = format!("\"{}\"", flag.name);
            let mut readers = parsed.iter().filter(|(reader, _)| is_reader(reader));
            let is_read = readers.any(|(_, (_, code))| code.contains(&quoted));
            let is_exempt = flag.options.contains(".refused(") || flag.options.contains(".constant(");
            if is_read == is_exempt {
                let why = if is_read { "read, but marked as without effect" } else { "accepted and ignored" };
                ignored.push(format!("{}: --{} is {why}", path.display(), flag.name));
            }
        }
    }
    assert!(count > 200, "only {count} flags found");
    assert!(ignored.is_empty(), "{}", ignored.join("\n"));
}
