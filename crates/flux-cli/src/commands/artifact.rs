//! `build artifact` and the commands that talk to registries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use fl_http::Credentials;
use fl_oci::{Keychain, Manifest, Reference, Registry, RegistryOptions, Repository, media_type};
use fl_semver::{Constraints, Version};
use fl_types::Secret;
use serde_json::json;

use crate::args::{Call, CommandResult, action};
use crate::artifact_layer::{self, DEFAULT_IGNORE};
use crate::command::Node;
use crate::commands::create::oci_provider;
use crate::flag::{Flag, checked, list, repeated, switch, text};
use crate::format::go_io_error;
use crate::{format as view, logger, table};

/// No artifact of manifests is larger; a registry that says otherwise is not believed.
const LARGEST: u64 = 512 << 20;
const SOURCE: &str = "org.opencontainers.image.source";
const REVISION: &str = "org.opencontainers.image.revision";
const CREATED: &str = "org.opencontainers.image.created";

const IGNORE: Flag = list("ignore-paths", "Paths to leave out, in .gitignore form").or(DEFAULT_IGNORE);
const LINKS: Flag = switch("resolve-symlinks", "Replace links by what they point to");

const REGISTRY_FLAGS: &[Flag] = &[
    text("creds", "Credentials for the registry, user[:password]"),
    checked("provider", oci_provider, "Who authenticates: generic, aws, azure or gcp").or("generic"),
];
const INSECURE: Flag = switch("insecure-registry", "Plain HTTP");

macro_rules! leaf {
    ($name:literal, $about:literal, $run:path) => {
        Node::leaf($name, $about, action(|call: Call| async move { within(&call, $run(&call)).await }))
            .takes("URL")
    };
}

/// The commands' time ends requests to registries, too.
async fn within(call: &Call, run: impl Future<Output = CommandResult>) -> CommandResult {
    let limit = call.duration("timeout").to_std().unwrap_or_default();
    match tokio::time::timeout(limit, run).await {
        Ok(outcome) => outcome,
        Err(_) => bail!("context deadline exceeded"),
    }
}

pub(crate) fn push_node() -> Node {
    let artifact = leaf!("artifact", "Publish a folder or file as an artifact", push)
        .flags(&[
            text("path", "Folder or file; - for stdin").short('f'),
            text("source", "Where the content comes from, e.g. the Git address"),
            text("revision", "Its revision, branch@sha1:commit"),
            repeated("annotations", "Further annotations, key=value").short('a'),
            text("output", "Print the digest as json or yaml").short('o'),
            switch("debug", "Accepted for compatibility: there is no library with logs of its own")
                .constant("flux prints the logs of its registry library with it"),
            switch("reproducible", "The same content gives the same digest"),
            IGNORE,
            LINKS,
            INSECURE,
        ])
        .flags(REGISTRY_FLAGS)
        .example(
            "From a checkout",
            "push artifact oci://registry.example.com/acme/app:latest --path=./deploy --source=$(git config --get remote.origin.url) --revision=main@sha1:$(git rev-parse HEAD)",
        );
    Node::group("push", "Publish artifacts", vec![artifact])
}

pub(crate) fn pull_node() -> Node {
    let artifact = leaf!("artifact", "Fetch and unpack an artifact", pull)
        .flags(&[text("output", "Folder to unpack into").short('o'), INSECURE])
        .flags(REGISTRY_FLAGS)
        .example("Into a folder", "pull artifact oci://registry.example.com/acme/app:latest --output ./app");
    Node::group("pull", "Fetch artifacts", vec![artifact])
}

pub(crate) fn tag_node() -> Node {
    let artifact = leaf!("artifact", "Give an artifact more tags", tag)
        .flags(&[list("tag", "New tags")])
        .flags(REGISTRY_FLAGS)
        .example("Promote a build", "tag artifact oci://registry.example.com/acme/app:main --tag=production");
    Node::group("tag", "Tag artifacts", vec![artifact])
}

