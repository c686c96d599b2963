//! `create source …`.

use anyhow::bail;
use serde_json::{Value, json};

use super::checks::{
    bucket_provider, check_url, ecdsa_curve, git_provider, key_algorithm, kind_name, local_chart_source,
    oci_provider, rsa_bits, scheme_and_host, verify_provider,
};
use super::secret::{Content, git_content, read_file, tls_content};
use super::{Fields, ignore, labels, leaf, name, object, print, upsert};
use crate::args::{Call, CommandResult, action};
use crate::cluster::Cluster;
use crate::command::Node;
use crate::flag::{checked, list, switch, text};
use crate::resource_kinds;
use crate::{logger, prompt};

pub(super) fn git_node() -> Node {
    leaf!("git", "Create or update a GitRepository", git)
        .flags(&[
            text("url", "Address, e.g. https://host/org/repo or ssh://git@host/org/repo"),
            text("branch", "Branch"),
            text("tag", "Tag"),
            text("tag-semver", "Range of version tags"),
            text("ref-name", "Full name of a reference"),
            text("commit", "Commit"),
            text("username", "User name").short('u'),
            text("password", "Password or token").short('p'),
            checked("ssh-key-algorithm", key_algorithm, "Algorithm of a new SSH key: rsa, ecdsa or ed25519").or("ecdsa"),
            checked("ssh-rsa-bits", rsa_bits, "Size of a new RSA key").or("2048"),
            checked("ssh-ecdsa-curve", ecdsa_curve, "Curve of a new ECDSA key: p256, p384 or p521").or("p384"),
            text("secret-ref", "Existing secret with credentials"),
            text("proxy-secret-ref", "Existing secret with the address of a proxy"),
            checked("provider", git_provider, "Who authenticates: generic, github, aws or azure"),
            text("ca-file", "Certificate authority of the server"),
            text("private-key-file", "SSH key without a passphrase"),
            switch("recurse-submodules", "Fetch submodules too"),
            switch("silent", "The deploy key is in place already, do not ask").short('s'),
            list("ignore-paths", "Paths to leave out"),
            list("sparse-checkout-paths", "Only these paths"),
        ])
        .example("A branch of a public repository", "create source git app --url=https://git.example.com/acme/app --branch=main")
        .example("A private one, with a secret that exists", "create source git app --url=ssh://git@git.example.com/acme/app --branch=main --secret-ref=app-key")
        .example("Releases by range, as a file", "create source git app --url=https://git.example.com/acme/app --tag-semver='>=1.0.0' --export")
}

