//! Parses texts with expressions.

use crate::error::Error;

/// Limit on nesting, which bounds the use of the stack.
const MAX_DEPTH: usize = 100;

/// A parsed text, which can be expanded with different variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Call(Call),
}

/// `${name<op>args}`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) op: Op,
    pub(crate) args: Vec<Part>,
    pub(crate) line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Value,
    /// `=`, `:=`, `:-`, `:?`, `:+`
    Default,
    Length,
    Substring,
    LowerFirst,
    Lower,
    UpperFirst,
    Upper,
    ShortestPrefix,
    LongestPrefix,
    ShortestSuffix,
    LongestSuffix,
    ReplaceFirst,
    ReplaceAll,
    ReplacePrefix,
    ReplaceSuffix,
}

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// An expression is malformed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut reader = Reader { text, pos: 0 };
        let mut parts = Vec::new();
        loop {
            match reader.word(Escapes::Dollar, |_| true) {
                Word::Text(text) => parts.push(Part::Text(text)),
                Word::Call => parts.push(Part::Call(reader.call(0)?)),
                Word::End => return Ok(Self { parts }),
            }
        }
    }

    /// The names of the variables in the text, in order, with repetitions.
    pub fn names(&self) -> Vec<&str> {
        fn collect<'a>(parts: &'a [Part], names: &mut Vec<&'a str>) {
            for part in parts {
                if let Part::Call(call) = part {
                    names.push(&call.name);
                    collect(&call.args, names);
                }
            }
        }
        let mut names = Vec::new();
        collect(&self.parts, &mut names);
        names
    }
}

/// Which characters can be escaped: `$$` in text; inside arguments of replacements `\/` and `\\` too.
#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    None,
    Dollar,
    All,
}

enum Word {
    Text(String),
    /// `${`, already consumed.
    Call,
    /// The end of the text, or a character that does not belong to the word.
    End,
}

struct Reader<'a> {
    text: &'a str,
    pos: usize,
}

