//! What callers of the API server write into URLs.

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("api-paths", api_paths), ("api-selectors", api_selectors)];

/// A path and a query: whatever they hold, reading them must not panic.
fn api_paths(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    let _ = fl_apiserver::Query::parse(query);
    let _ = fl_apiserver::route(path);
}

fn api_selectors(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(selector) = fl_apiserver::LabelSelector::parse(&text) {
        let _ = selector.matches(None);
    }
    let _ = fl_apiserver::FieldSelector::parse(&text);
}
