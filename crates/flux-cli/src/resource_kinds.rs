//! The kinds flux's verbs work on: one row each.

use fl_kstatus::State;
use serde_json::Value;

use crate::cluster::{Resource, name_of, namespace_of, text_at};
use crate::format::{local_time, truncate_hex};

/// A column of `get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Revision,
    Source,
    Suspended,
    Ready,
    Message,
    LastScan,
    LastRun,
    Image,
    Tag,
}

impl Column {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Column::Revision => "Revision",
            Column::Source => "Source",
            Column::Suspended => "Suspended",
            Column::Ready => "Ready",
            Column::Message => "Message",
            Column::LastScan => "Last scan",
            Column::LastRun => "Last run",
            Column::Image => "Image",
            Column::Tag => "Tag",
        }
    }
}

/// Where long hex words are cut in tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shorten {
    Nothing,
    Message,
    Both,
}

/// What a kind is called and how it shows its state.
pub(crate) struct Kind {
    pub(crate) kind: &'static str,
    /// As progress lines name it.
    pub(crate) human: &'static str,
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) columns: &'static [Column],
    shorten: Shorten,
    /// No controller writes a status: always ready.
    always_ready: bool,
}

use Column::{Image, LastRun, LastScan, Message, Ready, Revision, Source, Suspended, Tag};

const SOURCE: &str = "source.toolkit.fluxcd.io";
const NOTIFICATION: &str = "notification.toolkit.fluxcd.io";
const IMAGE: &str = "image.toolkit.fluxcd.io";
const REVISIONED: &[Column] = &[Revision, Suspended, Ready, Message];

const fn row(
    kind: &'static str,
    human: &'static str,
    api: (&'static str, &'static str, &'static str),
    columns: &'static [Column],
    shorten: Shorten,
) -> Kind {
    Kind { kind, human, group: api.0, version: api.1, plural: api.2, columns, shorten, always_ready: false }
}

const fn always_ready(mut kind: Kind) -> Kind {
    kind.always_ready = true;
    kind
}

pub(crate) const OCI: Kind =
    row("OCIRepository", "source oci", (SOURCE, "v1", "ocirepositories"), REVISIONED, Shorten::Both);
pub(crate) const BUCKET: Kind =
    row("Bucket", "source bucket", (SOURCE, "v1", "buckets"), REVISIONED, Shorten::Both);
pub(crate) const GIT: Kind =
    row("GitRepository", "source git", (SOURCE, "v1", "gitrepositories"), REVISIONED, Shorten::Both);
pub(crate) const HELM: Kind =
    row("HelmRepository", "source helm", (SOURCE, "v1", "helmrepositories"), REVISIONED, Shorten::Both);
pub(crate) const CHART: Kind =
    row("HelmChart", "source chart", (SOURCE, "v1", "helmcharts"), REVISIONED, Shorten::Message);
pub(crate) const EXTERNAL: Kind = row(
    "ExternalArtifact",
    "source external-artifact",
    (SOURCE, "v1", "externalartifacts"),
    &[Revision, Source, Ready, Message],
    Shorten::Both,
);
pub(crate) const KUSTOMIZATION: Kind = row(
    "Kustomization",
    "kustomization",
    ("kustomize.toolkit.fluxcd.io", "v1", "kustomizations"),
    REVISIONED,
    Shorten::Both,
);
pub(crate) const HELM_RELEASE: Kind = row(
    "HelmRelease",
    "helmrelease",
    ("helm.toolkit.fluxcd.io", "v2", "helmreleases"),
    REVISIONED,
    Shorten::Nothing,
);
pub(crate) const RECEIVER: Kind = row(
    "Receiver",
    "receiver",
    (NOTIFICATION, "v1", "receivers"),
    &[Suspended, Ready, Message],
    Shorten::Nothing,
);
pub(crate) const ALERT: Kind = always_ready(row(
    "Alert",
    "alert",
    (NOTIFICATION, "v1beta3", "alerts"),
    &[Suspended, Ready, Message],
    Shorten::Nothing,
));
pub(crate) const PROVIDER: Kind = always_ready(row(
    "Provider",
    "alert provider",
    (NOTIFICATION, "v1beta3", "providers"),
    &[Ready, Message],
    Shorten::Nothing,
));
pub(crate) const IMAGE_REPOSITORY: Kind = row(
    "ImageRepository",
    "image repository",
    (IMAGE, "v1", "imagerepositories"),
    &[LastScan, Suspended, Ready, Message],
    Shorten::Nothing,
);
pub(crate) const IMAGE_POLICY: Kind = row(
    "ImagePolicy",
    "image policy",
    (IMAGE, "v1", "imagepolicies"),
    &[Image, Tag, Ready, Message],
    Shorten::Nothing,
);
pub(crate) const IMAGE_UPDATE: Kind = row(
    "ImageUpdateAutomation",
    "image update automation",
    (IMAGE, "v1", "imageupdateautomations"),
    &[LastRun, Suspended, Ready, Message],
    Shorten::Nothing,
);
pub(crate) const GENERATOR: Kind = row(
    "ArtifactGenerator",
    "artifactgenerator",
    ("source.extensions.fluxcd.io", "v1beta1", "artifactgenerators"),
    &[Suspended, Ready, Message],
    Shorten::Nothing,
);

/// The sources, in the order `get sources all` prints them.
pub(crate) const SOURCES: [&Kind; 6] = [&OCI, &BUCKET, &GIT, &HELM, &CHART, &EXTERNAL];
/// The image kinds, in the order `get images all` prints them.
pub(crate) const IMAGES: [&Kind; 3] = [&IMAGE_REPOSITORY, &IMAGE_POLICY, &IMAGE_UPDATE];
/// What `get all` prints after sources and images.
pub(crate) const REST: [&Kind; 5] = [&HELM_RELEASE, &KUSTOMIZATION, &RECEIVER, &PROVIDER, &ALERT];

/// Every kind.
pub(crate) fn all() -> impl Iterator<Item = &'static Kind> {
    SOURCES.into_iter().chain(IMAGES).chain(REST).chain([&GENERATOR])
}

