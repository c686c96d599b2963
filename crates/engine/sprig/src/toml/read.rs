//! TOML parser: which keys may be combined, with the errors of `BurntSushi/toml`.

use std::collections::{BTreeMap, HashSet};

use fl_gotemplate::{Entries, List, ListType, Map, Value, fmt, runes};

use super::lex::{Lex, Lexer, SyntaxError, is_bare, is_blank, is_break, or_end, shown};
use super::scalars::joined_lines;

type Key = Vec<String>;
type Table = BTreeMap<String, Item>;

/// The value of a key.
enum Item {
    Value(Value),
    Table(Table),
    /// `[[…]]`
    Tables(Vec<Table>),
}

/// Maximum nesting of arrays and inline tables.
const MAX_DEPTH: usize = 100;

/// Parses a document.
///
/// # Errors
/// The message of `BurntSushi/toml`, with line and last key.
pub(super) fn read(text: &[u8]) -> Result<Value, String> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.iter().take(6).any(|b| *b == 0) {
        return Err("toml: line 1: files cannot contain NULL bytes; probably using UTF-16; \
                    TOML files must be UTF-8"
            .to_owned());
    }
    let mut reader = Reader {
        lex: Lexer::new(text),
        root: Table::new(),
        context: Key::new(),
        current: String::new(),
        key_line: 1,
        implicit: HashSet::new(),
        arrays: HashSet::new(),
        depth: 0,
    };
    match reader.document() {
        Ok(()) => Ok(value_of(Item::Table(reader.root))),
        Err(SyntaxError { line, message }) => Err(match reader.last_key() {
            key if key.is_empty() => format!("toml: line {line}: {message}"),
            key => format!("toml: line {line} (last key {}): {message}", fmt::quoted(key.as_bytes())),
        }),
    }
}

fn value_of(item: Item) -> Value {
    let table = |table: Table| -> Value {
        let entries: Entries = table.into_iter().map(|(k, v)| (k.into(), value_of(v))).collect();
        Map::new(entries).into()
    };
    match item {
        Item::Value(value) => value,
        Item::Table(entries) => table(entries),
        Item::Tables(tables) => {
            let items = tables.into_iter().map(table).collect();
            Value::List(List::with_type(ListType::Named("[]map[string]interface {}", false), items))
        }
    }
}

/// A key as shown in messages.
fn dotted(key: &[String]) -> String {
    let part = |part: &String| {
        if !part.is_empty() && part.chars().all(is_bare) {
            return part.clone();
        }
        let mut out = Vec::new();
        super::quote_into(&mut out, part.as_bytes());
        String::from_utf8_lossy(&out).into_owned()
    };
    key.iter().map(part).collect::<Vec<_>>().join(".")
}

pub(super) struct Reader<'t> {
    pub(super) lex: Lexer<'t>,
    root: Table,
    /// The table that keys are added to.
    context: Key,
    /// The key whose value is being parsed.
    current: String,
    /// Line of the key, for errors about keys.
    key_line: usize,
    /// Tables that exist only because of their children.
    implicit: HashSet<Key>,
    /// Keys whose values are arrays.
    arrays: HashSet<Key>,
    depth: usize,
}

