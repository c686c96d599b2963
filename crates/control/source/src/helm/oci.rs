//! Charts in registries.

use fl_oci::{Error, Reference, Registry, Repository, media_type};
use fl_semver::{Constraints, Version};

use super::HelmLimits;
use super::access::Access;
use super::remote::{Chosen, strict_enough};

/// A registry and the path below which its charts are.
pub(super) struct OciCharts {
    pub(super) registry: Registry,
    /// `oci://host/path`
    base: String,
    /// Whether there is a login to offer.
    has_login: bool,
    limits: HelmLimits,
}

impl OciCharts {
    pub(super) fn new(access: &Access, limits: HelmLimits) -> Result<Self, String> {
        let options = access.registry()?;
        let has_login = !options.keychain.is_empty();
        let registry = Registry::new(options).map_err(|e| e.to_string())?;
        Ok(Self { registry, base: access.url.clone(), has_login, limits })
    }

    fn repository(&self, name: &str) -> Result<Repository, String> {
        let path = self.base.strip_prefix("oci://").unwrap_or(&self.base);
        Repository::parse(&format!("{path}/{name}")).map_err(|e| e.to_string())
    }

    pub(super) async fn choose(&self, name: &str, version: &str) -> Result<Chosen, String> {
        let url = format!("{}/{name}", self.base);
        let chosen = |version: &str| Chosen {
            name: name.to_owned(),
            version: version.to_owned(),
            url: Some(format!("{url}:{version}")),
        };
        // A version needs no listing, which can be expensive.
        if strict_enough(version).is_some() {
            return Ok(chosen(version));
        }
        let unlisted =
            |e: String| format!("could not get tags for {name:?}: could not fetch tags for {url:?}: {e}");
        let repository = self.repository(name).map_err(unlisted)?;
        let tags = self.registry.tags(&repository).await.map_err(|e| unlisted(self.words(&e)))?;
        let mut versions: Vec<(Version, String)> = Vec::new();
        for tag in tags {
            // A tag cannot have a plus; charts write an underscore for it. Helm takes only complete versions.
            let text = tag.replace('_', "+");
            if let Ok(version) = Version::parse_strict(&text) {
                versions.push((version, text));
            }
        }
        if versions.is_empty() {
            return Err(format!(
                "could not get tags for {name:?}: unable to locate any tags in provided repository: {url}"
            ));
        }
        versions.sort_by(|a, b| b.0.cmp(&a.0));
        if let Some((_, exact)) = versions.iter().find(|(_, text)| text == version) {
            return Ok(chosen(exact));
        }
        let range = if version.is_empty() { "*" } else { version };
        let constraints = Constraints::parse(range).map_err(|e| e.to_string())?;
        let found =
            versions.iter().find(|(_, text)| strict_enough(text).is_some_and(|v| constraints.check(&v)));
        match found {
            Some((_, text)) => Ok(chosen(text)),
            None => Err(format!("could not locate a version matching provided version string {version}")),
        }
    }

    /// Where a chosen version is in the registry.
    pub(super) fn reference(&self, chosen: &Chosen) -> Result<Reference, String> {
        self.repository(&chosen.name)?.tag(&chosen.version.replace('+', "_")).map_err(|e| e.to_string())
    }

    pub(super) async fn download(&self, chosen: &Chosen) -> Result<Vec<u8>, String> {
        let url = chosen.url.clone().unwrap_or_default();
        let failed = |e: String| format!("failed to get '{url}': {e}");
        let reference = self.reference(chosen).map_err(failed)?;
        let (manifest, _) = self.registry.image(&reference).await.map_err(|e| {
            let why = if e.is_not_found() { format!("{reference}: not found") } else { self.words(&e) };
            failed(format!("failed to perform \"FetchReference\" on source: {why}"))
        })?;
        let is_chart = |layer: &&fl_oci::Descriptor| {
            matches!(layer.media_type.as_str(), media_type::HELM_CHART | "application/tar+gzip")
        };
        let Some(layer) = manifest.layers.iter().find(is_chart) else {
            return Err(failed(format!(
                "manifest does not contain a layer with mediatype {}",
                media_type::HELM_CHART
            )));
        };
        let limit = self.limits.chart;
        if layer.size > limit {
            return Err(failed(format!("size of chart '{}' exceeds '{limit}' bytes limit", chosen.name)));
        }
        let blob = self.registry.blob_bytes(reference.repository(), layer, limit).await;
        blob.map_err(|e| failed(self.words(&e)))
    }

    /// A refusal in the words of the registry client that Helm uses. It does not even ask again when it has no login.
    fn words(&self, error: &Error) -> String {
        match error {
            Error::Refused { method, url, status: 401, .. } if !self.has_login => {
                format!("{method} {url:?}: basic credential not found")
            }
            Error::Refused { method, url, status, text } => {
                format!("{method} {url:?}: response status code {status}: {}", text.to_lowercase())
            }
            other => other.to_string(),
        }
    }
}
