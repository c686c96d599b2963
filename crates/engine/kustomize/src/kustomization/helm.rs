//! `helmCharts`, its older form `helmChartInflationGenerator`, and `helmGlobals`.

use fl_yaml::Node;

use crate::decode::{Decoder, Fields, Located};
use crate::error::Result;

/// One chart to inflate.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HelmChart {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) repo: String,
    pub(crate) release_name: String,
    pub(crate) name_template: String,
    pub(crate) namespace: String,
    /// Directory of the charts; empty for the default.
    pub(crate) home: String,
    pub(crate) values_file: String,
    pub(crate) additional_values_files: Vec<Located<String>>,
    pub(crate) values_inline: Option<Node>,
    pub(crate) values_merge: String,
    pub(crate) include_crds: bool,
    pub(crate) skip_hooks: bool,
    pub(crate) skip_tests: bool,
    pub(crate) devel: bool,
    pub(crate) api_versions: Vec<String>,
    pub(crate) kube_version: String,
    /// Position of the entry.
    pub(crate) at: (u32, u32),
}

const FIELDS: &[&str] = &[
    "name",
    "version",
    "repo",
    "releaseName",
    "namespace",
    "additionalValuesFiles",
    "valuesFile",
    "valuesInline",
    "valuesMerge",
    "includeCRDs",
    "skipHooks",
    "apiVersions",
    "kubeVersion",
    "nameTemplate",
    "skipTests",
    "debug",
    "devel",
];

const OLD_FIELDS: &[&str] = &[
    "chartName",
    "chartVersion",
    "chartRepoUrl",
    "chartHome",
    "chartRepoName",
    "helmBin",
    "helmHome",
    "values",
    "valuesLocal",
    "valuesMerge",
    "releaseName",
    "releaseNamespace",
    "extraArgs",
];

const GLOBALS: &[&str] = &["chartHome", "configHome"];

/// All charts of a kustomization, those of the deprecated field last.
pub(crate) fn charts(d: &Decoder, f: &Fields<'_>) -> Result<Vec<HelmChart>> {
    let mut charts = f.list("helmCharts", |node| chart(&d.fields(node, FIELDS)?, node))?;
    let mut old_home = String::new();
    for (chart, home) in f.list("helmChartInflationGenerator", |node| old_chart(d, node))? {
        charts.push(chart);
        if !home.is_empty() {
            old_home = home;
        }
    }
    let home = match f.get("helmGlobals") {
        Some(node) => d.fields(node, GLOBALS)?.text("chartHome")?,
        None => old_home,
    };
    charts.iter_mut().for_each(|chart| chart.home.clone_from(&home));
    Ok(charts)
}

/// A chart in a plugin object: the fields of an entry and of the globals.
pub(crate) fn plugin(d: &Decoder, node: &Node) -> Result<HelmChart> {
    let fields: Vec<&str> = FIELDS.iter().chain(GLOBALS).copied().collect();
    let f = d.fields(node, &fields)?;
    Ok(HelmChart { home: f.text("chartHome")?, ..chart(&f, node)? })
}

fn chart(f: &Fields<'_>, node: &Node) -> Result<HelmChart> {
    // Has no effect, because no helm process is started.
    f.bool("debug")?;
    Ok(HelmChart {
        name: f.text("name")?,
        version: f.text("version")?,
        repo: f.text("repo")?,
        release_name: f.text("releaseName")?,
        name_template: f.text("nameTemplate")?,
        namespace: f.text("namespace")?,
        home: String::new(),
        values_file: f.text("valuesFile")?,
        additional_values_files: f.texts("additionalValuesFiles")?,
        values_inline: f.get("valuesInline").cloned(),
        values_merge: f.text("valuesMerge")?,
        include_crds: f.bool("includeCRDs")?,
        skip_hooks: f.bool("skipHooks")?,
        skip_tests: f.bool("skipTests")?,
        devel: f.bool("devel")?,
        api_versions: f.texts("apiVersions")?.into_iter().map(|l| l.value).collect(),
        kube_version: f.text("kubeVersion")?,
        at: (node.line(), node.column()),
    })
}

/// The deprecated form has fewer fields; kustomize converts the same ones.
fn old_chart(d: &Decoder, node: &Node) -> Result<(HelmChart, String)> {
    let f = d.fields(node, OLD_FIELDS)?;
    let chart = HelmChart {
        name: f.text("chartName")?,
        version: f.text("chartVersion")?,
        repo: f.text("chartRepoUrl")?,
        release_name: f.text("releaseName")?,
        values_file: f.text("values")?,
        values_inline: f.get("valuesLocal").cloned(),
        values_merge: f.text("valuesMerge")?,
        at: (node.line(), node.column()),
        ..HelmChart::default()
    };
    Ok((chart, f.text("chartHome")?))
}