/// The kind of this name.
pub(crate) fn by_name(kind: &str) -> Option<&'static Kind> {
    all().find(|k| k.kind == kind)
}

impl Kind {
    pub(crate) fn resource(&self) -> Resource {
        Resource::new(&self.api_version(), self.kind, self.plural, true)
    }

    pub(crate) fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// The cells of an object behind its name; `columns` may hold more than the kind's own (`--show-source`).
    pub(crate) fn cells(&self, object: &Value, columns: &[Column]) -> Vec<String> {
        let (ready, message) = self.ready(object);
        let shorten = |text: &str, at: bool| if at { truncate_hex(text) } else { text.to_owned() };
        columns
            .iter()
            .map(|column| match column {
                Column::Revision => shorten(&self.revision(object), self.shorten == Shorten::Both),
                Column::Source => self.source(object),
                Column::Suspended => title_case(self.suspended(object)).to_owned(),
                Column::Ready => ready.clone(),
                Column::Message => shorten(&message, self.shorten != Shorten::Nothing),
                Column::LastScan => local_time(text_at(object, "/status/lastScanResult/scanTime")),
                Column::LastRun => local_time(text_at(object, "/status/lastAutomationRunTime")),
                Column::Image => text_at(object, "/status/latestRef/name").to_owned(),
                Column::Tag => text_at(object, "/status/latestRef/tag").to_owned(),
            })
            .collect()
    }

    /// Status and message of the Ready condition, as tables show them.
    pub(crate) fn ready(&self, object: &Value) -> (String, String) {
        if self.always_ready {
            return ("True".to_owned(), format!("{} is Ready", self.kind));
        }
        if self.kind == HELM.kind && self.is_static(object) {
            return ("True".to_owned(), "Helm repository is Ready".to_owned());
        }
        match condition(object, "Ready") {
            Some(ready) => (text_at(ready, "/status").to_owned(), text_at(ready, "/message").to_owned()),
            None => ("False".to_owned(), "waiting to be reconciled".to_owned()),
        }
    }

    /// Whether a condition has this status; names and states in any case.
    pub(crate) fn matches(&self, object: &Value, condition: &str, status: &str) -> bool {
        if self.always_ready {
            return condition.eq_ignore_ascii_case("Ready") && status.eq_ignore_ascii_case("True");
        }
        conditions(object)
            .filter(|c| text_at(c, "/type").eq_ignore_ascii_case(condition))
            .last()
            .is_some_and(|c| text_at(c, "/status").eq_ignore_ascii_case(status))
    }