impl Reader<'_> {
    fn last_key(&self) -> String {
        match (self.current.is_empty(), self.context.is_empty()) {
            (true, _) => dotted(&self.context),
            (false, true) => self.current.clone(),
            (false, false) => format!("{}.{}", dotted(&self.context), self.current),
        }
    }

    fn key_error<T>(&self, message: String) -> Lex<T> {
        Err(SyntaxError { line: self.key_line, message })
    }

    fn document(&mut self) -> Lex<()> {
        loop {
            match self.lex.next()? {
                None => return Ok(()),
                Some(c) if is_blank(c) || is_break(c) => continue,
                Some('#') => {
                    self.lex.comment()?;
                    continue;
                }
                Some('[') => self.header()?,
                c => {
                    self.lex.back(c);
                    let outer = self.context.clone();
                    self.pair()?;
                    self.context = outer;
                    self.current.clear();
                }
            }
            self.line_end()?;
        }
    }

    fn line_end(&mut self) -> Lex<()> {
        self.lex.blanks()?;
        match self.lex.next()? {
            Some('#') => self.lex.comment(),
            None => Ok(()),
            Some(c) if is_break(c) => Ok(()),
            c => {
                let c = shown(c);
                self.lex.fail(format!(
                    "expected a top-level item to end with a newline, comment, or EOF, but got {c} instead"
                ))
            }
        }
    }

    fn header(&mut self) -> Lex<()> {
        let array = self.lex.accept('[')?;
        let mut key = Key::new();
        loop {
            self.lex.blanks()?;
            match self.lex.peek()? {
                None | Some(']') => {
                    return self.lex.fail("unexpected end of table name (table names cannot be empty)");
                }
                Some('.') => {
                    return self.lex.fail("unexpected table separator (table names cannot be empty)");
                }
                c => self.part(c, &mut key)?,
            }
            match self.lex.next()? {
                Some('.') => {}
                Some(']') => break,
                c => {
                    let c = shown(c);
                    return self
                        .lex
                        .fail(format!("expected '.' or ']' to end table name, but got {c} instead"));
                }
            }
        }
        if array {
            let c = self.lex.next()?;
            if c != Some(']') {
                let c = shown(c);
                return self
                    .lex
                    .fail(format!("expected end of table array name delimiter ']', but got {c} instead"));
            }
        }
        self.enter(&key, array)?;
        self.arrays.remove(&self.context);
        Ok(())
    }

    /// Parses one part of a dotted key, and the blanks after it.
    fn part(&mut self, first: Option<char>, key: &mut Key) -> Lex<()> {
        let part = self.name(first)?;
        if key.is_empty() {
            self.key_line = self.lex.line;
        }
        key.push(part);
        self.lex.blanks()
    }

    /// Parses one part of a key that starts with this character.
    fn name(&mut self, first: Option<char>) -> Lex<String> {
        match first {
            Some('"') => {
                self.lex.next()?;
                let (text, escapes) = self.lex.string()?;
                if escapes { self.unescaped(&text) } else { Ok(text) }
            }
            Some('\'') => {
                self.lex.next()?;
                self.lex.raw_string()
            }
            _ => self.lex.bare_name(),
        }
    }

    /// Parses `key = value` and adds it to the tables; returns the parts of the key and the value. The
    /// context is then that of the key.
    fn pair(&mut self) -> Lex<(Key, Value)> {
        self.lex.blanks()?;
        match self.lex.peek()? {
            None | Some('=') => return self.lex.fail("unexpected '=': key name appears blank"),
            Some('.') => return self.lex.fail("unexpected '.': keys cannot start with a '.'"),
            _ => {}
        }
        let mut key = Key::new();
        loop {
            self.lex.blanks()?;
            match self.lex.peek()? {
                None | Some('=') => return self.lex.fail("unexpected '='"),
                Some('.') => return self.lex.fail("unexpected '.'"),
                c => self.part(c, &mut key)?,
            }
            match self.lex.next()? {
                None => return self.lex.fail("unexpected EOF; expected key separator '='"),
                Some('.') => {}
                Some('=') => break,
                c => {
                    let message = format!("expected '.' or '=', but got {} instead", shown(c));
                    return if c == Some('\n') {
                        self.lex.fail_before(message)
                    } else {
                        self.lex.fail(message)
                    };
                }
            }
        }
        let (last, parents) = key.split_last().expect("a key has a part");
        self.current.clone_from(last);
        for parent in parents {
            let mut inner = self.context.clone();
            inner.push(parent.clone());
            self.implicit.insert(inner.clone());
            self.enter(&inner, false)?;
        }
        let value = self.value(false)?;
        let array = matches!(value, Value::List(_));
        self.set(last.clone(), Item::Value(value.clone()))?;
        let whole = self.path(last);
        if array {
            self.arrays.insert(whole)
        } else {
            self.arrays.remove(&whole)
        };
        Ok((key, value))
    }

    fn path(&self, last: &str) -> Key {
        let mut path = self.context.clone();
        path.push(last.to_owned());
        path
    }

    /// Makes a table, or a new one of an array, the context.
    fn enter(&mut self, key: &[String], array: bool) -> Lex<()> {
        let (last, parents) = key.split_last().expect("a key has a part");
        let mut table = &mut self.root;
        for (i, part) in parents.iter().enumerate() {
            let made = !table.contains_key(part);
            let item = table.entry(part.clone()).or_insert_with(|| Item::Table(Table::new()));
            if made {
                self.implicit.insert(parents[..=i].to_vec());
            }
            table = match inside(item) {
                Some(table) => table,
                None => {
                    let message = format!("Key '{}' was already created as a hash.", dotted(&parents[..=i]));
                    return Err(SyntaxError { line: self.key_line, message });
                }
            };
        }
        if array {
            match table.entry(last.clone()).or_insert_with(|| Item::Tables(Vec::new())) {
                Item::Tables(tables) => tables.push(Table::new()),
                _ => {
                    let message =
                        format!("Key '{}' was already created and cannot be used as an array.", dotted(key));
                    self.context = parents.to_vec();
                    return self.key_error(message);
                }
            }
            self.context = key.to_vec();
            return Ok(());
        }
        self.context = parents.to_vec();
        self.set(last.clone(), Item::Table(Table::new()))?;
        self.context = key.to_vec();
        Ok(())
    }

    /// Sets a value in the context. A table that was only implied may be defined once.
    fn set(&mut self, key: String, item: Item) -> Lex<()> {
        let whole = self.path(&key);
        let mut table = &mut self.root;
        for (i, part) in self.context.iter().enumerate() {
            table = match table.get_mut(part).and_then(inside) {
                Some(table) => table,
                None => {
                    let message = format!("Key '{}' has already been defined.", dotted(&self.context[..=i]));
                    return Err(SyntaxError { line: self.key_line, message });
                }
            };
        }
        if let std::collections::btree_map::Entry::Vacant(free) = table.entry(key.clone()) {
            free.insert(item);
            return Ok(());
        }
        if !self.implicit.remove(&whole) {
            return self.key_error(format!("Key '{}' has already been defined.", dotted(&whole)));
        }
        if self.arrays.contains(&whole) {
            table.insert(key, item);
        }
        Ok(())
    }

    fn value(&mut self, in_array: bool) -> Lex<Value> {
        self.lex.blanks()?;
        let start = self.lex.at;
        let c = self.lex.next()?;
        Ok(match c {
            Some('0'..='9') => return self.number_or_date(start, c),
            Some('[') => return self.nested(Self::array),
            Some('{') => return self.nested(|reader| reader.inline_table(in_array)),
            Some(quote @ ('"' | '\'')) => {
                if self.lex.accept(quote)? {
                    if self.lex.accept(quote)? {
                        let text = self.lex.long_string(quote)?;
                        let text = text.strip_prefix('\n').or(text.strip_prefix("\r\n")).unwrap_or(&text);
                        return Ok(if quote == '"' {
                            self.unescaped(&joined_lines(text))?.into()
                        } else {
                            text.into()
                        });
                    }
                    self.lex.back(Some(quote));
                }
                if quote == '\'' {
                    return Ok(self.lex.raw_string()?.into());
                }
                let (text, escapes) = self.lex.string()?;
                if escapes { self.unescaped(&text)?.into() } else { text.into() }
            }
            Some('.') => return self.lex.fail("floats must start with a digit, not '.'"),
            Some('+' | '-') => return self.signed(start),
            Some('i') if self.lex.accept('n')? && self.lex.accept('f')? => Value::Float(f64::INFINITY),
            Some('n') if self.lex.accept('a')? && self.lex.accept('n')? => Value::Float(f64::NAN),
            Some(first) if runes::is_letter(first) => {
                self.lex.back(c);
                let from = self.lex.at;
                self.lex.take(runes::is_letter)?;
                match self.lex.since(from).as_str() {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    word => {
                        let word = fmt::quoted(word.as_bytes());
                        return self.lex.fail(format!("expected value but found {word} instead"));
                    }
                }
            }
            None => return self.lex.fail("unexpected EOF; expected value"),
            _ => {
                let message = format!("expected value but found {} instead", shown(c));
                return if c == Some('\n') { self.lex.fail_before(message) } else { self.lex.fail(message) };
            }
        })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Lex<Value>) -> Lex<Value> {
        if self.depth >= MAX_DEPTH {
            return self.lex.fail(format!("values are nested more than {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Lex<Value> {
        let mut whole = self.context.clone();
        if !self.current.is_empty() {
            whole.push(self.current.clone());
        }
        self.arrays.insert(whole);
        let mut items = Vec::new();
        loop {
            match self.lex.next()? {
                Some(c) if is_blank(c) || is_break(c) => continue,
                Some('#') => {
                    self.lex.comment()?;
                    continue;
                }
                Some(',') => return self.lex.fail("unexpected comma"),
                Some(']') => return Ok(Value::list(items)),
                c => self.lex.back(c),
            }
            items.push(self.value(true)?);
            loop {
                match self.lex.next()? {
                    Some(c) if is_blank(c) || is_break(c) => {}
                    Some('#') => self.lex.comment()?,
                    Some(',') => break,
                    Some(']') => return Ok(Value::list(items)),
                    c => {
                        let c = or_end(c);
                        return self
                            .lex
                            .fail(format!("expected a comma (',') or array terminator (']'), but got {c}"));
                    }
                }
            }
        }
    }

    fn inline_table(&mut self, in_array: bool) -> Lex<Value> {
        let (outer, outer_key) = (self.context.clone(), self.current.clone());
        let path = self.path(&outer_key);
        self.current.clear();
        self.context.clone_from(&path);
        self.implicit.insert(path.clone());
        self.enter(&path, in_array)?;
        let mut table = Table::new();
        'pairs: loop {
            match self.lex.next()? {
                Some(c) if is_blank(c) || is_break(c) => continue,
                Some('#') => {
                    self.lex.comment()?;
                    continue;
                }
                Some(',') => return self.lex.fail("unexpected comma"),
                Some('}') => break,
                c => self.lex.back(c),
            }
            let (key, value) = self.pair()?;
            let (last, parents) = key.split_last().expect("a key has a part");
            let mut place = &mut table;
            for part in parents {
                let item = place.entry(part.clone()).or_insert_with(|| Item::Table(Table::new()));
                place = match inside(item) {
                    Some(place) => place,
                    None => return self.key_error(format!("{:?} is not a table", self.context)),
                };
            }
            place.insert(last.clone(), Item::Value(value));
            self.context.clone_from(&path);
            loop {
                match self.lex.next()? {
                    Some(c) if is_blank(c) || is_break(c) => {}
                    Some('#') => self.lex.comment()?,
                    Some(',') => {
                        self.lex.blanks()?;
                        if self.lex.peek()? != Some('}') {
                            break;
                        }
                    }
                    Some('}') => break 'pairs,
                    c => {
                        let c = or_end(c);
                        return self.lex.fail(format!(
                            "expected a comma or an inline table terminator '}}', but got {c} instead"
                        ));
                    }
                }
            }
        }
        self.context = outer;
        self.current = outer_key;
        Ok(value_of(Item::Table(table)))
    }
}

/// The table of an item: the last one of several.
fn inside(item: &mut Item) -> Option<&mut Table> {
    match item {
        Item::Table(table) => Some(table),
        Item::Tables(tables) => tables.last_mut(),
        Item::Value(_) => None,
    }
}
