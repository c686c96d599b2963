//! What must be ready before a release is made.

use fl_api::Resource as _;
use fl_api::helm::HelmRelease;
use fl_cel::Expression;
use fl_runtime::{Kind, Pass, WatchSpec};
use serde_json::Value;

use crate::spec::Asked;

/// Why a release waits.
#[derive(Debug)]
pub(crate) enum Waits {
    /// For something that may come.
    NotReady(String),
    /// For ever: an expression is wrong.
    Never(String),
    /// For ever: lock-down forbids it.
    Denied(String),
}

/// Checks `dependsOn`.
pub(crate) async fn check(pass: &Pass<HelmRelease>) -> Result<(), Waits> {
    let additive = pass.runtime.options().gates.enabled("AdditiveCELDependencyCheck");
    let kind = Kind::of::<HelmRelease>();
    let store = pass.runtime.hub().watch(WatchSpec::full(kind.clone()));
    for reference in pass.object.spec.depends_on.iter().flatten() {
        let own = pass.object.own_namespace();
        let namespace =
            reference.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(own);
        let name = format!("{namespace}/{}", reference.name);
        let expression = reference.ready_expr.as_deref().filter(|text| !text.is_empty());
        pass.runtime
            .options()
            .lockdown()
            .check_dependency(own, HelmRelease::KIND, namespace, &reference.name, expression)
            .map_err(|denied| Waits::Denied(denied.to_string()))?;
        let dependency = match store.get(namespace, &reference.name) {
            Some(live) => live.value(),
            None => pass
                .cluster()
                .get(&kind, Some(namespace), &reference.name)
                .await
                .map_err(|error| Waits::NotReady(format!("unable to get '{name}' dependency: {error}")))?,
        };
        if let Some(text) = expression {
            if !holds(pass, text, &dependency, &reference.name, namespace != own)? {
                return Err(Waits::NotReady(format!(
                    "dependency '{name}' is not ready according to readyExpr eval"
                )));
            }
            if !additive {
                continue;
            }
        }
        if !is_ready(&dependency) {
            return Err(Waits::NotReady(format!("dependency '{name}' is not ready")));
        }
    }
    Ok(())
}

/// The reason of a failure may quote the other object; one in another namespace is another tenant's, and is not quoted.
fn holds(
    pass: &Pass<HelmRelease>,
    text: &str,
    dependency: &Value,
    name: &str,
    foreign: bool,
) -> Result<bool, Waits> {
    let expression = Expression::compile(text, &["self", "dep"]).map_err(|error| {
        Waits::Never(format!(
            "failed to evaluate dependency {name}: failed to parse the CEL expression '{text}': {error}"
        ))
    })?;
    if let Some(other) = expression.never_bool() {
        return Err(Waits::Never(format!(
            "failed to evaluate dependency {name}: CEL expression output type mismatch: expected bool, got {other}"
        )));
    }
    let own = serde_json::to_value(&pass.object).unwrap_or_default();
    expression.decide(&[("self", &own), ("dep", dependency)], foreign).map_err(Waits::NotReady)
}

fn is_ready(dependency: &Value) -> bool {
    let status = &dependency["status"];
    let ready = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && status["observedGeneration"] == dependency["metadata"]["generation"]
}
