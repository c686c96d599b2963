//! Which subcharts take part, under which names, with which default values.
//!
//! Helm decides this anew for every render, because conditions and tags look at the user's values. It works on a graph
//! of shared objects (one subchart used under two aliases shares its dependency list), and charts can see that; so the
//! graph here has identities too, in two arenas.

mod enable;
mod import;

pub(crate) use enable::in_range;

use std::borrow::Cow;

use fl_gotemplate::Map;

use crate::chart::{Chart, Dependency, ImportValue};
use crate::error::Error;
use crate::values::ValueSource;

/// A chart in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChartId(usize);

/// An entry of a dependency list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DependencyId(usize);

#[derive(Debug, Clone)]
struct PlannedChart<'c> {
    chart: &'c Chart,
    name: Cow<'c, str>,
    parent: Option<ChartId>,
    subcharts: Vec<ChartId>,
    /// `None` when `Chart.yaml` has no such field: then nothing is decided.
    requirements: Option<Vec<DependencyId>>,
    values: ValueSource<'c>,
}

/// A dependency as processing changes it.
#[derive(Debug, Clone)]
struct PlannedDependency<'c> {
    declared: &'c Dependency,
    /// The alias once the dependency was resolved.
    name: Cow<'c, str>,
    enabled: bool,
    /// How often its values were imported: the first time rewrites the list, the second one, under another alias,
    /// finds nothing it knows and empties it.
    imports: u32,
}

/// The charts of one render. Index 0 is the root.
#[derive(Debug)]
pub(crate) struct Plan<'c> {
    charts: Vec<PlannedChart<'c>>,
    dependencies: Vec<PlannedDependency<'c>>,
}

impl<'c> Plan<'c> {
    /// Decides everything for a chart and the user's values.
    pub(crate) fn new(chart: &'c Chart, user: &Map, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let mut plan = Self { charts: Vec::new(), dependencies: Vec::new() };
        let root = plan.add(chart, None);
        plan.enable(root, user, "", warnings)?;
        plan.import(root, warnings)?;
        Ok(plan)
    }

    fn add(&mut self, chart: &'c Chart, parent: Option<ChartId>) -> ChartId {
        let id = ChartId(self.charts.len());
        let requirements = chart.metadata.dependencies.as_ref().map(|list| {
            list.iter()
                .map(|declared| {
                    let name = Cow::Borrowed(declared.name.as_str());
                    let enabled = declared.enabled;
                    self.dependencies.push(PlannedDependency { declared, name, enabled, imports: 0 });
                    DependencyId(self.dependencies.len() - 1)
                })
                .collect()
        });
        self.charts.push(PlannedChart {
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

    /// The name, which is the alias where there is one.
    pub(crate) fn name(&self, id: ChartId) -> &str {
        &self.charts[id.0].name
    }

    /// The subcharts that take part.
    pub(crate) fn subcharts(&self, id: ChartId) -> &[ChartId] {
        &self.charts[id.0].subcharts
    }

    pub(crate) fn values(&self, id: ChartId) -> &ValueSource<'c> {
        &self.charts[id.0].values
    }

    /// Whether the chart is the one that was asked for.
    pub(crate) fn is_root(&self, id: ChartId) -> bool {
        self.charts[id.0].parent.is_none()
    }

    /// `root/charts/sub`: where its templates are named.
    pub(crate) fn full_path(&self, id: ChartId) -> String {
        match self.charts[id.0].parent {
            Some(parent) => format!("{}/charts/{}", self.full_path(parent), self.name(id)),
            None => self.name(id).to_owned(),
        }
    }

    /// The dependency list as templates see it: enabled ones, under their final names.
    pub(crate) fn dependency_list(&self, id: ChartId) -> Option<Vec<Dependency>> {
        let requirements = self.charts[id.0].requirements.as_ref()?;
        Some(requirements.iter().map(|id| self.dependencies[id.0].final_form()).collect())
    }
}

impl PlannedDependency<'_> {
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
