//! Parser of label selectors. It follows Kubernetes' parser token by token to produce the same error
//! messages.

use std::collections::BTreeSet;

use crate::label_selector::{Operator, Requirement, SelectorError};
use crate::name::check_qualified_name;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Error,
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

const SYMBOLS: [(&str, Token); 11] = [
    (")", Token::Close),
    (",", Token::Comma),
    ("!", Token::Not),
    ("==", Token::DoubleEquals),
    ("=", Token::Equals),
    (">", Token::Greater),
    ("in", Token::In),
    ("<", Token::Less),
    ("!=", Token::NotEquals),
    ("notin", Token::NotIn),
    ("(", Token::Open),
];

fn symbol(text: &str) -> Option<Token> {
    SYMBOLS.iter().find(|(s, _)| *s == text).map(|(_, token)| *token)
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The next token, its text and the rest.
fn lex(text: &str) -> (Token, String, &str) {
    let text = text.trim_start_matches(is_blank);
    // A NUL at the start of a token ends the input: Go's lexer returns one when it reads past the end.
    let Some(first) = text.chars().next().filter(|c| *c != '\0') else {
        return (Token::End, String::new(), "");
    };
    if !is_special(first) {
        let end = text.find(|c| is_special(c) || is_blank(c) || c == '\0').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let rest = rest.strip_prefix('\0').unwrap_or(rest);
        return (symbol(word).unwrap_or(Token::Identifier), word.to_owned(), rest);
    }
    // The longest symbol wins; a run of special characters that is not a symbol gives back its last
    // character.
    let mut found = None;
    let run = text.find(|c| !is_special(c)).unwrap_or(text.len());
    for end in 1..=run {
        match symbol(&text[..end]) {
            Some(token) => found = Some((token, end)),
            None if found.is_some() => break,
            None => {}
        }
    }
    match found {
        Some((token, end)) => (token, text[..end].to_owned(), &text[end..]),
        None => (Token::Error, format!("error expected: keyword found '{}'", &text[..run]), &text[run..]),
    }
}

fn unexpected(found: impl Into<String>, expected: &'static str) -> SelectorError {
    SelectorError::Token { found: found.into(), expected }
}

struct Parser {
    tokens: Vec<(Token, String)>,
    at: usize,
}

impl Parser {
    /// The current token in a position where a value is expected: `in` and `notin` are identifiers there.
    fn peek(&self) -> Token {
        match self.tokens[self.at].0 {
            Token::In | Token::NotIn => Token::Identifier,
            other => other,
        }
    }

    fn text(&self) -> &str {
        &self.tokens[self.at].1
    }

    fn take(&mut self) -> (Token, String) {
        let token = self.peek();
        (token, self.take_raw().1)
    }

    fn take_raw(&mut self) -> (Token, String) {
        let taken = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        taken
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let (mut token, mut key) = self.take();
        let negated = token == Token::Not;
        if negated {
            (token, key) = self.take();
        }
        if token != Token::Identifier {
            return Err(unexpected(key, "identifier"));
        }
        if let Err(error) = check_qualified_name(&key) {
            return Err(SelectorError::Key { key, error });
        }
        let alone = matches!(self.peek(), Token::End | Token::Comma);
        let (operator, values) = match (negated, alone) {
            (true, _) => (Operator::DoesNotExist, BTreeSet::new()),
            (false, true) => (Operator::Exists, BTreeSet::new()),
            (false, false) => {
                let operator = self.operator()?;
                let values = match operator {
                    Operator::In | Operator::NotIn => self.list()?,
                    _ => BTreeSet::from([self.exact()?]),
                };
                (operator, values)
            }
        };
        Requirement::new(key, operator, values.into_iter().collect())
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        let (token, text) = self.take_raw();
        Ok(match token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            _ => return Err(unexpected(text, "in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn exact(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.take() {
            (Token::Identifier, text) => Ok(text),
            (_, text) => Err(unexpected(text, "identifier")),
        }
    }

    fn list(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        let (token, text) = self.take();
        if token != Token::Open {
            return Err(SelectorError::OpeningParenthesis(text));
        }
        let first = self.text().to_owned();
        match self.peek() {
            Token::Identifier | Token::Comma => {
                let values = self.identifiers()?;
                if self.take().0 != Token::Close {
                    return Err(unexpected(first, "')'"));
                }
                Ok(values)
            }
            Token::Close => {
                self.take();
                Ok(BTreeSet::from([String::new()]))
            }
            _ => Err(unexpected(first, "',', ')' or identifier")),
        }
    }

    fn identifiers(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        let mut values = BTreeSet::new();
        loop {
            match self.take() {
                (Token::Identifier, text) => {
                    values.insert(text);
                    match self.peek() {
                        Token::Comma => {}
                        Token::Close => return Ok(values),
                        _ => return Err(unexpected(self.text(), "',' or ')'")),
                    }
                }
                // Nothing between two commas is the empty value.
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek() {
                        Token::Close => {
                            values.insert(String::new());
                            return Ok(values);
                        }
                        Token::Comma => {
                            self.take();
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                (_, text) => return Err(unexpected(text, "',', or identifier")),
            }
        }
    }
}

/// Parses a selector into its requirements, in the order of the text.
pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    loop {
        let (token, literal, after) = lex(rest);
        tokens.push((token, literal));
        if token == Token::End {
            break;
        }
        rest = after;
    }
    let mut parser = Parser { tokens, at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::Identifier | Token::Not => {
                let requirement =
                    parser.requirement().map_err(|error| SelectorError::ParseRequirement(Box::new(error)))?;
                requirements.push(requirement);
                match parser.take() {
                    (Token::End, _) => return Ok(requirements),
                    (Token::Comma, _) => {
                        if !matches!(parser.peek(), Token::Identifier | Token::Not) {
                            let found = parser.text();
                            return Err(unexpected(found, "identifier after ','"));
                        }
                    }
                    (_, found) => {
                        return Err(unexpected(found, "',' or 'end of string'"));
                    }
                }
            }
            Token::End => return Ok(requirements),
            _ => {
                let found = parser.text();
                return Err(unexpected(found, "!, identifier, or 'end of string'"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Selector;

    #[test]
    fn prints_requirements_sorted_by_key() {
        for (text, printed) in [
            ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
            ("b=1, a == 2", "a==2,b=1"),
            ("in in (in)", "in in (in)"),
            ("x=in", "x=in"),
            ("x in (,)", "x in ()"),
            ("!a ,b", "!a,b"),
            ("a!=b", "a!=b"),
            ("a=", "a="),
            (" ", ""),
        ] {
            assert_eq!(text.parse::<Selector>().map(|s| s.to_string()), Ok(printed.to_owned()), "{text}");
        }
    }

    #[test]
    fn error_messages_match_kubernetes() {
        // Recorded from k8s.io/apimachinery 0.34 (labels.Parse).
        for (text, error) in [
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("a=b\0c", "found 'c', expected: ',' or 'end of string'"),
            ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
            ("a===b", "unable to parse requirement: found '=', expected: identifier"),
            ("a notin", "unable to parse requirement: found '' expected: '('"),
            ("a,", "found '', expected: identifier after ','"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            (",a", "found ',', expected: !, identifier, or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a ~ b", "unable to parse requirement: found '~', expected: in, notin, =, ==, !=, gt, lt"),
            ("a=(", "unable to parse requirement: found '(', expected: identifier"),
            (
                "a>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value \
                 must be an integer",
            ),
        ] {
            assert_eq!(text.parse::<Selector>().map_err(|e| e.to_string()), Err(error.to_owned()), "{text}");
        }
        let value = "x=a||y=b".parse::<Selector>().expect_err("bars in a value").to_string();
        assert!(
            value.starts_with(
                "unable to parse requirement: values[0][x]: Invalid value: \"a||y\": a valid label must be an empty"
            ),
            "{value}"
        );
        let long = "a b/c=d".parse::<Selector>().expect_err("blank in a key").to_string();
        assert!(long.starts_with("unable to parse requirement: found 'b/c', expected: in,"), "{long}");
    }
}
