//! Files made by another implementation (see `record.py`), and tampered variants of them.

use fl_sops::{AgeIdentities, Document, Error, Format, Mac};

fn golden(name: &str) -> String {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("recorded")
}

fn open(text: &str, key: &str, input: Format, output: Format, mac: Mac) -> Result<String, Error> {
    let mut identities = AgeIdentities::default();
    identities.import(&golden(key))?;
    let document = Document::parse(text.as_bytes(), input)?;
    let data_key = document.data_key(&[&identities])?;
    document.decrypt(&data_key, output, mac).map(|bytes| String::from_utf8(bytes).expect("text"))
}

fn good(name: &str, input: Format, output: Format) -> String {
    open(&golden(name), "key.agekey", input, output, Mac::Check).expect("opens")
}

#[test]
fn every_format_is_decrypted() {
    let want = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "stringData": {"password": "hunter2", "empty": "", "lines": "a\nb\n"}});
    for (name, format) in [("secret.json", Format::Json), ("secret.yaml", Format::Yaml)] {
        assert_eq!(Format::detect(golden(name).as_bytes()), Some(format), "{name}");
        let plain: serde_json::Value = serde_json::from_str(&good(name, format, Format::Json)).expect("JSON");
        assert_eq!(plain, want, "{name}");
    }
    assert_eq!(
        good("values.json", Format::Json, Format::Yaml),
        "list:\n    - 1\n    - 2.5\n    - true\n    - x\nplain:\n    deep:\n        er: value\n"
    );
    assert_eq!(good("file.binary", Format::Binary, Format::Binary), "any bytes\nat all\n");
    assert_eq!(good("file.env", Format::Dotenv, Format::Dotenv), "USER=ann\nTOKEN=a=b\\nc\n");
}

/// Threat G02: a wrong key or a change is rejected, and no message contains a value.
#[test]
fn changes_are_rejected() {
    let text = golden("secret.json");
    let refused = |text: &str, key: &str, mac| {
        let error = open(text, key, Format::Json, Format::Json, mac).expect_err("refused").to_string();
        assert!(!error.contains("hunter2") && !error.contains("ENC["), "{error}");
        error
    };
    assert!(
        refused(&text, "other.agekey", Mac::Check).contains("identity did not match any of the recipients")
    );
    // A plain value was changed: each encrypted value is valid, the MAC is not.
    let renamed = text.replace("\"name\": \"s\"", "\"name\": \"t\"");
    assert_eq!(refused(&renamed, "key.agekey", Mac::Check), Error::Mac.to_string());
    assert!(open(&renamed, "key.agekey", Format::Json, Format::Json, Mac::Ignore).is_ok());
    // A value was moved.
    let moved = text.replace("\"password\"", "\"user\"");
    assert!(refused(&moved, "key.agekey", Mac::Ignore).ends_with("cipher: message authentication failed"));
    // Half of the file was never encrypted.
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    value["stringData"]["late"] = "hunter2".into();
    assert!(
        refused(&value.to_string(), "key.agekey", Mac::Ignore).ends_with("does not match sops' data format")
    );
    value["sops"]["lastmodified"] = "yesterday".into();
    assert!(
        refused(&value.to_string(), "key.agekey", Mac::Ignore)
            .ends_with("cannot parse \"yesterday\" as \"2006\"")
    );
    value["sops"] = serde_json::json!({});
    assert!(refused(&value.to_string(), "key.agekey", Mac::Ignore).contains("metadata not found"));
}

#[test]
fn invalid_keys_are_rejected() {
    let mut identities = AgeIdentities::default();
    for bad in ["AGE-SECRET-KEY-1", "age1xyz", "AGE-PLUGIN-YUBIKEY-1ABC", "nonsense"] {
        assert!(identities.import(bad).is_err(), "{bad}");
    }
    assert!(identities.import("# only a comment\n\n").is_ok() && identities.is_empty());
}