pub(crate) fn list_node() -> Node {
    let artifacts = leaf!("artifacts", "List the artifacts of a repository", list_artifacts)
        .flags(&[
            text("filter-semver", "Only versions of this range"),
            text("filter-regex", "Only tags that match"),
            INSECURE,
        ])
        .flags(REGISTRY_FLAGS)
        .example("Releases", "list artifacts oci://registry.example.com/acme/app --filter-semver='>=1.0.0'");
    Node::group("list", "List artifacts", vec![artifacts])
}

pub(crate) fn diff_node() -> Node {
    leaf!("artifact", "Compare a folder or file with an artifact", diff)
        .flags(&[text("path", "Folder or file"), IGNORE, INSECURE])
        .flags(REGISTRY_FLAGS)
}

pub(crate) fn build_node() -> Node {
    Node::leaf(
        "artifact",
        "Build the archive of an artifact",
        action(|call: Call| async move { build(&call) }),
    )
    .flags(&[
        text("path", "Folder or file; - for stdin").short('p'),
        text("output", "File to write").or("artifact.tgz").short('o'),
        IGNORE,
        LINKS,
    ])
    .example("A folder", "build artifact --path ./deploy --output deploy.tgz")
}

/// What a path flag names, ready to be packed; temporary files live as long as this.
struct Input {
    path: PathBuf,
    _stdin: Option<tempfile::NamedTempFile>,
    _copy: Option<tempfile::TempDir>,
}

impl Input {
    fn of(call: &Call, complain: impl Fn(&str, &std::io::Error) -> String) -> anyhow::Result<Input> {
        let named = call.text("path");
        let stdin = if named == "-" { Some(artifact_layer::from_stdin()?) } else { None };
        let mut path = stdin.as_ref().map_or_else(|| PathBuf::from(named), |f| f.path().to_owned());
        if let Err(error) = std::fs::metadata(&path) {
            bail!("{}", complain(named, &error));
        }
        let mut copy = None;
        if call.has("resolve-symlinks") && call.on("resolve-symlinks") {
            let (temporary, target) =
                artifact_layer::without_links(&path).context("resolving symlinks failed")?;
            path = target;
            copy = Some(temporary);
        }
        Ok(Input { path, _stdin: stdin, _copy: copy })
    }
}

fn build(call: &Call) -> CommandResult {
    if call.text("path").is_empty() {
        bail!("invalid path \"\"");
    }
    let input = Input::of(call, |path, _| {
        format!("invalid path '{path}', must point to an existing directory or file")
    })?;
    // Input from stdin and resolved links are packed from a temporary place, which is the one shown.
    logger::action(format!("building artifact from {}", input.path.display()));
    let bytes = artifact_layer::pack(&input.path, call.list("ignore-paths"))
        .context("building artifact failed, error")?;
    let output = Path::new(call.text("output"));
    std::fs::write(output, bytes)
        .with_context(|| format!("building artifact failed, error: cannot write {}", output.display()))?;
    logger::success(format!("artifact created at {}", output.display()));
    Ok(())
}

/// What stands behind `oci://`.
fn artifact_url(url: &str) -> anyhow::Result<&str> {
    let Some(rest) = url.strip_prefix("oci://") else {
        bail!("URL must be in format 'oci://<domain>/<org>/<repo>'")
    };
    if Reference::parse(rest).is_err() {
        bail!("'{url}' invalid URL: could not parse reference: {rest}");
    }
    Ok(rest)
}

