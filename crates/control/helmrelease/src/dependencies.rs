//! Dependencies of a release: `spec.dependsOn`.

use fl_api::Resource as _;
use fl_api::helm::HelmRelease;
use fl_cel::Expression;
use fl_runtime::{AccessDenied, ClientError, Context, Kind, WatchSpec};
use serde_json::Value;

use crate::spec::ReleaseSpec;

/// Why the dependencies of a release do not let it go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DependencyError {
    /// The dependency does not exist, or could not be read.
    #[error("unable to get '{name}' dependency: {error}")]
    NotFound { name: String, error: ClientError },
    #[error("dependency '{0}' is not ready")]
    NotReady(String),
    #[error("dependency '{0}' is not ready according to readyExpr eval")]
    ExpressionIsFalse(String),
    /// The expression cannot be evaluated for this dependency now; it may be later.
    #[error("{0}")]
    Evaluation(String),
    #[error(
        "failed to evaluate dependency {dependency}: failed to parse the CEL expression '{expression}': {error}"
    )]
    Syntax { dependency: String, expression: String, error: String },
    #[error(
        "failed to evaluate dependency {dependency}: CEL expression output type mismatch: expected bool, got {found}"
    )]
    NotBool { dependency: String, found: String },
    /// Forbidden by the multi-tenancy lockdown.
    #[error(transparent)]
    Denied(#[from] AccessDenied),
}

/// Checks `dependsOn`.
pub(crate) async fn check(cx: &Context<HelmRelease>) -> Result<(), DependencyError> {
    let additive = cx.runtime.options().gates.enabled("AdditiveCELDependencyCheck");
    let kind = Kind::of::<HelmRelease>();
    let store = cx.runtime.informers().watch(WatchSpec::full(kind.clone()));
    for reference in cx.object.spec.depends_on.iter().flatten() {
        let own = cx.object.own_namespace();
        let namespace =
            reference.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or(own);
        let name = format!("{namespace}/{}", reference.name);
        let expression = reference.ready_expr.as_deref().filter(|text| !text.is_empty());
        cx.runtime.options().lockdown().check_dependency(
            own,
            HelmRelease::KIND,
            namespace,
            &reference.name,
            expression,
        )?;
        let dependency = match store.get(namespace, &reference.name) {
            Some(live) => live.value(),
            None => {
                let read = cx.cluster().get(&kind, Some(namespace), &reference.name).await;
                read.map_err(|error| DependencyError::NotFound { name: name.clone(), error })?
            }
        };
        if let Some(text) = expression {
            if !holds(cx, text, &dependency, &reference.name, namespace != own)? {
                return Err(DependencyError::ExpressionIsFalse(name));
            }
            if !additive {
                continue;
            }
        }
        if !is_ready(&dependency) {
            return Err(DependencyError::NotReady(name));
        }
    }
    Ok(())
}

/// Evaluates `readyExpr`. An evaluation error may quote the dependency; if that is in another namespace, it may belong to
/// another tenant and is not quoted.
fn holds(
    cx: &Context<HelmRelease>,
    text: &str,
    dependency: &Value,
    name: &str,
    foreign: bool,
) -> Result<bool, DependencyError> {
    let expression =
        Expression::compile(text, &["self", "dep"]).map_err(|error| DependencyError::Syntax {
            dependency: name.to_owned(),
            expression: text.to_owned(),
            error: error.to_string(),
        })?;
    if let Some(other) = expression.never_bool() {
        let (dependency, found) = (name.to_owned(), other.to_string());
        return Err(DependencyError::NotBool { dependency, found });
    }
    let own = serde_json::to_value(&cx.object).unwrap_or_default();
    expression.decide(&[("self", &own), ("dep", dependency)], foreign).map_err(DependencyError::Evaluation)
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