impl Reader<'_> {
    fn line(&self) -> usize {
        1 + self.text[..self.pos].bytes().filter(|b| *b == b'\n').count()
    }

    /// The next character, if any. Like upstream, a NUL ends the text.
    fn peek(&self) -> Option<char> {
        self.text[self.pos..].chars().next().filter(|c| *c != '\0')
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.pos += wanted.len_utf8();
        }
        found
    }

    fn at_call(&self) -> bool {
        self.text[self.pos..].starts_with("${")
    }

    /// Text up to `${` or the first character that is not in `belongs`; at least one character.
    fn word(&mut self, escapes: Escapes, belongs: fn(char) -> bool) -> Word {
        if self.at_call() {
            self.pos += 2;
            return Word::Call;
        }
        let mut word = String::new();
        while let Some(c) = self.peek() {
            if self.at_call() {
                break;
            }
            let next = self.text[self.pos + c.len_utf8()..].chars().next();
            let escaped = match (c, next) {
                ('$', Some('$')) => escapes != Escapes::None,
                ('\\', Some('/' | '\\')) => escapes == Escapes::All,
                _ => false,
            };
            if escaped {
                self.pos += 2;
                word.extend(next);
            } else if belongs(c) {
                self.pos += c.len_utf8();
                word.push(c);
            } else {
                break;
            }
        }
        if word.is_empty() { Word::End } else { Word::Text(word) }
    }

    fn name(&mut self) -> Option<String> {
        let rest = &self.text[self.pos..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.pos += end;
        (end > 0).then(|| rest[..end].to_owned())
    }

    /// An expression after its `${`.
    fn call(&mut self, depth: usize) -> Result<Call, Error> {
        let line = self.line();
        if depth >= MAX_DEPTH {
            return Err(Error::TooDeep { line, max: MAX_DEPTH });
        }
        if self.take_if('#') {
            let name = self.name().ok_or(Error::BadSubstitution { line })?;
            return self.close(Call { name, op: Op::Length, args: Vec::new(), line });
        }
        let name = self.name().ok_or(Error::VariableName { line })?;
        let mut call = Call { name, op: Op::Value, args: Vec::new(), line };
        match self.peek() {
            Some(':') => {
                self.pos += 1;
                if let Some('=' | '-' | '?' | '+') = self.peek() {
                    self.pos += 1;
                    return self.default(call, depth);
                }
                return self.substring(call, depth);
            }
            Some('=') => {
                self.pos += 1;
                return self.default(call, depth);
            }
            Some(first @ (',' | '^')) => {
                self.pos += 1;
                let second = self.peek().filter(|c| matches!(c, ',' | '^'));
                self.pos += usize::from(second.is_some());
                call.op = match (first, second) {
                    (',', None) => Op::LowerFirst,
                    (',', Some(',')) => Op::Lower,
                    ('^', None) => Op::UpperFirst,
                    ('^', Some('^')) => Op::Upper,
                    // `,^` and `^,` are accepted but have no effect.
                    _ => Op::Value,
                };
            }
            Some('/') => return self.replace(call, depth),
            Some('#') => {
                self.pos += 1;
                call.op = if self.take_if('#') { Op::LongestPrefix } else { Op::ShortestPrefix };
                call.args.push(self.argument(Escapes::None, |c| c != '}', line, depth)?);
            }
            Some('%') => {
                self.pos += 1;
                call.op = if self.take_if('%') { Op::LongestSuffix } else { Op::ShortestSuffix };
                call.args.push(self.argument(Escapes::None, |c| c != '}', line, depth)?);
            }
            _ => {
                return if self.take_if('}') { Ok(call) } else { Err(Error::MissingClosingBrace { line }) };
            }
        }
        self.close(call)
    }

    fn close(&mut self, call: Call) -> Result<Call, Error> {
        if self.take_if('}') { Ok(call) } else { Err(Error::BadSubstitution { line: call.line }) }
    }

    fn argument(
        &mut self,
        escapes: Escapes,
        belongs: fn(char) -> bool,
        line: usize,
        depth: usize,
    ) -> Result<Part, Error> {
        match self.word(escapes, belongs) {
            Word::Text(text) => Ok(Part::Text(text)),
            Word::Call => Ok(Part::Call(self.call(depth + 1)?)),
            Word::End => Err(Error::FunctionArgument { line }),
        }
    }

    /// Texts and expressions up to the closing brace.
    fn default(&mut self, mut call: Call, depth: usize) -> Result<Call, Error> {
        call.op = Op::Default;
        while !self.take_if('}') {
            call.args.push(self.argument(Escapes::None, |c| c != '}', call.line, depth)?);
        }
        Ok(call)
    }

    fn substring(&mut self, mut call: Call, depth: usize) -> Result<Call, Error> {
        call.op = Op::Substring;
        call.args.push(self.argument(Escapes::None, |c| c != ':' && c != '}', call.line, depth)?);
        if self.take_if('}') {
            return Ok(call);
        }
        if !self.take_if(':') {
            return Err(Error::BadSubstitution { line: call.line });
        }
        while self.take_if(':') {}
        call.args.push(self.argument(Escapes::None, |c| c != '}', call.line, depth)?);
        self.close(call)
    }

    fn replace(&mut self, mut call: Call, depth: usize) -> Result<Call, Error> {
        self.pos += 1;
        call.op = match self.peek() {
            Some('/') => Op::ReplaceAll,
            Some('#') => Op::ReplacePrefix,
            Some('%') => Op::ReplaceSuffix,
            _ => Op::ReplaceFirst,
        };
        self.pos += usize::from(call.op != Op::ReplaceFirst);
        call.args.push(self.argument(Escapes::All, |c| c != '/', call.line, depth)?);
        if !self.take_if('/') {
            return Err(Error::BadSubstitution { line: call.line });
        }
        while self.take_if('/') {}
        if self.peek() != Some('}') {
            call.args.push(self.argument(Escapes::All, |c| c != '}', call.line, depth)?);
        }
        self.close(call)
    }
}
