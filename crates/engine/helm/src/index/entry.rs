//! One chart version of an index: the fields that Helm knows, in the order it writes them.

use fl_yaml::{Dialect, Node, Scalar};

use super::{IndexError, sorted};
use crate::chart::{Dependency, ImportValue, Metadata};

/// Go's zero time.
pub(super) const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

const FIELDS: &[&str] =
    &["urls", "created", "removed", "digest", "checksum", "engine", "tillerVersion", "url"];

/// A chart version in its output form.
pub(super) struct IndexEntry {
    pub(super) version: String,
    pub(super) json: Node,
}

/// Parses a chart version; `None` for one that Helm skips.
pub(super) fn read(node: &Node) -> Result<Option<IndexEntry>, IndexError> {
    let Some(map) = node.as_map() else {
        return Err(IndexError::Shape(
            "cannot unmarshal value into Go value of type repo.ChartVersion".to_owned(),
        ));
    };
    for item in map.iter() {
        let name = item.name().unwrap_or_default();
        if !FIELDS.contains(&name) && !Metadata::is_field(name) {
            return Err(IndexError::Shape(format!("unknown field {name:?}")));
        }
    }
    let mut metadata = Metadata::default();
    metadata.read(node).map_err(|why| {
        IndexError::Shape(
            why.to_string()
                .trim_start_matches("error unmarshaling JSON: while decoding JSON: json: ")
                .to_owned(),
        )
    })?;
    if metadata.api_version.is_empty() {
        metadata.api_version = "v1".to_owned();
    }
    if let Err(error) = metadata.validate()
        && !error.to_string().starts_with("validation: more than one dependency with name or alias")
    {
        return Ok(None);
    }
    let mut out = Fields::default();
    metadata_fields(&metadata, &mut out);
    out.push("urls", texts(map.get("urls"), "ChartVersion.urls")?.unwrap_or_else(Node::null));
    out.push("created", time(map.get("created"), "ChartVersion.created")?);
    if map.get("removed").and_then(|n| n.scalar(Dialect::Sigs)) == Some(Scalar::Bool(true)) {
        out.push("removed", Node::bool(true));
    }
    for name in ["digest", "checksum", "engine", "tillerVersion", "url"] {
        out.text(name, map.get(name).and_then(Node::as_text).unwrap_or_default());
    }
    Ok(Some(IndexEntry { version: metadata.version, json: out.0 }))
}

/// Builds a mapping in order.
pub(crate) struct Fields(pub(crate) Node);

impl Default for Fields {
    fn default() -> Self {
        Self(Node::map())
    }
}

impl Fields {
    pub(crate) fn push(&mut self, name: &str, value: Node) {
        if let Some(map) = self.0.as_map_mut() {
            map.insert(name, value);
        }
    }

    /// Adds a string unless it is empty.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.push(name, Node::string(value));
        }
    }

    fn list(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            self.push(name, Node::seq(values.iter().map(|v| Node::string(v.as_str()))));
        }
    }

    fn flag(&mut self, name: &str, value: bool) {
        if value {
            self.push(name, Node::bool(true));
        }
    }
}

/// Adds the fields of `Chart.yaml` in Helm's order, without empty ones.
pub(crate) fn metadata_fields(metadata: &Metadata, out: &mut Fields) {
    out.text("name", &metadata.name);
    out.text("home", &metadata.home);
    out.list("sources", &metadata.sources);
    out.text("version", &metadata.version);
    out.text("description", &metadata.description);
    out.list("keywords", &metadata.keywords);
    if !metadata.maintainers.is_empty() {
        let one = |m: &crate::chart::Maintainer| {
            let mut fields = Fields::default();
            fields.text("name", &m.name);
            fields.text("email", &m.email);
            fields.text("url", &m.url);
            fields.0
        };
        out.push("maintainers", Node::seq(metadata.maintainers.iter().map(one)));
    }
    out.text("icon", &metadata.icon);
    out.text("apiVersion", &metadata.api_version);
    out.text("condition", &metadata.condition);
    out.text("tags", &metadata.tags);
    out.text("appVersion", &metadata.app_version);
    out.flag("deprecated", metadata.deprecated);
    if !metadata.annotations.is_empty() {
        let mut fields = Fields::default();
        for (name, value) in &metadata.annotations {
            fields.push(name, Node::string(value.as_str()));
        }
        out.push("annotations", sorted(&fields.0));
    }
    out.text("kubeVersion", &metadata.kube_version);
    if let Some(dependencies) = metadata.dependencies.as_ref().filter(|d| !d.is_empty()) {
        out.push("dependencies", Node::seq(dependencies.iter().map(dependency)));
    }
    out.text("type", &metadata.chart_type);
}

