//! Ordered trees of values, as SOPS walks them.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// Bytes that are not UTF-8; only from an encrypted value.
    Bytes(Vec<u8>),
    /// A comment, for formats that keep them: a map entry without a key.
    Comment(String),
    List(Vec<Item>),
    Map(Vec<(String, Item)>),
}

impl Item {
    pub(crate) fn get(&self, key: &str) -> Option<&Item> {
        match self {
            Item::Map(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Item]> {
        match self {
            Item::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Item> {
        match self {
            Item::Map(entries) => {
                let at = entries.iter().position(|(k, _)| k == key)?;
                Some(entries.remove(at).1)
            }
            _ => None,
        }
    }

    /// The bytes hashed for the MAC.
    pub(crate) fn mac_bytes(&self) -> Vec<u8> {
        match self {
            Item::Text(text) => text.clone().into_bytes(),
            Item::Bytes(bytes) => bytes.clone(),
            Item::Int(number) => number.to_string().into_bytes(),
            Item::Float(number) => number.to_string().into_bytes(),
            Item::Bool(true) => b"True".to_vec(),
            Item::Bool(false) => b"False".to_vec(),
            Item::Null | Item::Comment(_) | Item::List(_) | Item::Map(_) => Vec::new(),
        }
    }

    /// A leaf as text, for formats without types.
    pub(crate) fn plain_text(&self) -> Option<String> {
        Some(match self {
            Item::Null => "<nil>".to_owned(),
            Item::Bool(value) => value.to_string(),
            Item::Int(number) => number.to_string(),
            Item::Float(number) => float(*number),
            Item::Text(text) => text.clone(),
            Item::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Item::Comment(_) | Item::List(_) | Item::Map(_) => return None,
        })
    }
}

/// Go's `%G` with the fewest digits, but never like an integer.
fn float(number: f64) -> String {
    let exponential = format!("{number:E}");
    let (digits, exponent) = exponential.split_once('E').unwrap_or((&exponential, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&power) {
        let text = number.to_string();
        return if text.contains('.') { text } else { format!("{text}.0") };
    }
    format!("{digits}E{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}