async fn git(call: &Call) -> CommandResult {
    let url = call.text("url");
    if url.is_empty() {
        bail!("url is required");
    }
    check_url(url).map_err(|why| anyhow::anyhow!("git URL parse failed: {why}"))?;
    let (scheme, host) = scheme_and_host(url);
    if !["ssh", "http", "https"].contains(&scheme) {
        bail!("git URL scheme '{scheme}' not supported, can be: ssh, http and https");
    }
    let given = |flag| !call.text(flag).is_empty();
    if !["branch", "tag", "tag-semver", "commit", "ref-name"].into_iter().any(given) {
        bail!(
            "a Git ref is required, use one of the following: --branch, --tag, --commit, --ref-name or --tag-semver"
        );
    }
    if given("ca-file") && scheme == "ssh" {
        bail!("specifying a CA file is not supported for Git over SSH");
    }
    let labels = labels(call)?;
    let spec = Fields::default()
        .put("url", url)
        .put("interval", call.text("interval"))
        .flag("recurseSubmodules", call.on("recurse-submodules"))
        .put("ref", git_reference(call))
        .text("ignore", &ignore(call))
        .list("sparseCheckout", call.list("sparse-checkout-paths"))
        .maybe("timeout", fetch_timeout(call))
        .name_of("secretRef", call.text("secret-ref"))
        .name_of("proxySecretRef", call.text("proxy-secret-ref"))
        .text("provider", call.text("provider"));
    let mut object = object(call, &resource_kinds::GIT, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    let cluster = Cluster::connect(call).await?;
    logger::generate("generating GitRepository source");
    if !given("secret-ref") {
        let content = match scheme {
            "ssh" => git_content(call, host, "").await?,
            "https" => Content::default()
                .pair(call.text("username"), call.text("password"))
                .file("ca.crt", &read_file(call, "ca-file", "unable to read TLS CA file")?),
            _ => {
                logger::warning("insecure configuration: credentials configured for an HTTP URL");
                Content::default().pair(call.text("username"), call.text("password"))
            }
        };
        if !content.is_empty() {
            announce_key(call, &content)?;
            logger::action("applying secret with repository credentials");
            upsert::secret(&cluster, &content.secret(name(call), call.namespace(), &Default::default(), ""))
                .await?;
            object["spec"]["secretRef"] = json!({"name": name(call)});
            logger::success("authentication configured");
        }
    }
    let nothing = "GitRepository source reconciliation completed but no artifact was found";
    upsert::source(
        &cluster,
        &resource_kinds::GIT,
        &object,
        "GitRepository source",
        "GitRepository source",
        nothing,
    )
    .await
}

/// The public key goes to the Git host before anything can be fetched with it.
fn announce_key(call: &Call, content: &Content) -> CommandResult {
    if let Some(hosts) = content.get("known_hosts") {
        logger::success(format!("collected public key from SSH server:\n{hosts}"));
    }
    if let Some(key) = content.get("identity.pub") {
        logger::generate(format!("deploy key: {key}"));
        if !call.on("silent") {
            prompt::confirm("Have you added the deploy key to your repository")?;
        }
    }
    Ok(())
}

fn git_reference(call: &Call) -> Value {
    let fields = Fields::default();
    let given = |flag| !call.text(flag).is_empty();
    if given("commit") {
        fields.text("commit", call.text("commit")).text("branch", call.text("branch"))
    } else if given("ref-name") {
        fields.text("name", call.text("ref-name"))
    } else if given("tag-semver") {
        fields.text("semver", call.text("tag-semver"))
    } else if given("tag") {
        fields.text("tag", call.text("tag"))
    } else {
        fields.text("branch", call.text("branch"))
    }
    .build()
}

/// Only a timeout that was asked for is written; the API has a default of its own.
fn fetch_timeout(call: &Call) -> Option<Value> {
    let positive = call.duration("fetch-timeout") > fl_types::Duration::ZERO;
    (call.changed("fetch-timeout") && positive).then(|| json!(call.text("fetch-timeout")))
}

pub(super) fn oci_node() -> Node {
    leaf!("oci", "Create or update an OCIRepository", oci)
        .flags(&[
            checked("provider", oci_provider, "Who authenticates: generic, aws, azure or gcp").or("generic"),
            text("url", "Address, oci://host/org/name"),
            text("tag", "Tag"),
            text("tag-semver", "Range of version tags"),
            text("digest", "Digest"),
            text("secret-ref", "Image pull secret"),
            text("proxy-secret-ref", "Existing secret with the address of a proxy"),
            text("service-account", "Service account with image pull secrets"),
            text("cert-ref", "Secret with TLS certificates"),
            checked("verify-provider", verify_provider, "How signatures are checked: cosign"),
            text("verify-secret-ref", "Secret with the keys of signatures"),
            text("verify-subject", "Expression for the OIDC subject of signatures"),
            text("verify-issuer", "Expression for the OIDC issuer of signatures"),
            list("ignore-paths", "Paths to leave out"),
            switch("insecure", "Plain HTTP"),
            text("layer-selector", "Layer to take, media-type:extract or media-type:copy"),
        ])
        .example("A tag", "create source oci app --url=oci://registry.example.com/acme/app --tag=latest")
        .example("Signed releases", "create source oci app --url=oci://registry.example.com/acme/app --tag-semver=1.x --verify-provider=cosign --verify-secret-ref=cosign-pub")
}

async fn oci(call: &Call) -> CommandResult {
    if call.text("url").is_empty() {
        bail!("url is required");
    }
    if ["tag", "tag-semver", "digest"].into_iter().all(|flag| call.text(flag).is_empty()) {
        bail!("--tag, --tag-semver or --digest is required");
    }
    let layer = layer_selector(call.text("layer-selector"))?;
    let labels = labels(call)?;
    let reference = Fields::default()
        .text("digest", call.text("digest"))
        .text("semver", call.text("tag-semver"))
        .text("tag", call.text("tag"));
    let spec = Fields::default()
        .text("provider", call.text("provider"))
        .put("url", call.text("url"))
        .flag("insecure", call.on("insecure"))
        .put("interval", call.text("interval"))
        .put("ref", reference.build())
        .text("ignore", &ignore(call))
        .maybe("layerSelector", layer)
        .maybe("timeout", fetch_timeout(call))
        .text("serviceAccountName", call.text("service-account"))
        .name_of("secretRef", call.text("secret-ref"))
        .name_of("proxySecretRef", call.text("proxy-secret-ref"))
        .name_of("certSecretRef", call.text("cert-ref"))
        .maybe("verify", verify(call)?);
    let object = object(call, &resource_kinds::OCI, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    let cluster = Cluster::connect(call).await?;
    upsert::source(
        &cluster,
        &resource_kinds::OCI,
        &object,
        "OCIRepository",
        "OCIRepository",
        "no artifact was found",
    )
    .await
}

fn layer_selector(text: &str) -> anyhow::Result<Option<Value>> {
    if text.is_empty() {
        return Ok(None);
    }
    let Some((media_type, operation)) = text.split_once(':').filter(|(m, o)| !m.is_empty() && !o.is_empty())
    else {
        bail!("invalid --layer-selector {text:?}: must be in the format '<media-type>:<operation>'");
    };
    if !["extract", "copy"].contains(&operation) {
        bail!("invalid --layer-selector {text:?}: operation must be \"extract\" or \"copy\"");
    }
    Ok(Some(json!({"mediaType": media_type, "operation": operation})))
}

fn verify(call: &Call) -> anyhow::Result<Option<Value>> {
    let (issuer, subject) = (call.text("verify-issuer"), call.text("verify-subject"));
    if call.text("verify-provider").is_empty() {
        if !call.text("verify-secret-ref").is_empty() {
            bail!("a verification provider must be specified when a secret is specified");
        }
        if !issuer.is_empty() || !subject.is_empty() {
            bail!("a verification provider must be specified when OIDC issuer/subject is specified");
        }
        return Ok(None);
    }
    let identity =
        (!issuer.is_empty() || !subject.is_empty()).then(|| json!([{"issuer": issuer, "subject": subject}]));
    Ok(Some(
        Fields::default()
            .text("provider", call.text("verify-provider"))
            .name_of("secretRef", call.text("verify-secret-ref"))
            .maybe("matchOIDCIdentity", identity)
            .build(),
    ))
}

pub(super) fn helm_node() -> Node {
    leaf!("helm", "Create or update a HelmRepository", helm)
        .flags(&[
            text("url", "Address, https://… or oci://…"),
            text("username", "User name").short('u'),
            text("password", "Password").short('p'),
            text("cert-file", "Certificate of the client"),
            text("key-file", "Key of the client"),
            text("ca-file", "Certificate authority of the server"),
            text("secret-ref", "Existing secret with credentials"),
            text("oci-provider", "Who authenticates at a registry: generic, aws, azure or gcp"),
            switch("pass-credentials", "Send credentials to all hosts"),
        ])
        .example(
            "A public repository",
            "create source helm charts --url=https://charts.example.com --interval=1h",
        )
        .example(
            "Charts in a registry",
            "create source helm charts --url=oci://registry.example.com/charts --secret-ref=pull",
        )
}

async fn helm(call: &Call) -> CommandResult {
    let url = call.text("url");
    if url.is_empty() {
        bail!("url is required");
    }
    let labels = labels(call)?;
    check_url(url).map_err(|why| anyhow::anyhow!("url parse failed: {why}"))?;
    let (scheme, host) = scheme_and_host(url);
    if !["http", "https", "oci"].contains(&scheme) {
        bail!("url scheme '{scheme}' not supported, can be: http, https and oci");
    }
    if host.is_empty() {
        bail!("url host is required");
    }
    let secret_ref = call.text("secret-ref");
    let mut spec = Fields::default()
        .put("url", url)
        .put("interval", call.text("interval"))
        .maybe("timeout", fetch_timeout(call));
    if scheme == "oci" {
        spec = spec.put("type", "oci").text("provider", call.text("oci-provider"));
    }
    if !secret_ref.is_empty() {
        spec = spec.name_of("secretRef", secret_ref).flag("passCredentials", call.on("pass-credentials"));
    }
    let mut object = object(call, &resource_kinds::HELM, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    let cluster = Cluster::connect(call).await?;
    let authority = read_file(call, "ca-file", "unable to read TLS CA file")?;
    let (mut certificate, mut key) = (String::new(), String::new());
    if !call.text("cert-file").is_empty() && !call.text("key-file").is_empty() {
        certificate = read_file(call, "cert-file", "failed to read cert file")?;
        key = read_file(call, "key-file", "failed to read key file")?;
    }
    logger::generate("generating HelmRepository source");
    if secret_ref.is_empty() {
        let secret_name = format!("helm-{}", name(call));
        let (content, kind) =
            helm_content(call.text("username"), call.text("password"), &certificate, &key, &authority)?;
        if !content.is_empty() {
            logger::action("applying secret with repository credentials");
            upsert::secret(
                &cluster,
                &content.secret(&secret_name, call.namespace(), &Default::default(), kind),
            )
            .await?;
            object["spec"]["secretRef"] = json!({"name": secret_name});
            if call.on("pass-credentials") {
                object["spec"]["passCredentials"] = json!(true);
            }
            logger::success("authentication configured");
        }
    }
    let nothing = "HelmRepository source reconciliation completed but no artifact was found";
    upsert::source(&cluster, &resource_kinds::HELM, &object, "HelmRepository source", "source", nothing).await
}

/// Credentials of a Helm repository and the type of the secret that holds them.
pub(super) fn helm_content(
    username: &str,
    password: &str,
    certificate: &str,
    key: &str,
    authority: &str,
) -> anyhow::Result<(Content, &'static str)> {
    if !certificate.is_empty() || !key.is_empty() {
        return tls_content(certificate, key, authority);
    }
    if !username.is_empty() || !password.is_empty() {
        if username.is_empty() {
            bail!("username is required");
        }
        if password.is_empty() {
            bail!("password is required");
        }
        return Ok((
            Content::default().pair(username, password).file("ca.crt", authority),
            "kubernetes.io/basic-auth",
        ));
    }
    if authority.is_empty() { Ok((Content::default(), "")) } else { tls_content("", "", authority) }
}

pub(super) fn chart_node() -> Node {
    leaf!("chart", "Create or update a HelmChart", chart)
        .flags(&[
            text("chart", "Name of the chart, or its path in the source"),
            text("chart-version", "Version or range"),
            checked(
                "source",
                local_chart_source,
                "Where the chart is: kind/name of a HelmRepository, GitRepository or Bucket",
            ),
            text("reconcile-strategy", "When the chart is new: ChartVersion or Revision").or("ChartVersion"),
            checked("verify-provider", verify_provider, "How signatures are checked: cosign"),
            text("verify-secret-ref", "Secret with the keys of signatures"),
            text("verify-subject", "Expression for the OIDC subject of signatures"),
            text("verify-issuer", "Expression for the OIDC issuer of signatures"),
        ])
        .example(
            "From a Helm repository",
            "create source chart web --source=HelmRepository/charts --chart=web --chart-version=1.x",
        )
}

async fn chart(call: &Call) -> CommandResult {
    let (source_kind, source_name) = kind_name(call.text("source"));
    if source_kind.is_empty() || source_name.is_empty() {
        bail!("chart source is required");
    }
    if call.text("chart").is_empty() {
        bail!("chart name or path is required");
    }
    logger::generate("generating HelmChart source");
    let labels = labels(call)?;
    let spec = Fields::default()
        .put("chart", call.text("chart"))
        .text("version", call.text("chart-version"))
        .put("interval", call.text("interval"))
        .text("reconcileStrategy", call.text("reconcile-strategy"))
        .put("sourceRef", json!({"kind": source_kind, "name": source_name}))
        .maybe("verify", verify(call)?);
    let object = object(call, &resource_kinds::CHART, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    let cluster = Cluster::connect(call).await?;
    let nothing = "HelmChart source reconciliation completed but no artifact was found";
    upsert::source(&cluster, &resource_kinds::CHART, &object, "HelmChart source", "source", nothing).await
}

pub(super) fn bucket_node() -> Node {
    leaf!("bucket", "Create or update a Bucket", bucket)
        .flags(&[
            checked("provider", bucket_provider, "Whose storage: generic, aws, azure or gcp").or("generic"),
            text("bucket-name", "Name of the bucket"),
            text("endpoint", "Address of the storage"),
            text("access-key", "Access key"),
            text("secret-key", "Secret key"),
            text("region", "Region"),
            switch("insecure", "Plain HTTP"),
            text("secret-ref", "Existing secret with credentials"),
            text("proxy-secret-ref", "Existing secret with the address of a proxy"),
            list("ignore-paths", "Paths to leave out"),
        ])
        .example(
            "S3 compatible storage",
            "create source bucket data --bucket-name=data --endpoint=minio.example.com --secret-ref=minio",
        )
}

async fn bucket(call: &Call) -> CommandResult {
    if call.text("bucket-name").is_empty() {
        bail!("bucket-name is required");
    }
    if call.text("endpoint").is_empty() {
        bail!("endpoint is required");
    }
    let labels = labels(call)?;
    let spec = Fields::default()
        .put("bucketName", call.text("bucket-name"))
        .text("provider", call.text("provider"))
        .flag("insecure", call.on("insecure"))
        .put("endpoint", call.text("endpoint"))
        .text("region", call.text("region"))
        .put("interval", call.text("interval"))
        .text("ignore", &ignore(call))
        .maybe("timeout", fetch_timeout(call))
        .name_of("secretRef", call.text("secret-ref"))
        .name_of("proxySecretRef", call.text("proxy-secret-ref"));
    let mut object = object(call, &resource_kinds::BUCKET, &labels, spec);
    if call.on("export") {
        return print(&object);
    }
    let cluster = Cluster::connect(call).await?;
    logger::generate("generating Bucket source");
    let (access, secret) = (call.text("access-key"), call.text("secret-key"));
    if call.text("secret-ref").is_empty() && !access.is_empty() && !secret.is_empty() {
        let secret_name = format!("bucket-{}", name(call));
        let content = Content::default().file("accesskey", access).file("secretkey", secret);
        logger::action("applying secret with the bucket credentials");
        upsert::secret(&cluster, &content.secret(&secret_name, call.namespace(), &labels, "")).await?;
        object["spec"]["secretRef"] = json!({"name": secret_name});
        logger::success("authentication configured");
    }
    let nothing = "Bucket source reconciliation but no artifact was found";
    upsert::source(&cluster, &resource_kinds::BUCKET, &object, "Bucket source", "Bucket source", nothing)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_selected_by_media_type_and_operation() {
        assert_eq!(
            layer_selector("a/b:copy").unwrap(),
            Some(json!({"mediaType": "a/b", "operation": "copy"}))
        );
        assert!(layer_selector("").unwrap().is_none());
        assert!(layer_selector("a/b").is_err() && layer_selector("a/b:burn").is_err());
    }

    #[test]
    fn repository_credentials_need_both_halves() {
        assert_eq!(helm_content("u", "p", "", "", "CA").unwrap().1, "kubernetes.io/basic-auth");
        assert!(helm_content("u", "", "", "", "").is_err());
        assert!(helm_content("", "", "", "", "").unwrap().0.is_empty());
    }
}
