//! Helm's `ProcessDependencies`: which subcharts are enabled, under which names, with which default values.
//!
//! Helm repeats this for every render, because conditions and tags depend on the user's values. It works on a
//! graph of shared objects (a subchart with two aliases shares one dependency list), which charts can
//! observe, so nodes have an identity here too, in two arenas.

mod enable;
mod import;

pub(crate) use enable::in_range;

use std::borrow::Cow;

use fl_gotemplate::Map;

use crate::chart::{Chart, Dependency, ImportValue};
use crate::error::Error;
use crate::values::ValueSource;

/// Index of a chart in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChartId(usize);

/// Index of a dependency list entry in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DependencyId(usize);

#[derive(Debug, Clone)]
struct ChartNode<'c> {
    chart: &'c Chart,
    name: Cow<'c, str>,
    parent: Option<ChartId>,
    subcharts: Vec<ChartId>,
    /// `None` if `Chart.yaml` has no such field: then nothing is enabled or disabled.
    requirements: Option<Vec<DependencyId>>,
    values: ValueSource<'c>,
}

/// A dependency and its state during processing.
#[derive(Debug, Clone)]
struct DependencyNode<'c> {
    declared: &'c Dependency,
    /// Name, or the alias after the dependency was resolved.
    name: Cow<'c, str>,
    enabled: bool,
    /// How often its values were imported. The first import rewrites the list; the second one, for another
    /// alias, does not recognise its entries and empties it.
    imports: u32,
}

/// The charts of one render. Index 0 is the root.
#[derive(Debug)]
pub(crate) struct ChartGraph<'c> {
    charts: Vec<ChartNode<'c>>,
    dependencies: Vec<DependencyNode<'c>>,
}

impl<'c> ChartGraph<'c> {
    /// Processes the dependencies of a chart for the user's values.
    pub(crate) fn new(chart: &'c Chart, user: &Map, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let mut graph = Self { charts: Vec::new(), dependencies: Vec::new() };
        let root = graph.add(chart, None);
        graph.enable(root, user, "", warnings)?;
        graph.import(root, warnings)?;
        Ok(graph)
    }

    fn add(&mut self, chart: &'c Chart, parent: Option<ChartId>) -> ChartId {
        let id = ChartId(self.charts.len());
        let requirements = chart.metadata.dependencies.as_ref().map(|list| {
            list.iter()
                .map(|declared| {
                    let name = Cow::Borrowed(declared.name.as_str());
                    let enabled = declared.enabled;
                    self.dependencies.push(DependencyNode { declared, name, enabled, imports: 0 });
                    DependencyId(self.dependencies.len() - 1)
                })
                .collect()
        });
        self.charts.push(ChartNode {
            chart,
            name: Cow::Borrowed(chart.name()),
            parent,
            subcharts: Vec::new(),
            requirements,
            values: ValueSource::File(&chart.values),
        });
        let subcharts = chart.dependencies.iter().map(|sub| self.add(sub, Some(id))).collect();
        self.charts[id.0].subcharts = subcharts;
        id
    }

    /// The root chart.
    pub(crate) const ROOT: ChartId = ChartId(0);

    /// The chart's files and metadata as loaded.
    pub(crate) fn chart(&self, id: ChartId) -> &'c Chart {
        self.charts[id.0].chart
    }

    /// The name or alias.
    pub(crate) fn name(&self, id: ChartId) -> &str {
        &self.charts[id.0].name
    }

    /// The enabled subcharts.
    pub(crate) fn subcharts(&self, id: ChartId) -> &[ChartId] {
        &self.charts[id.0].subcharts
    }

    pub(crate) fn values(&self, id: ChartId) -> &ValueSource<'c> {
        &self.charts[id.0].values
    }

    /// Whether this is the root chart.
    pub(crate) fn is_root(&self, id: ChartId) -> bool {
        self.charts[id.0].parent.is_none()
    }

    /// `root/charts/sub`, the prefix of its template names.
    pub(crate) fn full_path(&self, id: ChartId) -> String {
        match self.charts[id.0].parent {
            Some(parent) => format!("{}/charts/{}", self.full_path(parent), self.name(id)),
            None => self.name(id).to_owned(),
        }
    }

    /// The dependency list that templates see: enabled entries with their final names.
    pub(crate) fn dependency_list(&self, id: ChartId) -> Option<Vec<Dependency>> {
        let requirements = self.charts[id.0].requirements.as_ref()?;
        Some(requirements.iter().map(|id| self.dependencies[id.0].final_form()).collect())
    }
}

impl DependencyNode<'_> {
    fn final_form(&self) -> Dependency {
        let mut dependency = Dependency {
            name: self.name.clone().into_owned(),
            enabled: self.enabled,
            ..self.declared.clone()
        };
        match self.imports {
            0 => {}
            1 => {
                dependency.import_values.retain(|import| *import != ImportValue::Other);
                for import in &mut dependency.import_values {
                    if let ImportValue::Export(name) = import {
                        *import = ImportValue::Table { child: format!("exports.{name}"), parent: ".".into() };
                    }
                }
            }
            _ => dependency.import_values.clear(),
        }
        dependency
    }
}
