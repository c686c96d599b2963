use std::io::Cursor;

use super::*;

fn read(text: &str) -> Result<String, String> {
    let mut index = RepositoryIndex::read(Cursor::new(text.as_bytes()), Cursor::new(Vec::new()))
        .map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    index.write_json(&mut out).map_err(|e| e.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

const INDEX: &str = "apiVersion: v1
entries:
  web:
  - apiVersion: v2
    appVersion: 1.10
    created: \"2024-05-01T10:00:00.500Z\"
    description: |
      first

      second <b>
    digest: aa
    name: web
    urls:
    - web-1.0.0.tgz
    version: 1.0.0
  - apiVersion: v2
    name: web
    urls: [web-1.2.0.tgz]
    version: 1.2.0
  - name: web
    version: nonsense
    urls: []
  db:
    - name: db
      version: 0.1.0
      urls:
        - db.tgz
generated: \"2024-05-02T00:00:00Z\"
";

#[test]
fn index_is_sorted_and_sanitized_as_in_go() {
    let text = read(INDEX).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let versions: Vec<&str> =
        value["entries"]["web"].as_array().unwrap().iter().map(|v| v["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["1.2.0", "1.0.0"], "newest first, what is no version left out");
    let old = &value["entries"]["web"][1];
    assert_eq!(old["appVersion"], "1.1", "an unquoted number becomes text as in Go");
    assert_eq!(old["description"], "first  second <b> ");
    assert_eq!(value["entries"]["db"][0]["apiVersion"], "v1");
    assert_eq!(value["entries"]["db"][0]["created"], "0001-01-01T00:00:00Z");
    assert!(text.starts_with("{\n  \"apiVersion\": \"v1\",\n  \"generated\": \"2024-05-02T00:00:00Z\",\n  \"entries\": {\n    \"db\": [\n      {\n        \"name\": \"db\","));
    assert!(text.contains("\\u003cb\\u003e"));
    assert!(text.ends_with("      }\n    ]\n  }\n}"));
}

#[test]
fn flow_style_and_json_give_the_same_index() {
    let flow = "{apiVersion: v1, entries: {db: [{name: db, version: 0.1.0, urls: [db.tgz]}]}, generated: \"2024-05-02T00:00:00Z\"}";
    let json = r#"{"apiVersion":"v1","entries":{"db":[{"name":"db","version":"0.1.0","urls":["db.tgz"]}]},"generated":"2024-05-02T00:00:00Z"}"#;
    let block = "apiVersion: v1\nentries:\n  db:\n  - name: db\n    version: 0.1.0\n    urls:\n    - db.tgz\ngenerated: \"2024-05-02T00:00:00Z\"\n";
    let want = read(block).unwrap();
    assert_eq!(read(flow).unwrap(), want);
    assert_eq!(read(json).unwrap(), want);
    let anchored = "apiVersion: v1\nentries:\n  db:\n  - &a\n    name: db\n    version: 0.1.0\n    urls:\n    - db.tgz\n  - *a\ngenerated: \"2024-05-02T00:00:00Z\"\n";
    assert!(read(anchored).unwrap().matches("0.1.0").count() == 2);
}

#[test]
fn invalid_indexes_are_rejected() {
    assert_eq!(read("").unwrap_err(), "empty index.yaml file");
    assert_eq!(
        read("entries: {}\ngenerated: '2024-01-01T00:00:00Z'\n").unwrap_err(),
        "no API version specified"
    );
    assert!(read("hello: [\n").unwrap_err().starts_with("error converting YAML to JSON: "));
    assert!(read("apiVersion: v1\nhello: x\n").unwrap_err().contains("unknown field"));
    assert!(
        read("apiVersion: v1\nentries:\n  a:\n  - name: a\n    name: b\n")
            .unwrap_err()
            .starts_with("error converting YAML")
    );
    assert_eq!(
        read("apiVersion: v1\nentries: {}\n").unwrap(),
        "{\n  \"apiVersion\": \"v1\",\n  \"generated\": \"0001-01-01T00:00:00Z\",\n  \"entries\": {}\n}"
    );
    assert!(
        read("apiVersion: v1\nentries:\n  a: []\n  b:\n  - null\n")
            .unwrap()
            .contains("\"a\": [],\n    \"b\": [\n      null\n    ]")
    );
    // Recorded: a chart without a list keeps null.
    for text in [
        "apiVersion: v1\nentries:\n  a: null\n  b:\n  c: []\n",
        r#"{"apiVersion":"v1","entries":{"a":null,"b":null,"c":[]}}"#,
    ] {
        let written = read(text).unwrap();
        assert!(written.contains("\"a\": null,\n    \"b\": null,\n    \"c\": []"), "{written}");
    }
}

/// Recorded from source-controller, which sorts the versions of a chart and cannot compare one that is null.
#[test]
fn null_version_among_others_is_rejected() {
    let version = "  - {apiVersion: v2, name: app, version: 1.0.0, urls: [x.tgz]}\n";
    for versions in
        [format!("  - null\n{version}"), format!("{version}  -\n"), "  - ~\n  - null\n".to_owned()]
    {
        let error = read(&format!("apiVersion: v1\nentries:\n  app:\n{versions}")).unwrap_err();
        assert_eq!(error, "chart \"app\" has a version that is null beside others");
    }
    // A version that Helm skips does not count.
    let alone = read("apiVersion: v1\nentries:\n  app:\n  - null\n  - {version: 1.0.0}\n").unwrap();
    assert_eq!(find_versions(alone.as_bytes(), "app").unwrap(), Some(Vec::new()));
    let json =
        r#"{"apiVersion":"v1","entries":{"app":[null,{"apiVersion":"v2","name":"app","version":"1.0.0"}]}}"#;
    assert!(read(json).unwrap_err().contains("null beside others"));
}

#[test]
fn versions_of_one_chart_are_found() {
    let stored = read(INDEX).unwrap();
    let versions = find_versions(stored.as_bytes(), "web").unwrap().unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!(versions[0].urls.as_deref().unwrap(), ["web-1.2.0.tgz"]);
    assert_eq!(find_versions(stored.as_bytes(), "nope").unwrap(), None);
}

#[test]
fn entries_must_be_charts() {
    for bad in ["apiVersion: v1\nentries: 3\n", "apiVersion: v1\nentries: {app: text}\n"] {
        let error = read(bad).unwrap_err();
        assert!(error.contains("IndexFile.entries"), "{bad}: {error}");
    }
    assert!(read("apiVersion: v1\nentries: {}\n").is_ok() && read("apiVersion: v1\nentries: null\n").is_ok());
}

/// Recorded from source-controller: JSON is parsed as JSON, everything else via YAML.
#[test]
fn index_that_is_not_an_object_is_rejected() {
    let why = |found: &str| format!("cannot unmarshal {found} into Go value of type repo.IndexFile");
    assert_eq!(read("[]").unwrap_err(), format!("json: {}", why("array")));
    assert_eq!(read("12").unwrap_err(), format!("json: {}", why("number")));
    let yaml = "error unmarshaling JSON: while decoding JSON: json: ";
    assert_eq!(read("- a").unwrap_err(), format!("{yaml}{}", why("array")));
    assert_eq!(read("hello").unwrap_err(), format!("{yaml}{}", why("string")));
}
