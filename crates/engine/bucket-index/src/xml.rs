//! XML as a stream: pieces of bytes in, elements and text out.
//!
//! Only what answers of object stores are made of: elements, attributes, text, character data, comments. No document type, and so
//! no entities but the five that need no definition; nothing is ever expanded or fetched.

/// Elements within elements.
const DEEPEST: usize = 32;
/// Bytes between `<` and `>`.
const LONGEST_TAG: usize = 4 << 10;
/// `&#x10FFFF;` is the longest that means anything.
const LONGEST_REFERENCE: usize = 12;
/// Some begin with it.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// What is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The name without its prefix, and the attributes as they stand.
    Start { name: &'a str, attributes: &'a str },
    /// A piece of text; long text comes in several.
    Text(&'a [u8]),
    /// The name without its prefix.
    End { name: &'a str },
}

/// Why an answer is no XML that is read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XmlError {
    #[error("byte {at}: {problem}")]
    Syntax { at: u64, problem: &'static str },
    #[error("it ends within an element")]
    Unfinished,
    #[error("it is empty")]
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// Until `-->`.
    Comment,
    /// Until `?>`.
    Instruction,
    /// Until `]]>`; its text counts.
    Data,
}

/// Reads XML piece by piece. What waits for its end is bounded, whatever comes.
#[derive(Debug)]
pub struct Xml {
    state: State,
    /// What was fed and is not complete yet.
    pending: Vec<u8>,
    /// Names of the open elements, prefixes included.
    open: Vec<String>,
    seen_root: bool,
    /// Bytes behind us.
    at: u64,
}

impl Default for Xml {
    fn default() -> Self {
        Self::new()
    }
}

impl Xml {
    pub fn new() -> Self {
        Self { state: State::Text, pending: Vec::new(), open: Vec::new(), seen_root: false, at: 0 }
    }

    /// Reads a piece. An error of `visit` ends it.
    ///
    /// # Errors
    /// A syntax error, a limit, or an error of `visit`.
    pub fn feed<E: From<XmlError>>(
        &mut self,
        bytes: &[u8],
        visit: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // In pieces of our own, so that what waits stays small even when a whole answer comes at once.
        for piece in bytes.chunks(LONGEST_TAG) {
            let mut buffer = std::mem::take(&mut self.pending);
            buffer.extend_from_slice(piece);
            let mut from = 0;
            while let Some(taken) = self.step(&buffer[from..], visit)? {
                from += taken;
                self.at += taken as u64;
            }
            buffer.drain(..from);
            self.pending = buffer;
        }
        Ok(())
    }

    /// The end of the answer.
    ///
    /// # Errors
    /// Something is still open, or there was nothing.
    pub fn finish(&self) -> Result<(), XmlError> {
        if !self.open.is_empty() || self.state != State::Text || self.pending.iter().any(|b| !is_space(*b)) {
            return Err(XmlError::Unfinished);
        }
        if self.seen_root { Ok(()) } else { Err(XmlError::Empty) }
    }

    fn wrong(&self, problem: &'static str) -> XmlError {
        XmlError::Syntax { at: self.at, problem }
    }

    /// Takes one thing off the front; `None` when more bytes are needed.
    fn step<E: From<XmlError>>(
        &mut self,
        rest: &[u8],
        visit: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        if rest.is_empty() {
            return Ok(None);
        }
        if self.at == 0 && MARK.starts_with(&rest[..rest.len().min(MARK.len())]) {
            return Ok((rest.len() >= MARK.len()).then_some(MARK.len()));
        }
        match self.state {
            State::Comment => Ok(self.skip(rest, b"-->").map(|(taken, _)| taken)),
            State::Instruction => Ok(self.skip(rest, b"?>").map(|(taken, _)| taken)),
            State::Data => {
                let Some((taken, text)) = self.skip(rest, b"]]>") else { return Ok(None) };
                if text > 0 {
                    visit(Event::Text(&rest[..text]))?;
                }
                Ok(Some(taken))
            }
            State::Text if rest[0] == b'<' => self.markup(rest, visit),
            State::Text => self.text(rest, visit),
        }
    }

    /// Passes over what ends with `end`: bytes taken, and how many of them come before the end. The last bytes wait, as they may
    /// be the beginning of the end.
    fn skip(&mut self, rest: &[u8], end: &[u8]) -> Option<(usize, usize)> {
        if let Some(found) = rest.windows(end.len()).position(|w| w == end) {
            self.state = State::Text;
            return Some((found + end.len(), found));
        }
        let taken = rest.len().saturating_sub(end.len() - 1);
        (taken > 0).then_some((taken, taken))
    }

    fn text<E: From<XmlError>>(
        &mut self,
        rest: &[u8],
        visit: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        if rest[0] == b'&' {
            let Some(end) = rest.iter().take(LONGEST_REFERENCE).position(|b| *b == b';') else {
                if rest.len() >= LONGEST_REFERENCE {
                    return Err(self.wrong("a reference to an entity that is not known").into());
                }
                return Ok(None);
            };
            let Some(meant) = reference(&rest[1..end]) else {
                return Err(self.wrong("a reference to an entity that is not known").into());
            };
            if self.open.is_empty() {
                return Err(self.wrong("text outside of the root element").into());
            }
            visit(Event::Text(meant.encode_utf8(&mut [0; 4]).as_bytes()))?;
            return Ok(Some(end + 1));
        }
        let end = rest.iter().position(|b| matches!(b, b'<' | b'&')).unwrap_or(rest.len());
        let text = &rest[..end];
        if self.open.is_empty() {
            if !text.iter().all(|b| is_space(*b)) {
                return Err(self.wrong("text outside of the root element").into());
            }
        } else {
            visit(Event::Text(text))?;
        }
        Ok(Some(end))
    }

    fn markup<E: From<XmlError>>(
        &mut self,
        rest: &[u8],
        visit: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        for (begin, state) in
            [(&b"<!--"[..], State::Comment), (b"<?", State::Instruction), (b"<![CDATA[", State::Data)]
        {
            if rest.starts_with(begin) {
                if state == State::Data && self.open.is_empty() {
                    return Err(self.wrong("text outside of the root element").into());
                }
                self.state = state;
                return Ok(Some(begin.len()));
            }
            if begin.starts_with(rest) {
                return Ok(None);
            }
        }
        if rest.starts_with(b"<!") {
            return Err(self.wrong("a document type, which is refused").into());
        }
        let Some(end) = tag_end(rest) else {
            if rest.len() > LONGEST_TAG {
                return Err(self.wrong("a tag that is too long").into());
            }
            return Ok(None);
        };
        if end > LONGEST_TAG {
            return Err(self.wrong("a tag that is too long").into());
        }
        let inside =
            std::str::from_utf8(&rest[1..end]).map_err(|_| self.wrong("a tag that is not UTF-8"))?.trim_end();
        if let Some(name) = inside.strip_prefix('/') {
            if self.open.pop().as_deref() != Some(name) {
                return Err(self.wrong("an end of an element that is not open").into());
            }
            visit(Event::End { name: local(name) })?;
            return Ok(Some(end + 1));
        }
        let (inside, closed) = inside.strip_suffix('/').map_or((inside, false), |inside| (inside, true));
        let (name, attributes) = inside.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((inside, ""));
        let odd = |c: char| c.is_ascii_control() || matches!(c, '<' | '>' | '&' | '\'' | '"' | '=' | '/');
        if name.is_empty() || name.contains(odd) {
            return Err(self.wrong("an element without a proper name").into());
        }
        if self.open.is_empty() && std::mem::replace(&mut self.seen_root, true) {
            return Err(self.wrong("a second root element").into());
        }
        visit(Event::Start { name: local(name), attributes })?;
        if closed {
            visit(Event::End { name: local(name) })?;
        } else {
            if self.open.len() >= DEEPEST {
                return Err(self.wrong("elements within elements within elements, too deep").into());
            }
            self.open.push(name.to_owned());
        }
        Ok(Some(end + 1))
    }
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Where the `>` of a tag is; one in quotes does not end it.
fn tag_end(rest: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (i, b) in rest.iter().enumerate() {
        match (quote, b) {
            (None, b'>') => return Some(i),
            (None, b'\'' | b'"') => quote = Some(*b),
            (Some(q), b) if q == *b => quote = None,
            _ => {}
        }
    }
    None
}

fn reference(name: &[u8]) -> Option<char> {
    let name = std::str::from_utf8(name).ok()?;
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let (digits, base) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
            if digits.starts_with('+') {
                return None;
            }
            char::from_u32(u32::from_str_radix(digits, base).ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, piece: usize) -> Result<String, XmlError> {
        let mut xml = Xml::new();
        let mut out = String::new();
        for part in text.as_bytes().chunks(piece) {
            xml.feed::<XmlError>(part, &mut |event| {
                match event {
                    Event::Start { name, attributes } => out.push_str(&format!("<{name}|{attributes}>")),
                    Event::Text(text) => out.push_str(&String::from_utf8_lossy(text)),
                    Event::End { name } => out.push_str(&format!("</{name}>")),
                }
                Ok(())
            })?;
        }
        xml.finish()?;
        Ok(out)
    }

    #[test]
    fn pieces_of_any_size_say_the_same() {
        let text = "\u{feff}<?xml version=\"1.0\"?>\n<!-- a > b --><a:L x=\"<>&'\" ><k>a&amp;b&#x41;&#66;</k><e/><![CDATA[<raw>]] ]]></a:L>\n";
        let want = "<L|x=\"<>&'\"><k|>a&bAB</k><e|></e><raw>]] </L>";
        for piece in 1..text.len() {
            assert_eq!(read(text, piece).as_deref(), Ok(want), "{piece}");
        }
    }

    /// E09: what is no plain answer is refused, and nothing is expanded.
    #[test]
    fn hostile_texts() {
        for (text, problem) in [
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "document type"),
            ("<a>&b;</a>", "entity"),
            ("<a>&#xD800;</a>", "entity"),
            ("<a>&#99999999999;</a>", "entity"),
            ("<a></b>", "not open"),
            ("</a>", "not open"),
            ("<a/><b/>", "second root"),
            ("text", "outside"),
            ("<![CDATA[x]]>", "outside"),
            ("< a/>", "proper name"),
            ("<a", "within an element"),
            ("<a>", "within an element"),
            ("<a/><!-- ", "within an element"),
            ("", "empty"),
        ] {
            for piece in [1, 7, 4096] {
                let error = read(text, piece).expect_err(text).to_string();
                assert!(error.contains(problem), "{text}: {error}");
            }
        }
        let deep = "<a>".repeat(100_000);
        assert!(read(&deep, 4096).expect_err("deep").to_string().contains("too deep"));
        let long = format!("<a {}", "x".repeat(100_000));
        assert!(read(&long, 4096).expect_err("long").to_string().contains("too long"));
        let name = format!("<a>&{};</a>", "x".repeat(100_000));
        assert!(read(&name, 4096).expect_err("long").to_string().contains("entity"));
    }

    /// E09: whatever is fed, little waits.
    #[test]
    fn little_waits() {
        let mut xml = Xml::new();
        let mut text = 0;
        let mut feed = |bytes: &[u8]| {
            let mut xml_text = |event: Event<'_>| {
                if let Event::Text(piece) = event {
                    text += piece.len();
                }
                Ok::<_, XmlError>(())
            };
            xml.feed(bytes, &mut xml_text).expect("fine");
            assert!(xml.pending.capacity() <= 4 * LONGEST_TAG, "{}", xml.pending.capacity());
        };
        feed(b"<a>");
        for _ in 0..64 {
            feed(&[b'x'; 1 << 16]);
        }
        feed(b"<!--");
        for _ in 0..64 {
            feed(&[b'-'; 1 << 16]);
        }
        assert_eq!(text, 64 << 16);
    }
}
