//! Aliases, conditions and tags.

use std::borrow::Cow;

use fl_gotemplate::{Map, Value};
use fl_semver::{Constraints, Version};

use super::{ChartGraph, ChartId, DependencyId};
use crate::error::Error;
use crate::values::{Coalescer, path_value, table};

impl<'c> ChartGraph<'c> {
    /// Resolves the dependency list of a chart, removes disabled subcharts, and recurses.
    pub(super) fn enable(
        &mut self,
        id: ChartId,
        values: &Map,
        path: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(), Error> {
        let Some(requirements) = self.charts[id.0].requirements.clone() else { return Ok(()) };
        let resolved = self.resolve(id, &requirements);
        self.adopt(id, resolved);
        for dependency in &requirements {
            self.dependencies[dependency.0].enabled = true;
        }
        let values = Coalescer::coalescing(self, warnings).run(id, values)?;
        self.apply_tags(&requirements, &values, warnings);
        self.apply_conditions(&requirements, &values, path, warnings);

        let off: Vec<Cow<'c, str>> = requirements
            .iter()
            .map(|d| &self.dependencies[d.0])
            .filter(|d| !d.enabled)
            .map(|d| d.name.clone())
            .collect();
        let kept: Vec<ChartId> = self
            .subcharts(id)
            .iter()
            .copied()
            .filter(|sub| !off.iter().any(|name| name == self.name(*sub)))
            .collect();
        let listed: Vec<DependencyId> =
            requirements.iter().copied().filter(|d| !off.contains(&self.dependencies[d.0].name)).collect();
        for sub in &kept {
            let below = format!("{path}{}.", self.name(*sub));
            self.enable(*sub, &values, &below, warnings)?;
        }
        self.charts[id.0].requirements = Some(listed);
        self.adopt(id, kept);
        Ok(())
    }

    fn adopt(&mut self, id: ChartId, subcharts: Vec<ChartId>) {
        for sub in &subcharts {
            self.charts[sub.0].parent = Some(id);
        }
        self.charts[id.0].subcharts = subcharts;
    }

    /// Charts without an entry in the dependency list come first, then one copy per dependency, renamed to
    /// its alias.
    fn resolve(&mut self, id: ChartId, requirements: &[DependencyId]) -> Vec<ChartId> {
        let present = self.charts[id.0].subcharts.clone();
        let mut resolved: Vec<ChartId> = present
            .iter()
            .copied()
            .filter(|sub| !requirements.iter().any(|dependency| self.satisfies(*sub, *dependency)))
            .collect();
        for dependency in requirements {
            let alias = self.dependencies[dependency.0].declared.alias.as_str();
            if let Some(found) = present.iter().find(|sub| self.satisfies(**sub, *dependency)) {
                let mut copy = self.charts[found.0].clone();
                if !alias.is_empty() {
                    copy.name = Cow::Borrowed(alias);
                }
                self.charts.push(copy);
                resolved.push(ChartId(self.charts.len() - 1));
            }
            if !alias.is_empty() {
                self.dependencies[dependency.0].name = Cow::Borrowed(alias);
            }
        }
        resolved
    }

    fn satisfies(&self, sub: ChartId, dependency: DependencyId) -> bool {
        let dependency = &self.dependencies[dependency.0];
        dependency.name == self.name(sub)
            && in_range(&dependency.declared.version, &self.chart(sub).metadata.version)
    }

    fn apply_tags(&mut self, requirements: &[DependencyId], values: &Map, warnings: &mut Vec<String>) {
        let Ok(tags) = table(values, "tags") else { return };
        for dependency in requirements {
            let dependency = &mut self.dependencies[dependency.0];
            let (mut on, mut off) = (false, false);
            for tag in &dependency.declared.tags {
                match tags.get(tag.as_bytes()) {
                    Some(Value::Bool(true)) => on = true,
                    Some(Value::Bool(false)) => off = true,
                    Some(_) => warnings.push(format!(
                        "Warning: Tag '{tag}' for chart {} returned non-bool value",
                        dependency.name
                    )),
                    None => {}
                }
            }
            dependency.enabled = on || !off;
        }
    }

    /// The first condition that is a boolean decides, regardless of tags.
    fn apply_conditions(
        &mut self,
        requirements: &[DependencyId],
        values: &Map,
        path: &str,
        warnings: &mut Vec<String>,
    ) {
        for dependency in requirements {
            let dependency = &mut self.dependencies[dependency.0];
            let conditions = dependency.declared.condition.trim().split(',').filter(|c| !c.is_empty());
            for condition in conditions {
                match path_value(values, &format!("{path}{condition}")) {
                    Some(Value::Bool(enabled)) => {
                        dependency.enabled = enabled;
                        break;
                    }
                    Some(_) => warnings.push(format!(
                        "Warning: Condition path '{condition}' for chart {} returned non-bool value",
                        dependency.name
                    )),
                    None => {}
                }
            }
        }
    }
}

/// Whether a version is in a range; false if either is invalid.
pub(crate) fn in_range(range: &str, version: &str) -> bool {
    match (Version::parse(version), Constraints::parse(range)) {
        (Ok(version), Ok(range)) => range.check(&version),
        _ => false,
    }
}
