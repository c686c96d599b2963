//! The entry points of the parser.

use crate::error::Error;
use crate::node::Node;
use crate::options::Options;
use crate::parser::Parser;
use crate::reader;

/// Parses all documents of a stream. An empty document is a null scalar.
///
/// # Errors
/// Go's libraries reject the text, or it exceeds the limits of `options`.
pub fn parse_all(bytes: &[u8], options: &Options) -> Result<Vec<Node>, Error> {
    let text = reader::text(bytes)?;
    let mut parser = Parser::new(&text, *options);
    let mut documents = Vec::new();
    while let Some(document) = parser.next_document()? {
        documents.push(document);
    }
    Ok(documents)
}

/// Parses the first document and ignores the rest, like Go's `Unmarshal`. `None` if there is none.
///
/// # Errors
/// See [`parse_all`], for the first document only.
pub fn parse_first(bytes: &[u8], options: &Options) -> Result<Option<Node>, Error> {
    let text = reader::text(bytes)?;
    Parser::new(&text, *options).next_document()
}

/// Parses the first document like [`parse_first`] with [`Options::sigs`], with the same errors, but builds
/// only a part: collections inside of entries of the root that `wanted` does not select are empty.
///
/// # Errors
/// See [`parse_first`].
pub fn parse_outline(bytes: &[u8], wanted: fn(&str) -> bool) -> Result<Option<Node>, Error> {
    let text = reader::text(bytes)?;
    let mut parser = Parser::new(&text, Options::sigs());
    // Unselected content may be needed by an anchor or a merge key, which few texts have.
    let elsewhere = memchr::memchr(b'&', text.as_bytes()).is_some()
        || memchr::memmem::find(text.as_bytes(), b"<<").is_some();
    if !elsewhere {
        parser.outline(wanted);
    }
    // The error may be about unselected content.
    parser.next_document().or_else(|_| Parser::new(&text, Options::sigs()).next_document())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str) -> Result<Option<Node>, Error> {
        parse_outline(text.as_bytes(), |key| key == "meta")
    }

    #[test]
    fn outline_has_selected_entries() {
        let text = "spec:\n  a:\n  - b: 1\n    c: |\n      x\nmeta:\n  list: [1, {a: b}]\n  map:\n    k: v\nend: 1\n";
        let whole = parse_first(text.as_bytes(), &Options::sigs()).unwrap().unwrap();
        let outline = outline(text).unwrap().unwrap();
        assert_eq!(outline.get("meta"), whole.get("meta"));
        assert_eq!(outline.get("end"), whole.get("end"));
        assert!(outline.get("spec").and_then(Node::as_map).is_some_and(crate::Map::is_empty));
    }

    #[test]
    fn outline_resolves_anchors() {
        let text = "spec: &a\n  k: v\nmeta: *a\n";
        let outline = outline(text).unwrap().unwrap();
        assert_eq!(outline.at(&["meta", "k"]).and_then(Node::as_text), Some("v"));
    }

    #[test]
    fn outline_has_the_same_errors() {
        for bad in [
            "spec:\n  a: b\n c: d\n",
            "spec:\n  ~: a\n",
            "spec:\n  - !!int x\n",
            "spec: {a: [}\n",
            "spec:\n  ? [a]\n  : b\n",
            "spec:\n  18446744073709551615: a\nmeta: [\n",
        ] {
            let whole = parse_first(bad.as_bytes(), &Options::sigs()).expect_err(bad);
            assert_eq!(outline(bad).expect_err(bad).to_string(), whole.to_string(), "{bad}");
        }
    }
}
