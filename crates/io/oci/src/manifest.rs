//! Manifests and indexes, as far as a client reads them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Media types that matter here.
pub mod media_type {
    pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    pub const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
    pub const HELM_CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    pub const HELM_PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
    pub const FLUX_CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
    pub const FLUX_CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";
}

/// What something is, how large, and its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: String,
    #[serde(default)]
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// What a child of an index runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    #[serde(default)]
    pub architecture: String,
    #[serde(default)]
    pub os: String,
}

/// An image or artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    #[serde(default)]
    pub schema_version: u32,
    #[serde(default)]
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub config: Descriptor,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Manifest {
    /// The first layer, or the first of a media type.
    pub fn layer(&self, media_type: Option<&str>) -> Result<&Descriptor, Error> {
        let first = self.layers.first().ok_or(Error::NoLayers)?;
        match media_type.filter(|m| !m.is_empty()) {
            None => Ok(first),
            Some(wanted) => self
                .layers
                .iter()
                .find(|l| l.media_type == wanted)
                .ok_or_else(|| Error::NoSuchLayer(wanted.to_owned())),
        }
    }
}

/// A list of manifests, one per platform, or of what refers to a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    #[serde(default)]
    pub schema_version: u32,
    #[serde(default)]
    pub media_type: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub manifests: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Index {
    /// The child for the usual platform. A child that names none counts as one for it.
    pub fn usual_child(&self) -> Option<&Descriptor> {
        self.manifests.iter().find(|m| {
            m.platform.as_ref().is_none_or(|p| {
                (p.os.is_empty() || p.os == "linux")
                    && (p.architecture.is_empty() || p.architecture == "amd64")
            })
        })
    }
}

/// Some registries write `null` for an empty list.
fn null_is_empty<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(input)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_chosen_by_media_type() {
        let text = r#"{"config":{"digest":"sha256:a"},"layers":[{"mediaType":"x","digest":"sha256:b","size":1},
            {"mediaType":"y","digest":"sha256:c","size":2}],"annotations":null}"#;
        let manifest: Manifest = serde_json::from_str(text).unwrap();
        assert_eq!(manifest.layer(None).unwrap().digest, "sha256:b");
        assert_eq!(manifest.layer(Some("y")).unwrap().size, 2);
        assert_eq!(
            manifest.layer(Some("z")).unwrap_err().to_string(),
            "failed to find layer with media type 'z' in artifact"
        );
        let empty: Manifest =
            serde_json::from_str(r#"{"config":{"digest":"sha256:a"},"layers":null}"#).unwrap();
        assert_eq!(empty.layer(None).unwrap_err().to_string(), "no layers found in artifact");
    }

    #[test]
    fn the_child_for_the_usual_platform() {
        let text = r#"{"manifests":[{"digest":"sha256:a","platform":{"os":"linux","architecture":"arm64"}},
            {"digest":"sha256:b","platform":{"os":"linux","architecture":"amd64"}}]}"#;
        let index: Index = serde_json::from_str(text).unwrap();
        assert_eq!(index.usual_child().unwrap().digest, "sha256:b");
    }
}
