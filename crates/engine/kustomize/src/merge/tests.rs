use super::*;

fn merged(object: &str, patch: &str) -> String {
    let read = |text: &str| fl_yaml::parse_first(text.as_bytes(), &fl_yaml::Options::v3()).unwrap().unwrap();
    let node = merge(read(object), read(patch), &mut Schemas::default()).unwrap();
    node.map(|n| fl_yaml::to_sigs_yaml(&n, Dialect::V3).unwrap()).unwrap_or_default()
}

#[test]
fn nulls_remove_and_explicit_nulls_are_kept() {
    assert_eq!(merged("{a: 1, b: 2}", "{a: null, c: {d: null, e: 1}}"), "b: 2\nc:\n  e: 1\n");
    assert_eq!(merged("a: ~\nb:\nc: 1\n", "d: 1\n"), "a: null\nc: 1\nd: 1\n");
}

#[test]
fn containers_merge_by_name_and_new_ones_are_prepended() {
    let object = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: a, image: x}]}}}\n";
    let patch = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: b}, {name: a, tty: true}]}}}\n";
    let want = "- name: b\n        - image: x\n          name: a\n          tty: true\n";
    let got = merged(object, patch);
    assert!(got.replace("      - ", "- ").contains("name: b"), "{got}");
    let (b, a) = (got.find("name: b").unwrap(), got.find("image: x").unwrap());
    assert!(b < a, "{got} {want}");
}

#[test]
fn directives() {
    assert_eq!(merged("{a: {b: 1, c: 2}}", "{a: {$patch: replace, d: 3}}"), "a:\n  d: 3\n");
    assert_eq!(merged("{a: {b: 1}, e: 1}", "{a: {$patch: delete}}"), "e: 1\n");
    assert_eq!(merged("{a: 1}", "{$patch: delete}"), "");
}