fn registry(call: &Call) -> anyhow::Result<Registry> {
    let provider = call.text("provider");
    if provider != "generic" {
        logger::action("logging in to registry with provider credentials");
        bail!(
            "error during login with provider: logins of {provider} are not available here; log in with its own tool and use the Docker configuration, or --creds"
        );
    }
    let keychain = match call.text("creds") {
        "" => docker_config()?,
        creds => {
            logger::action("logging in to registry with credentials");
            Keychain::fixed(match creds.split_once(':') {
                Some((user, password)) => Credentials::Basic {
                    username: user.to_owned(),
                    password: Secret::new(password.to_owned()),
                },
                // A word without a colon is a token of the registry.
                None => Credentials::Bearer(Secret::new(creds.to_owned())),
            })
        }
    };
    let insecure = call.has("insecure-registry") && call.on("insecure-registry");
    Ok(Registry::new(RegistryOptions {
        keychain,
        insecure,
        ..RegistryOptions::new(fl_http::Owner::engine())
    })?)
}

/// The logins Docker keeps; none when there is no such file.
fn docker_config() -> anyhow::Result<Keychain> {
    let folder = std::env::var_os("DOCKER_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".docker"));
    let Some(path) = folder.or_else(home).map(|f| f.join("config.json")) else {
        return Ok(Keychain::anonymous());
    };
    match std::fs::read(&path) {
        Ok(bytes) => Keychain::from_docker_config(&bytes).with_context(|| path.display().to_string()),
        Err(_) => Ok(Keychain::anonymous()),
    }
}

async fn push(call: &Call) -> CommandResult {
    let Some(url) = call.args.first() else { bail!("artifact URL is required") };
    for flag in ["source", "revision"] {
        if call.text(flag).is_empty() {
            bail!("--{flag} is required");
        }
    }
    if call.text("path").is_empty() {
        bail!("invalid path \"\"");
    }
    let target = artifact_url(url)?;
    let reference = Reference::parse(target)?;
    let missing = |path: &str, error: &std::io::Error| {
        format!(
            "invalid path '{path}', must point to an existing directory or file: {}",
            go_io_error("stat", path, error)
        )
    };
    let input = Input::of(call, missing)?;
    let annotations = annotations(call)?;
    let registry = registry(call)?;
    if call.text("output").is_empty() {
        logger::action(format!("pushing artifact to {target}"));
    }
    let layer =
        artifact_layer::pack(&input.path, call.list("ignore-paths")).context("pushing artifact failed")?;
    let digest =
        publish(&registry, &reference, layer, annotations).await.context("pushing artifact failed")?;
    let repository = reference.repository();
    let pushed = format!("{repository}@{digest}");
    let info = [
        ("url", format!("oci://{pushed}")),
        ("repository", repository.to_string()),
        ("tag", reference.identifier().to_owned()),
        ("digest", digest),
    ];
    match call.text("output") {
        "json" => {
            // Written by hand: the order of the keys is part of what flux prints.
            let lines: Vec<String> = info.iter().map(|(k, v)| format!("  {k:?}: {}", json!(v))).collect();
            logger::data_line(&format!("{{\n{}\n}}", lines.join(",\n")));
        }
        "yaml" => logger::data(&view::yaml(
            &info
                .into_iter()
                .map(|(k, v)| (k.to_owned(), json!(v)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        )),
        _ => logger::success(format!("artifact successfully pushed to {pushed}")),
    }
    Ok(())
}

/// What the manifest says about the artifact; what was asked for by name wins over what the flags say.
fn annotations(call: &Call) -> anyhow::Result<BTreeMap<String, String>> {
    let mut annotations = BTreeMap::new();
    for annotation in call.list("annotations") {
        let parts: Vec<&str> = annotation.split('=').collect();
        let [key, value] = parts[..] else {
            bail!("invalid annotation {annotation}, must be in the format key=value")
        };
        annotations.insert(key.to_owned(), value.to_owned());
    }
    let created = if call.on("reproducible") { jiff::Timestamp::UNIX_EPOCH } else { jiff::Timestamp::now() };
    let created = created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (key, value) in
        [(CREATED, created.as_str()), (SOURCE, call.text("source")), (REVISION, call.text("revision"))]
    {
        annotations.entry(key.to_owned()).or_insert_with(|| value.to_owned());
    }
    Ok(annotations)
}

async fn publish(
    registry: &Registry,
    reference: &Reference,
    layer: Vec<u8>,
    annotations: BTreeMap<String, String>,
) -> anyhow::Result<String> {
    let repository = reference.repository();
    let config = registry.push_blob(repository, media_type::FLUX_CONFIG, Bytes::from_static(b"{}")).await?;
    let layer = registry.push_blob(repository, media_type::FLUX_CONTENT, Bytes::from(layer)).await?;
    let manifest = Manifest {
        schema_version: 2,
        media_type: media_type::OCI_MANIFEST.to_owned(),
        config,
        layers: vec![layer],
        annotations,
        ..Manifest::default()
    };
    let bytes = serde_json::to_vec(&manifest)?;
    Ok(registry.push_manifest(reference, media_type::OCI_MANIFEST, Bytes::from(bytes)).await?)
}

async fn content(registry: &Registry, reference: &Reference) -> anyhow::Result<(Manifest, String, Vec<u8>)> {
    let (manifest, digest) = registry.image(reference).await?;
    let layer = manifest.layer(None)?.clone();
    let bytes = registry.blob_bytes(reference.repository(), &layer, LARGEST).await?;
    Ok((manifest, digest, bytes))
}

async fn pull(call: &Call) -> CommandResult {
    let Some(url) = call.args.first() else { bail!("artifact URL is required") };
    let output = call.text("output");
    if output.is_empty() {
        bail!("output path cannot be empty");
    }
    match std::fs::metadata(output) {
        Ok(info) if info.is_dir() => {}
        Ok(_) => bail!("invalid output path {output:?}: %!w(<nil>)"),
        Err(error) => bail!("invalid output path {output:?}: {}", go_io_error("stat", output, &error)),
    }
    let target = artifact_url(url)?;
    let reference = Reference::parse(target)?;
    let registry = registry(call)?;
    logger::action(format!("pulling artifact from {target}"));
    let (manifest, digest, bytes) = content(&registry, &reference).await?;
    artifact_layer::unpack(&bytes, Path::new(output)).context("failed to untar first layer")?;
    for (key, word) in [(SOURCE, "source"), (REVISION, "revision")] {
        if let Some(value) = manifest.annotations.get(key).filter(|v| !v.is_empty()) {
            logger::success(format!("{word} {value}"));
        }
    }
    logger::success(format!("digest {}@{digest}", reference.repository()));
    logger::success(format!("artifact content extracted to {output}"));
    Ok(())
}

async fn tag(call: &Call) -> CommandResult {
    let Some(url) = call.args.first() else { bail!("artifact name is required") };
    if call.list("tag").is_empty() {
        bail!("--tag is required");
    }
    let reference = Reference::parse(artifact_url(url)?)?;
    let registry = registry(call)?;
    logger::action("tagging artifact");
    for tag in call.list("tag") {
        registry.tag(&reference, tag).await.context("tagging artifact failed")?;
        logger::success(format!("artifact tagged as {}:{tag}", reference.repository()));
    }
    Ok(())
}

/// A tag that is a whole version, `1.2.3` with or without `v`; `1` or `v1` is none.
fn full_version(tag: &str) -> Option<Version> {
    let core = tag.strip_prefix('v').unwrap_or(tag).split(['-', '+']).next().unwrap_or_default();
    (core.split('.').count() == 3).then(|| Version::parse(tag).ok()).flatten()
}

async fn list_artifacts(call: &Call) -> CommandResult {
    let Some(url) = call.args.first() else { bail!("artifact repository URL is required") };
    let target = artifact_url(url)?;
    let repository = Repository::parse(target)
        .with_context(|| format!("listing tags failed: parsing repo {}", fl_go::quote(target)))?;
    let registry = registry(call)?;
    let mut tags = registry.tags(&repository).await.context("listing tags failed")?;
    let range = match call.text("filter-semver") {
        "" => None,
        text => Some(text.parse::<Constraints>().with_context(|| format!("semver '{text}' parse error"))?),
    };
    let filter = match call.text("filter-regex") {
        "" => None,
        text => Some(fl_go::regexp::compile(text).with_context(|| format!("regex '{text}' parse error"))?),
    };
    tags.sort_by(|a, b| b.cmp(a));
    let mut rows = Vec::new();
    for tag in tags {
        // Tags of cosign signatures.
        let is_signature = [".sig", ".att", ".sbom"].iter().any(|end| tag.ends_with(end));
        let in_range = range.as_ref().is_none_or(|r| full_version(&tag).is_some_and(|v| r.check(&v)));
        if is_signature || !in_range || filter.as_ref().is_some_and(|f| !f.is_match(&tag)) {
            continue;
        }
        let (manifest, digest) = registry.image(&repository.tag(&tag)?).await?;
        let annotation = |key: &str| manifest.annotations.get(key).cloned().unwrap_or_default();
        rows.push(vec![format!("{repository}:{tag}"), digest, annotation(SOURCE), annotation(REVISION)]);
    }
    logger::data(&table::render(&["artifact", "digest", "source", "revision"], &rows));
    Ok(())
}

async fn diff(call: &Call) -> CommandResult {
    let Some(url) = call.args.first() else { bail!("artifact URL is required") };
    let path = call.text("path");
    if path.is_empty() {
        bail!("invalid path \"\"");
    }
    let reference = Reference::parse(artifact_url(url)?)?;
    if std::fs::metadata(path).is_err() {
        bail!("invalid path '{path}', must point to an existing directory or file");
    }
    let registry = registry(call)?;
    let (_, _, remote) = content(&registry, &reference).await?;
    let local = artifact_layer::pack(Path::new(path), call.list("ignore-paths"))?;
    if artifact_layer::listing(&remote)? != artifact_layer::listing(&local)? {
        bail!("the remote artifact contents differs from the local one");
    }
    logger::success("no changes detected");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_by_name_win_over_flags() {
        let flags = [
            repeated("annotations", ""),
            switch("reproducible", ""),
            text("source", ""),
            text("revision", ""),
        ];
        let with = |uses: &[(usize, &str, &str)]| {
            let given: Vec<_> = uses.iter().map(|(i, flag, v)| (*i, *flag, (*v).to_owned())).collect();
            annotations(&Call::new(vec![], vec![], &flags, &given).unwrap())
        };
        let found = with(&[
            (1, "annotations", "org.opencontainers.image.source=mine"),
            (2, "source", "https://git.example.com/a"),
            (3, "revision", "main@sha1:1"),
            (4, "reproducible", "true"),
        ])
        .unwrap();
        assert_eq!(found[SOURCE], "mine");
        assert_eq!(
            (found[REVISION].as_str(), found[CREATED].as_str()),
            ("main@sha1:1", "1970-01-01T00:00:00Z")
        );
        let refused = with(&[(1, "annotations", "a=b=c")]).unwrap_err().to_string();
        assert_eq!(refused, "invalid annotation a=b=c, must be in the format key=value");
    }

    #[test]
    fn only_whole_versions_are_in_a_range() {
        for (tag, whole) in
            [("1.2.3", true), ("v1.2.3", true), ("2.0.0-rc.1", true), ("v1", false), ("latest", false)]
        {
            assert_eq!(full_version(tag).is_some(), whole, "{tag}");
        }
    }

    #[test]
    fn invalid_url_is_shown_unchanged() {
        let refused = artifact_url("oci://registry.example.com/UPPER:v1").unwrap_err().to_string();
        assert!(refused.starts_with("'oci://registry.example.com/UPPER:v1' invalid URL: "), "{refused}");
        assert_eq!(artifact_url("oci://registry.example.com/a/b:v1").unwrap(), "registry.example.com/a/b:v1");
    }
}
