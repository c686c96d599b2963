//! `create image …`.

use anyhow::bail;
use serde_json::{Value, json};

use super::{Fields, labels, leaf, object, print, upsert};
use crate::args::{Call, CommandResult, action};
use crate::command::Node;
use crate::flag::{duration, text};
use crate::image::check_repository;
use crate::resource_kinds;

pub(super) fn repository_node() -> Node {
    leaf!("repository", "Create or update an ImageRepository", repository)
        .flags(&[
            text("image", "Image to look for tags of"),
            text("secret-ref", "Image pull secret"),
            text("cert-ref", "Secret with TLS certificates"),
            duration("scan-timeout", "0s", "How long a scan may take"),
        ])
        .example(
            "Watch the tags of an image",
            "create image repository app --image=registry.example.com/acme/app --interval=5m",
        )
}

async fn repository(call: &Call) -> CommandResult {
    let image = call.text("image");
    if image.is_empty() {
        bail!("an image repository (--image) is required");
    }
    check_repository(image).map_err(|why| anyhow::anyhow!("unable to parse image value: {why}"))?;
    let labels = labels(call)?;
    let spec = Fields::default()
        .text("image", image)
        .put("interval", call.text("interval"))
        .time("timeout", call, "scan-timeout")
        .name_of("secretRef", call.text("secret-ref"))
        .name_of("certSecretRef", call.text("cert-ref"));
    finish(
        call,
        &resource_kinds::IMAGE_REPOSITORY,
        object(call, &resource_kinds::IMAGE_REPOSITORY, &labels, spec),
    )
    .await
}

async fn finish(call: &Call, kind: &resource_kinds::Kind, object: Value) -> CommandResult {
    if call.on("export") { print(&object) } else { upsert::automation(call, kind, &object).await }
}

pub(super) fn policy_node() -> Node {
    leaf!("policy", "Create or update an ImagePolicy", policy)
        .flags(&[
            text("image-ref", "ImageRepository to choose from"),
            text("select-semver", "Choose the highest version of a range, e.g. 1.x"),
            text("select-alpha", "Choose by alphabet: asc for the last, desc for the first"),
            text("select-numeric", "Choose by number: asc for the last, desc for the first"),
            text("filter-regex", "Only tags that match"),
            text("filter-extract", "What to compare, made of the groups of --filter-regex"),
            text("reflect-digest", "Note the digest: Never, IfNotPresent or Always"),
            duration("interval", "0s", "How often to look for new digests, with --reflect-digest=Always"),
        ])
        .example("The latest 1.x", "create image policy app --image-ref=app --select-semver=1.x")
        .example(
            "The newest build of main",
            "create image policy app --image-ref=app --select-numeric=asc --filter-regex='^main-[a-f0-9]+-(?P<ts>[0-9]+)' --filter-extract='$ts'",
        )
}

async fn policy(call: &Call) -> CommandResult {
    if call.text("image-ref").is_empty() {
        bail!("the name of an ImageRepository in the namespace is required (--image-ref)");
    }
    let labels = labels(call)?;
    let interval = match call.duration("interval") {
        fl_types::Duration::ZERO => None,
        _ => Some(json!(call.text("interval"))),
    };
    let mut spec = Fields::default()
        .put("imageRepositoryRef", json!({"name": call.text("image-ref")}))
        .put("policy", choice(call)?)
        .maybe("filterTags", filter(call)?);
    let reflect = call.text("reflect-digest");
    if !["", "Never", "IfNotPresent", "Always"].contains(&reflect) {
        bail!("invalid value for --reflect-digest, must be one of 'Never', 'IfNotPresent', 'Always'");
    }
    spec = spec.text("digestReflectionPolicy", reflect);
    if interval.is_some() && reflect != "Always" {
        bail!(
            "the --interval flag can only be used with the 'Always' digest reflection policy, use --reflect-digest=Always"
        );
    }
    spec = spec.maybe("interval", interval);
    finish(call, &resource_kinds::IMAGE_POLICY, object(call, &resource_kinds::IMAGE_POLICY, &labels, spec))
        .await
}

fn choice(call: &Call) -> anyhow::Result<Value> {
    let (semver, alpha, numeric) =
        (call.text("select-semver"), call.text("select-alpha"), call.text("select-numeric"));
    let given = |text: &str| !text.is_empty();
    if given(alpha) && given(numeric) && !given(semver) {
        bail!("only one of --select-semver, --select-alpha or --select-numeric can be specified");
    }
    // flux lets a range with one of the others through and writes an empty policy; scripts see the same here.
    if given(semver) && (given(alpha) || given(numeric)) {
        return Ok(json!({}));
    }
    let order = |flag: &str, text: &str| match text {
        "asc" | "desc" => Ok(json!({"order": text})),
        _ => bail!("--{flag} must be one of [\"asc\", \"desc\"]"),
    };
    if given(semver) {
        return Ok(json!({"semver": {"range": semver}}));
    }
    if given(alpha) {
        return Ok(json!({"alphabetical": order("select-alpha", alpha)?}));
    }
    if given(numeric) {
        return Ok(json!({"numerical": order("select-numeric", numeric)?}));
    }
    bail!("a policy must be provided with either --select-semver or --select-alpha")
}

