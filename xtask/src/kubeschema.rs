//! Writes the tables of `fl-kubeschema` from what a real API server publishes: facts only, no descriptions.
//!
//! `DIR` holds `aggregated-discovery-api.json.gz`, `aggregated-discovery-apis.json.gz` and
//! `openapi-v3-documents.json.gz` (`{path: document}`). What OpenAPI does not say (pointer or value, left out when
//! empty, Go type names for decode errors) comes from the Go types themselves, printed by `xtask/gotypes` (needs Go).
//! The format is described in `crates/engine/kubeschema/data/README.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::{Map, Value};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
const TARGET: &str = "../crates/engine/kubeschema/data/kubernetes.txt";

/// Letters for verbs, so that a resource is one short line.
const VERBS: &[(&str, char)] = &[
    ("create", 'c'),
    ("delete", 'd'),
    ("deletecollection", 'D'),
    ("get", 'g'),
    ("list", 'l'),
    ("patch", 'p'),
    ("update", 'u'),
    ("watch", 'w'),
];

const PREFIXES: &[(&str, &str)] = &[
    ("io.k8s.api.", "a:"),
    ("io.k8s.apimachinery.pkg.", "m:"),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", "x:"),
    ("io.k8s.kube-aggregator.pkg.apis.", "g:"),
];

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let [flag, dir] = args else { bail!("usage: cargo xtask kubeschema --reference DIR") };
    if flag != "--reference" {
        bail!("unknown option {flag}: usage: cargo xtask kubeschema --reference DIR");
    }
    let dir = Path::new(dir);
    let mut out = String::from(
        "# Kubernetes 1.34: resources and types. Written by `cargo xtask kubeschema`; do not edit.\n",
    );
    for name in ["aggregated-discovery-api.json.gz", "aggregated-discovery-apis.json.gz"] {
        write_resources(&mut out, &read_gz(&dir.join(name))?)?;
    }
    write_types(&mut out, &read_gz(&dir.join("openapi-v3-documents.json.gz"))?, &go_types()?)?;
    let target = Path::new(HERE).join(TARGET);
    std::fs::write(&target, &out).with_context(|| format!("cannot write {}", target.display()))?;
    println!("kubeschema: {} lines, {} bytes", out.lines().count(), out.len());
    Ok(())
}

fn read_gz(path: &Path) -> anyhow::Result<Value> {
    // The system's gzip: one less dependency for a task that runs once per Kubernetes release.
    let run = Command::new("gzip").arg("-dc").arg(path).output().context("cannot run gzip")?;
    if !run.status.success() {
        bail!("cannot unpack {}: {}", path.display(), String::from_utf8_lossy(&run.stderr));
    }
    serde_json::from_slice(&run.stdout).with_context(|| format!("{} is not JSON", path.display()))
}

type GoTypes = BTreeMap<String, Option<Vec<GoField>>>;

#[derive(serde::Deserialize)]
struct GoField {
    name: String,
    go: String,
    #[serde(default)]
    ptr: bool,
    #[serde(default)]
    omitempty: bool,
    #[serde(default)]
    omitzero: bool,
    #[serde(default)]
    number: String,
}

fn go_types() -> anyhow::Result<GoTypes> {
    let run = Command::new("go")
        .args(["run", "-mod=mod", "."])
        .current_dir(Path::new(HERE).join("gotypes"))
        .output()
        .context("cannot run go")?;
    if !run.status.success() {
        bail!("xtask/gotypes failed: {}", String::from_utf8_lossy(&run.stderr));
    }
    Ok(serde_json::from_slice(&run.stdout)?)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn words(value: &Value) -> String {
    let list: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if list.is_empty() { "-".to_owned() } else { list.join(",") }
}

fn verbs(value: &Value) -> anyhow::Result<String> {
    let letter = |verb: &Value| {
        VERBS
            .iter()
            .find(|(name, _)| verb == name)
            .map(|(_, c)| *c)
            .with_context(|| format!("unknown verb {verb}"))
    };
    value.as_array().into_iter().flatten().map(letter).collect()
}

fn write_resources(out: &mut String, discovery: &Value) -> anyhow::Result<()> {
    for group in discovery["items"].as_array().context("no items in the discovery document")? {
        let group_name = group["metadata"]["name"].as_str().unwrap_or("-");
        for version in group["versions"].as_array().into_iter().flatten() {
            writeln!(out, "G {group_name} {}", text(version, "version"))?;
            for resource in version["resources"].as_array().into_iter().flatten() {
                let scope = if text(resource, "scope") == "Namespaced" { 'N' } else { 'C' };
                writeln!(
                    out,
                    "R {} {} {} {scope} {} {} {}",
                    text(resource, "resource"),
                    text(resource, "singularResource"),
                    text(&resource["responseKind"], "kind"),
                    verbs(&resource["verbs"])?,
                    words(&resource["shortNames"]),
                    words(&resource["categories"]),
                )?;
                for sub in resource["subresources"].as_array().into_iter().flatten() {
                    let kind = &sub["responseKind"];
                    writeln!(
                        out,
                        "S {} {}/{}/{} {}",
                        text(sub, "subresource"),
                        text(kind, "group"),
                        text(kind, "version"),
                        text(kind, "kind"),
                        verbs(&sub["verbs"])?,
                    )?;
                }
            }
        }
    }
    Ok(())
}

fn short(name: &str) -> String {
    for (prefix, letter) in PREFIXES {
        if let Some(rest) = name.strip_prefix(prefix) {
            return format!("{letter}{rest}");
        }
    }
    name.to_owned()
}

fn write_types(out: &mut String, documents: &Value, go: &GoTypes) -> anyhow::Result<()> {
    let mut schemas: BTreeMap<&str, &Value> = BTreeMap::new();
    for document in documents.as_object().context("the OpenAPI documents are not a map")?.values() {
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            schemas.insert(name, schema);
        }
    }
    for (name, schema) in schemas {
        write!(out, "T {}", short(name))?;
        if let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
            write!(out, " X={map_type}")?;
        }
        let kinds: Vec<String> = schema["x-kubernetes-group-version-kind"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|k| format!("{}/{}/{}", text(k, "group"), text(k, "version"), text(k, "kind")))
            .collect();
        if !kinds.is_empty() {
            write!(out, " V={}", kinds.join(","))?;
        }
        if let Some(unions) = schema.get("x-kubernetes-unions") {
            write!(out, " U={unions}")?;
        }
        let Some(properties) = schema["properties"].as_object() else {
            writeln!(out, " J={}", Value::Object(without_description(schema)))?;
            continue;
        };
        out.push('\n');
        let go_fields = go.get(name).and_then(Option::as_ref);
        for (field, property) in properties {
            let required = schema["required"].as_array().is_some_and(|r| r.iter().any(|r| r == field));
            let facts = go_fields.and_then(|fields| fields.iter().find(|f| f.name == *field));
            write_field(out, field, property, required, facts)
                .with_context(|| format!("field {field} of {name}"))?;
        }
    }
    Ok(())
}