    pub(crate) fn suspended(&self, object: &Value) -> bool {
        if self.kind == GENERATOR.kind {
            let mode = object.pointer("/metadata/annotations/source.extensions.fluxcd.io~1reconcile");
            return mode.and_then(Value::as_str).is_some_and(|m| m.eq_ignore_ascii_case("disabled"));
        }
        object.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The revision an object has reached.
    pub(crate) fn revision(&self, object: &Value) -> String {
        match self.kind {
            "Kustomization" => text_at(object, "/status/lastAppliedRevision"),
            "HelmRelease" => match object.pointer("/status/history/0") {
                Some(latest) => text_at(latest, "/chartVersion"),
                None => text_at(object, "/status/lastAttemptedRevision"),
            },
            _ => text_at(object, "/status/artifact/revision"),
        }
        .to_owned()
    }

    /// `Kind/namespace/name` of what an object is built from.
    fn source(&self, object: &Value) -> String {
        let (reference, own_namespace) = match self.kind {
            "HelmRelease" => (
                object.pointer("/spec/chartRef").or_else(|| object.pointer("/spec/chart/spec/sourceRef")),
                true,
            ),
            "ExternalArtifact" => (object.pointer("/spec/sourceRef"), false),
            _ => (object.pointer("/spec/sourceRef"), true),
        };
        let Some(reference) = reference else { return String::new() };
        let namespace = match text_at(reference, "/namespace") {
            "" if own_namespace => namespace_of(object),
            written => written,
        };
        format!("{}/{namespace}/{}", text_at(reference, "/kind"), text_at(reference, "/name"))
    }

    /// Objects no controller reconciles: there is nothing to ask for or wait for.
    pub(crate) fn is_static(&self, object: &Value) -> bool {
        self.always_ready || self.kind == HELM.kind && text_at(object, "/spec/type") == "oci"
    }

    /// What to say when an object is where it should be.
    pub(crate) fn success(&self, object: &Value) -> String {
        match self.kind {
            "Kustomization" | "HelmRelease" => format!("applied revision {}", self.revision(object)),
            "Alert" | "Provider" | "Receiver" => format!("{} reconciliation completed", self.kind),
            "ImageRepository" => {
                let tags =
                    object.pointer("/status/lastScanResult/tagCount").and_then(Value::as_i64).unwrap_or(0);
                format!("scan fetched {tags} tags")
            }
            "ImagePolicy" => format!("selected ref {}", image_reference(object)),
            "ImageUpdateAutomation" => match condition(object, "Ready") {
                Some(ready) => text_at(ready, "/message").to_owned(),
                None => match text_at(object, "/status/lastAutomationRunTime") {
                    "" => "automation not yet run".to_owned(),
                    time => format!("last run {}", local_time(time)),
                },
            },
            "HelmRepository" if self.is_static(object) => {
                condition(object, "Ready").map(|c| text_at(c, "/message").to_owned()).unwrap_or_default()
            }
            _ => format!("fetched revision {}", self.revision(object)),
        }
    }
}

fn image_reference(object: &Value) -> String {
    let mut text = text_at(object, "/status/latestRef/name").to_owned();
    let (tag, digest) =
        (text_at(object, "/status/latestRef/tag"), text_at(object, "/status/latestRef/digest"));
    if !tag.is_empty() {
        text.push_str(&format!(":{tag}"));
    }
    if !digest.is_empty() {
        text.push_str(&format!("@{digest}"));
    }
    text
}

fn title_case(yes: bool) -> &'static str {
    if yes { "True" } else { "False" }
}

pub(crate) fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions(object).find(|c| c["type"] == kind)
}

/// The name with its kind in front, as tables of several kinds show it.
pub(crate) fn kind_and_name(kind: &Kind, object: &Value) -> String {
    format!("{}/{}", kind.kind.to_lowercase(), name_of(object))
}

/// Whether an object's controller has seen and finished its latest generation; an error when it gave up.
pub(crate) fn is_ready(object: &Value, dynamic: bool) -> anyhow::Result<bool> {
    if dynamic {
        let observed = object.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or(0);
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        if observed < 1 {
            return Ok(false);
        }
        let Some(ready) = condition(object, "Ready") else { return Ok(false) };
        // Not every kind notes the generation per condition; where it does not, the object's own counts.
        let seen = match ready["observedGeneration"].as_i64().unwrap_or(0) {
            0 => observed,
            own => own,
        };
        if seen != generation {
            return Ok(false);
        }
    }
    settled(object)
}

/// kstatus: current, not yet, or an error with its message.
pub(crate) fn settled(object: &Value) -> anyhow::Result<bool> {
    let health = fl_kstatus::health(object, jiff::Timestamp::now().as_second());
    match health.state {
        State::Current => Ok(true),
        State::InProgress => Ok(false),
        _ => anyhow::bail!("{}", health.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_release_shows_the_latest_chart_or_the_attempt() {
        let fresh = json!({"status": {"lastAttemptedRevision": "2.0.0"}});
        let done =
            json!({"status": {"lastAttemptedRevision": "2.0.0", "history": [{"chartVersion": "1.9.0"}]}});
        assert_eq!(
            (HELM_RELEASE.revision(&fresh), HELM_RELEASE.revision(&done)),
            ("2.0.0".into(), "1.9.0".into())
        );
    }

    #[test]
    fn never_reconciled_is_false_and_matches_no_condition() {
        let fresh = json!({"metadata": {"name": "a"}, "spec": {}});
        assert_eq!(GIT.ready(&fresh), ("False".to_owned(), "waiting to be reconciled".to_owned()));
        assert!(!GIT.matches(&fresh, "ready", "false") && ALERT.matches(&fresh, "READY", "true"));
    }

    #[test]
    fn ready_needs_the_latest_generation() {
        let object = |observed: i64| {
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed,
                "conditions": [{"type": "Ready", "status": "True", "observedGeneration": observed}]}})
        };
        assert!(is_ready(&object(2), true).unwrap());
        assert!(!is_ready(&object(1), true).unwrap());
        let stalled = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": [
            {"type": "Ready", "status": "False", "message": "no"}, {"type": "Stalled", "status": "True", "message": "no path"}]}});
        assert_eq!(is_ready(&stalled, true).unwrap_err().to_string(), "no path");
    }

    #[test]
    fn kinds_have_different_names() {
        let mut names: Vec<_> = all().map(|k| k.kind).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 15);
    }
}