fn filter(call: &Call) -> anyhow::Result<Option<Value>> {
    let (pattern, extract) = (call.text("filter-regex"), call.text("filter-extract"));
    if pattern.is_empty() {
        if !extract.is_empty() {
            bail!("cannot specify --filter-extract without specifying --filter-regex");
        }
        return Ok(None);
    }
    let Ok(regex) = fl_go::regexp::compile(pattern) else {
        bail!("--filter-regex is an invalid regex pattern")
    };
    check_extract(extract, &regex.capture_names().flatten().collect::<Vec<_>>())?;
    Ok(Some(json!({"pattern": pattern, "extract": extract})))
}

/// Every `$name` of the template must be a group of the expression; numbers may be anything.
fn check_extract(mut template: &str, groups: &[&str]) -> anyhow::Result<()> {
    while let Some(at) = template.find('$') {
        template = &template[at + 1..];
        if let Some(rest) = template.strip_prefix('$') {
            template = rest;
            continue;
        }
        let (braced, rest) = match template.strip_prefix('{') {
            Some(rest) => (true, rest),
            None => (false, template),
        };
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() || (braced && !rest[end..].starts_with('}')) {
            bail!("--filter-extract is malformed");
        }
        template = &rest[end + usize::from(braced)..];
        let number = name.bytes().all(|b| b.is_ascii_digit())
            && (name == "0" || !name.starts_with('0'))
            && name.len() < 9;
        if !number && !groups.contains(&name) {
            bail!("capture group ${name} used in --filter-extract not found in --filter-regex");
        }
    }
    Ok(())
}

pub(super) fn update_node() -> Node {
    leaf!("update", "Create or update an ImageUpdateAutomation", update)
        .flags(&[
            text("git-repo-ref", "GitRepository to write to"),
            text("git-repo-namespace", "Its namespace"),
            text("git-repo-path", "Folder with the manifests to update"),
            text("checkout-branch", "Branch to start from"),
            text("push-branch", "Branch to push to; by default the same"),
            text("commit-template", "Template of commit messages"),
            text("author-name", "Author of commits"),
            text("author-email", "Address of the author"),
            text("signing-key-secret", "Secret with the key to sign commits with"),
            text("signing-key-type", "gpg or ssh"),
        ])
        .example(
            "Write new tags to main",
            "create image update bump --git-repo-ref=fleet --git-repo-path=./apps --checkout-branch=main --author-name=bot --author-email=bot@example.com",
        )
}

async fn update(call: &Call) -> CommandResult {
    for (flag, complaint) in [
        ("git-repo-ref", "a reference to a GitRepository is required (--git-repo-ref)"),
        ("checkout-branch", "the Git repository branch is required (--checkout-branch)"),
        ("author-name", "the author name is required (--author-name)"),
        ("author-email", "the author email is required (--author-email)"),
    ] {
        if call.text(flag).is_empty() {
            bail!("{complaint}");
        }
    }
    let (secret, key_type) = (call.text("signing-key-secret"), call.text("signing-key-type"));
    if !key_type.is_empty() && secret.is_empty() {
        bail!("--signing-key-type requires --signing-key-secret");
    }
    if !["", "gpg", "ssh"].contains(&key_type) {
        bail!("--signing-key-type must be one of: gpg, ssh");
    }
    let labels = labels(call)?;
    let signing = (!secret.is_empty())
        .then(|| Fields::default().name_of("secretRef", secret).text("type", key_type).build());
    let commit = Fields::default()
        .put(
            "author",
            Fields::default()
                .text("name", call.text("author-name"))
                .put("email", call.text("author-email"))
                .build(),
        )
        .text("messageTemplate", call.text("commit-template"))
        .maybe("signingKey", signing);
    let push = (!call.text("push-branch").is_empty()).then(|| json!({"branch": call.text("push-branch")}));
    let git = Fields::default()
        .put("checkout", json!({"ref": {"branch": call.text("checkout-branch")}}))
        .put("commit", commit.build())
        .maybe("push", push);
    let path = call.text("git-repo-path");
    let strategy = (!path.is_empty()).then(|| json!({"path": path, "strategy": "Setters"}));
    let source = Fields::default()
        .put("kind", "GitRepository")
        .put("name", call.text("git-repo-ref"))
        .text("namespace", call.text("git-repo-namespace"));
    let spec = Fields::default()
        .put("sourceRef", source.build())
        .put("git", git.build())
        .put("interval", call.text("interval"))
        .maybe("update", strategy);
    finish(call, &resource_kinds::IMAGE_UPDATE, object(call, &resource_kinds::IMAGE_UPDATE, &labels, spec))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_name_groups_that_exist() {
        let check = |template| check_extract(template, &["ts"]).map_err(|e| e.to_string());
        assert!(check("$ts ${ts} $1 $$x").is_ok());
        assert_eq!(
            check("$b").unwrap_err(),
            "capture group $b used in --filter-extract not found in --filter-regex"
        );
        for malformed in ["$", "${ts", "${}", "$-"] {
            assert_eq!(check(malformed).unwrap_err(), "--filter-extract is malformed", "{malformed}");
        }
    }
}
