//! What callers of the API server write into URLs.

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("api-paths", api_paths), ("api-selectors", api_selectors)];

/// A path and a query. No segment may come out of a part it was not written in.
fn api_paths(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    let _ = fl_apiserver::Query::parse(query);
    if let fl_apiserver::Route::Resource(found) = fl_apiserver::route(path) {
        let segments = path.split('/').count();
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