fn dependency(dependency: &Dependency) -> Node {
    let mut fields = Fields::default();
    fields.push("name", Node::string(dependency.name.as_str()));
    fields.text("version", &dependency.version);
    fields.push("repository", Node::string(dependency.repository.as_str()));
    fields.text("condition", &dependency.condition);
    fields.list("tags", &dependency.tags);
    fields.flag("enabled", dependency.enabled);
    if !dependency.import_values.is_empty() {
        let one = |value: &ImportValue| match value {
            ImportValue::Export(name) => Node::string(name.as_str()),
            ImportValue::Table { child, parent } => {
                let mut table = Fields::default();
                table.push("child", Node::string(child.as_str()));
                table.push("parent", Node::string(parent.as_str()));
                table.0
            }
            ImportValue::Other => Node::null(),
        };
        fields.push("import-values", Node::seq(dependency.import_values.iter().map(one)));
    }
    fields.text("alias", &dependency.alias);
    fields.0
}

fn texts(node: Option<&Node>, field: &str) -> Result<Option<Node>, IndexError> {
    let Some(node) = node.filter(|n| !n.is_null(Dialect::Sigs)) else { return Ok(None) };
    let bad =
        || IndexError::Shape(format!("cannot unmarshal value into Go struct field {field} of type []string"));
    let items = node.as_seq().ok_or_else(bad)?;
    let items: Option<Vec<Node>> =
        items.iter().map(|item| item.as_text().map(|text| Node::string(text.to_owned()))).collect();
    Ok(Some(Node::seq(items.ok_or_else(bad)?)))
}

/// A time as Go parses and prints it; a missing one is Go's zero time.
pub(super) fn time(node: Option<&Node>, field: &str) -> Result<Node, IndexError> {
    let Some(node) = node.filter(|n| !n.is_null(Dialect::Sigs)) else { return Ok(Node::string(ZERO_TIME)) };
    let text = node.as_text().unwrap_or_default();
    match normal_time(text) {
        Some(time) => Ok(Node::string(time)),
        None => Err(IndexError::Shape(format!(
            "parsing time {text:?} of {field}: it is not of the form 2006-01-02T15:04:05Z07:00"
        ))),
    }
}

/// `2006-01-02T15:04:05[.fraction](Z|±hh:mm)`, without trailing zeros of the fraction; a zero offset becomes
/// `Z`.
fn normal_time(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    let head = bytes.get(..shape.len())?;
    let fits = head.iter().zip(shape).all(|(b, s)| if *s == b'0' { b.is_ascii_digit() } else { b == s });
    let number = |from: usize, to: usize| text.get(from..to).and_then(|t| t.parse::<u32>().ok());
    let in_range = (1..=12).contains(&number(5, 7)?)
        && (1..=31).contains(&number(8, 10)?)
        && number(11, 13)? < 24
        && number(14, 16)? < 60
        && number(17, 19)? < 60;
    if !fits || !in_range {
        return None;
    }
    let rest = text.get(shape.len()..)?;
    let digits = rest.strip_prefix('.').map_or(0, |f| f.bytes().take_while(u8::is_ascii_digit).count());
    if rest.starts_with('.') && digits == 0 {
        return None;
    }
    let (fraction, zone) = if digits > 0 { rest[1..].split_at(digits) } else { ("", rest) };
    let fraction = fraction.get(..fraction.len().min(9))?.trim_end_matches('0');
    let zone = match zone {
        "Z" | "+00:00" => "Z",
        other => {
            let b = other.as_bytes();
            let good = b.len() == 6
                && matches!(b[0], b'+' | b'-')
                && b[3] == b':'
                && [1, 2, 4, 5].iter().all(|i| b[*i].is_ascii_digit());
            if !good {
                return None;
            }
            other
        }
    };
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{}{dot}{fraction}{zone}", &text[..shape.len()]))
}

#[cfg(test)]
mod tests {
    use super::normal_time;

    #[test]
    fn times_are_printed_as_in_go() {
        for (text, want) in [
            ("2024-01-01T00:00:00Z", Some("2024-01-01T00:00:00Z")),
            ("2024-01-01T00:00:00.120000000+02:00", Some("2024-01-01T00:00:00.12+02:00")),
            ("2024-01-01T00:00:00.000Z", Some("2024-01-01T00:00:00Z")),
            ("2024-01-01T00:00:00+00:00", Some("2024-01-01T00:00:00Z")),
            ("2024-01-01 00:00:00", None),
            ("2024-13-01T00:00:00Z", None),
            ("2024-01-01T00:00:00", None),
            ("yesterday", None),
        ] {
            assert_eq!(normal_time(text).as_deref(), want, "{text}");
        }
    }
}
