//! The entry points for reading.

use crate::error::Error;
use crate::node::Node;
use crate::options::Options;
use crate::parser::Parser;
use crate::reader;

/// Reads every document of a stream. A document without content is a null scalar.
///
/// # Errors
/// The text is not what Go's libraries take, or it asks for more than the limits of `options`.
pub fn parse_all(bytes: &[u8], options: &Options) -> Result<Vec<Node>, Error> {
    let text = reader::text(bytes)?;
    let mut parser = Parser::new(&text, *options);
    let mut documents = Vec::new();
    while let Some(document) = parser.next_document()? {
        documents.push(document);
    }
    Ok(documents)
}

/// Reads the first document and does not look at what follows, as Go's `Unmarshal`. `None` when there is none.
///
/// # Errors
/// As [`parse_all`], but only for the first document.
pub fn parse_first(bytes: &[u8], options: &Options) -> Result<Option<Node>, Error> {
    let text = reader::text(bytes)?;
    Parser::new(&text, *options).next_document()
}
