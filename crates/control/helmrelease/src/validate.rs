//! Checks of the spec that need nothing but the spec.

use fl_api::helm::HelmRelease;
use fl_apply::HealthRuleError;
use fl_runtime::{Context, EventKind, Reconciled as _};

use crate::action::wait::Health;
use crate::spec::ReleaseSpec;

/// Compiles the health check expressions, and reports fields that have no effect.
pub(crate) fn validate(cx: &Context<HelmRelease>) -> Result<Health, HealthRuleError> {
    let health = Health::compile(cx.object.spec.health_check_exprs.as_deref().unwrap_or_default())?;
    if cx.object.rollback().recreate.unwrap_or(false) {
        cx.log.info("warning: the .spec.rollback.recreate field is deprecated and has no effect");
    }
    report_openapi_validation(cx);
    Ok(health)
}

/// `disableOpenAPIValidation` has no effect, as with Helm on API servers that validate fields themselves (Kubernetes 1.25 and
/// later): Helm leaves the validation to the server then, and always asks for it. Reported once per generation.
fn report_openapi_validation(cx: &Context<HelmRelease>) {
    if cx.original.observed_generation() == cx.object.metadata.generation {
        return;
    }
    let fields = [
        ("install", cx.object.install().disable_open_api_validation),
        ("upgrade", cx.object.upgrade().disable_open_api_validation),
    ];
    for (action, _) in fields.into_iter().filter(|(_, disabled)| disabled.unwrap_or(false)) {
        let message = format!(
            ".spec.{action}.disableOpenAPIValidation has no effect: the API server validates the fields of all objects"
        );
        cx.event(EventKind::Warning, "FieldWithoutEffect", &message);
    }
}
