//! URLs of requests to the API server.

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("api-paths", api_paths), ("api-selectors", api_selectors)];

/// A path and a query. Paths are decoded once and then taken apart, as the real server does: no more parts come out than
/// slashes went in, written plainly or encoded.
fn api_paths(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    let _ = fl_apiserver::Query::parse(query);
    if let fl_apiserver::RequestPath::Resource(found) = fl_apiserver::parse_path(path) {
        let encoded = path.to_ascii_lowercase().matches("%2f").count();
        let segments = path.split('/').count() + encoded;
        assert!(found.rest.len() < segments, "{path}");
    }
}

fn api_selectors(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(selector) = fl_apiserver::LabelSelector::parse(&text) {
        let _ = selector.matches(None);
    }
    let _ = fl_apiserver::FieldSelector::parse(&text);
}