fn without_description(schema: &Value) -> Map<String, Value> {
    let mut kept = schema.as_object().cloned().unwrap_or_default();
    kept.remove("description");
    kept
}

fn write_field(
    out: &mut String,
    name: &str,
    property: &Value,
    required: bool,
    facts: Option<&GoField>,
) -> anyhow::Result<()> {
    let mut flags = String::new();
    if required {
        flags.push('!');
    }
    // Types outside the Go scheme (version info) are only ever written by the server: plain values.
    if facts.is_some_and(|f| f.ptr) {
        flags.push('*');
    }
    if facts.is_some_and(|f| f.omitempty) {
        flags.push('o');
    }
    if facts.is_some_and(|f| f.omitzero) {
        flags.push('z');
    }
    let default = property.get("default");
    let zero = default.is_some_and(is_zero);
    if zero {
        flags.push('d');
    }
    if flags.is_empty() {
        flags.push('-');
    }
    let kind = type_code(property)?;
    write!(out, "{name} {flags} {kind}")?;
    for (key, letter) in [
        ("x-kubernetes-list-type", 'L'),
        ("x-kubernetes-map-type", 'X'),
        ("x-kubernetes-patch-strategy", 'P'),
        ("x-kubernetes-patch-merge-key", 'M'),
    ] {
        if let Some(value) = property.get(key).and_then(Value::as_str) {
            write!(out, " {letter}={value}")?;
        }
    }
    if let Some(keys) = property.get("x-kubernetes-list-map-keys") {
        write!(out, " K={}", words(keys))?;
    }
    for (at, letter) in [(property, 'E'), (&property["items"], 'e'), (&property["additionalProperties"], 'e')]
    {
        if let Some(values) = at.get("enum") {
            write!(out, " {letter}={}", words(values))?;
        }
    }
    if let (Some(default), false) = (default, zero) {
        write!(out, " D={default}")?;
    }
    if let Some(facts) = facts.filter(|f| !f.number.is_empty()) {
        write!(out, " N={}", facts.number)?;
    }
    if let Some(facts) = facts {
        let go = facts.go.trim_start_matches('*');
        if named(go) && !kind.starts_with('@') {
            write!(out, " G={go}")?;
        }
    }
    out.push('\n');
    Ok(())
}

/// Whether a Go type is a named one (`v1.Protocol`), or a list or map that mentions one that is not a struct.
fn named(go: &str) -> bool {
    go.contains('.')
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(s) => s.is_empty(),
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::Bool(b) => !b,
        Value::Object(o) => o.is_empty(),
        _ => false,
    }
}

/// `s` string, `i` int32, `l` int64, `b` bool, `f` double, `y` bytes, `@T` reference, `[` list of, `{` map of; an
/// element with a zero default has `~` before its code.
fn type_code(property: &Value) -> anyhow::Result<String> {
    let reference =
        property.get("$ref").or_else(|| property["allOf"].get(0)?.get("$ref")).and_then(Value::as_str);
    if let Some(reference) = reference {
        return Ok(format!("@{}", short(reference.trim_start_matches("#/components/schemas/"))));
    }
    let element = |at: &Value| -> anyhow::Result<String> {
        let mark = if at.get("default").is_some_and(is_zero) { "~" } else { "" };
        Ok(format!("{mark}{}", type_code(at)?))
    };
    Ok(match (text(property, "type"), text(property, "format")) {
        ("string", "") => "s".to_owned(),
        ("string", "byte") => "y".to_owned(),
        ("integer", "int32") => "i".to_owned(),
        ("integer", "int64") => "l".to_owned(),
        ("boolean", "") => "b".to_owned(),
        ("number", "double") => "f".to_owned(),
        ("array", "") => format!("[{}", element(&property["items"])?),
        ("object", "") => format!("{{{}", element(&property["additionalProperties"])?),
        other => bail!("unknown type {other:?}"),
    })
}
