//! `flux version`: versions of the program and of an installation.

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::json;

use super::check::{Installed, PART_OF, containers, deployments, installed};
use crate::args::{Call, CommandResult, action};
use crate::cluster::{Cluster, Select, text_at};
use crate::command::Node;
use crate::flag::{switch, text};
use crate::image::repository;
use crate::{VERSION, format as view, logger};

pub(crate) fn version_node() -> Node {
    Node::leaf(
        "version",
        "Print the versions of the program and of what is installed",
        action(|call: Call| async move { version(&call).await }),
    )
    .flags(&[
        switch("client", "Only the version of the program"),
        text("output", "json or yaml").or("yaml").short('o'),
    ])
    .example("As JSON", "version -o json")
}

async fn version(call: &Call) -> CommandResult {
    let output = call.text("output");
    if !["yaml", "json"].contains(&output) {
        bail!("--output must be json or yaml, not {output}");
    }
    let (mut distribution, mut controllers) = (String::new(), BTreeMap::new());
    if !call.on("client") {
        let cluster = Cluster::connect(call).await?;
        let installed = match installed(&cluster).await {
            Ok(info) => info,
            Err(error) if error.is_not_found() || error.is_no_match() => Installed::default(),
            Err(error) => return Err(error.into()),
        };
        let found =
            cluster.list(&deployments(), &Select::in_namespace(call.namespace()).labelled(PART_OF)).await?;
        if found.is_empty() && !installed.is_delivered_by_up() {
            bail!("no deployments found in {} namespace", call.namespace());
        }
        distribution = installed.distribution;
        for container in found.iter().flat_map(containers) {
            let (name, tag) = name_and_tag(text_at(container, "/image"))?;
            controllers.insert(name, tag);
        }
    }
    if output == "json" {
        let mut map: BTreeMap<&str, &str> =
            controllers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        map.insert("flux", VERSION);
        if !distribution.is_empty() {
            map.insert("distribution", &distribution);
        }
        logger::data_line(&view::pretty_json(&json!(map)));
        return Ok(());
    }
    let mut text = line("flux", VERSION);
    if !distribution.is_empty() {
        text.push_str(&line("distribution", &distribution));
    }
    controllers.iter().for_each(|(name, tag)| text.push_str(&line(name, tag)));
    logger::data(&text);
    Ok(())
}

fn line(key: &str, value: &str) -> String {
    view::yaml(&json!({key: value}))
}

/// The last word of an image's name and its tag.
fn name_and_tag(image: &str) -> anyhow::Result<(String, String)> {
    crate::image::check_reference(image)
        .map_err(|why| anyhow::anyhow!("parsing image '{image}' failed: {why}"))?;
    let (registry, _) = repository(image);
    let path = image.strip_prefix(&registry).unwrap_or(image);
    let Some((name, tag)) = path.split_once(':') else { bail!("missing image tag in image {image}") };
    Ok((name.rsplit('/').next().unwrap_or(name).to_owned(), tag.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_split_behind_the_registry() {
        let split = |image| name_and_tag(image).unwrap();
        assert_eq!(
            split("registry.example.com:5000/fluxcd/source-controller:v1.9.4"),
            ("source-controller".into(), "v1.9.4".into())
        );
        assert_eq!(
            split("ghcr.io/x/y:v1@sha256:9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c8b7a6f5e4d3c2b1a0f9e8d").1,
            "v1@sha256:9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c8b7a6f5e4d3c2b1a0f9e8d"
        );
        assert!(name_and_tag("ghcr.io/x/y").is_err());
    }
}
