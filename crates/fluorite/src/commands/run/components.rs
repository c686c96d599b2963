//! The components of the engine, one row each.

use std::sync::Arc;

use fl_artifact_store::Store;
use fl_http::AddressPolicy;
use fl_kustomization::EngineKeyServices;
use fl_runtime::{ArtifactFetcher, Resolver, Runtime};
use fl_source::bucket::{AwsKeys, Buckets, NetworkBucket};
use fl_source::git::{GitClient, GitRepositories};
use fl_source::helm::{HelmCharts, HelmLimits, HelmRepositories};
use fl_source::oci::{NetworkOci, OciRepositories};

use super::Args;

/// What the controllers of a component need.
pub(in crate::commands) struct Setup<'a> {
    pub(in crate::commands) runtime: Runtime,
    /// The artifact store of this process.
    pub(in crate::commands) store: Store,
    /// Resolves references to sources.
    pub(in crate::commands) resolver: Resolver,
    /// Fetches artifacts of this process and of others.
    pub(in crate::commands) artifacts: ArtifactFetcher,
    /// Client for Git repositories.
    pub(in crate::commands) git: Arc<dyn GitClient>,
    /// Where remote bases of kustomizations may be fetched from.
    pub(in crate::commands) remote_bases: AddressPolicy,
    pub(in crate::commands) args: &'a Args,
}

/// A part of the engine that can be run alone.
pub(in crate::commands) struct Component {
    /// As in `--components`.
    pub(in crate::commands) name: &'static str,
    /// The controller of Flux that it replaces; names the lease.
    pub(in crate::commands) controller: &'static str,
    /// Adds its controllers to the runtime.
    pub(in crate::commands) add: fn(&Setup<'_>) -> anyhow::Result<()>,
}

/// The components of this build.
pub(in crate::commands) const COMPONENTS: &[Component] = &[
    Component { name: "source", controller: "source-controller", add: source },
    Component { name: "kustomize", controller: "kustomize-controller", add: kustomize },
    Component { name: "helm", controller: "helm-controller", add: helm },
];

/// Components of Flux and planned ones of Fluorite that are not part of this build; logged at start.
pub(super) const ABSENT: &[&str] = &[
    "notification",
    "image-reflector",
    "image-automation",
    "source-watcher",
    "flux-operator",
    "open-flux",
    "open-mcp",
    "flagger",
];

/// How many of them are Flux's, which are logged without `--components`.
const FLUX_ABSENT: usize = 4;

/// Resolves component names; the second list has the names of components that this build does not contain.
///
/// # Errors
/// An unknown name, or no component to run.
pub(super) fn choose(names: &[String]) -> anyhow::Result<(Vec<&'static Component>, Vec<&'static str>)> {
    if names.is_empty() {
        return Ok((COMPONENTS.iter().collect(), ABSENT[..FLUX_ABSENT].to_vec()));
    }
    // Installations use the names of Flux's controllers.
    let short = |name: &str| name.strip_suffix("-controller").unwrap_or(name).to_owned();
    let wanted: Vec<String> = names.iter().map(|n| short(n.trim())).collect();
    let known = |name: &&String| {
        COMPONENTS.iter().any(|c| c.name == **name) || ABSENT.iter().any(|absent| absent == *name)
    };
    if let Some(unknown) = wanted.iter().find(|name| !known(name)) {
        let names: Vec<&str> = COMPONENTS.iter().map(|c| c.name).collect();
        anyhow::bail!("`{unknown}` is not a component; known are {}", names.join(", "));
    }
    let chosen: Vec<_> = COMPONENTS.iter().filter(|c| wanted.iter().any(|w| w == c.name)).collect();
    let missing: Vec<_> = ABSENT.iter().copied().filter(|a| wanted.iter().any(|w| w == a)).collect();
    if chosen.is_empty() {
        anyhow::bail!("the component `{}` is not part of this build", missing.join("`, `"));
    }
    Ok((chosen, missing))
}

/// Reads an environment variable: the operator configures the engine's own credentials there.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn source(setup: &Setup<'_>) -> anyhow::Result<()> {
    let concurrent = setup.args.concurrent.unwrap_or(2);
    setup.runtime.add(GitRepositories::new(setup.store.clone(), setup.git.clone()), concurrent);
    setup.runtime.add(OciRepositories::new(setup.store.clone(), Arc::new(NetworkOci)), concurrent);
    let buckets = Buckets::new(setup.store.clone(), Arc::new(NetworkBucket))
        .with_engine_keys(AwsKeys::from_variables(variable));
    setup.runtime.add(buckets, concurrent);
    let limits = HelmLimits {
        index: setup.args.helm_index_max_size,
        chart: setup.args.helm_chart_max_size,
        chart_file: setup.args.helm_chart_file_max_size,
    };
    setup.runtime.add(HelmRepositories::new(setup.store.clone(), limits), concurrent);
    let charts =
        HelmCharts::new(setup.store.clone(), setup.resolver.clone(), setup.artifacts.clone(), limits);
    setup.runtime.add(charts, concurrent);
    Ok(())
}

fn kustomize(setup: &Setup<'_>) -> anyhow::Result<()> {
    let args = setup.args;
    let options = fl_kustomization::Options {
        concurrent: args.concurrent.unwrap_or(4),
        concurrent_ssa: args.concurrent_ssa,
        no_remote_bases: args.no_remote_bases,
        remote_addresses: setup.remote_bases.clone(),
        custom_apply_stage_kinds: fl_kustomization::Options::stage_kinds(&args.custom_apply_stage_kinds),
        override_managers: args.override_manager.clone(),
        sops_age_secret: args.sops_age_secret.clone(),
        key_services: EngineKeyServices::from_variables(variable),
        default_kubeconfig_service_account: args.default_kubeconfig_service_account.clone(),
        insecure_kubeconfig_tls: args.insecure_kubeconfig_tls,
        insecure_kubeconfig_exec: args.insecure_kubeconfig_exec,
        full_pass: args.full_pass_interval.into_std()?,
        deletion_budget: args.deletion_budget,
        ..fl_kustomization::Options::default()
    };
    fl_kustomization::add(&setup.runtime, setup.artifacts.clone(), options);
    Ok(())
}

fn helm(setup: &Setup<'_>) -> anyhow::Result<()> {
    let args = setup.args;
    let settings = fl_helmrelease::Settings {
        override_managers: args.override_manager.clone(),
        kube_config: fl_runtime::RemoteOptions {
            allow_exec: args.insecure_kubeconfig_exec,
            allow_insecure_tls: args.insecure_kubeconfig_tls,
        },
        default_kube_config_account: args.default_kubeconfig_service_account.clone(),
    };
    let (runtime, resolver) = (&setup.runtime, setup.resolver.clone());
    let artifacts = setup.artifacts.clone().with_timeout(args.http_timeout.into_std()?)?;
    let controller = fl_helmrelease::HelmReleaseController::new(runtime, resolver, artifacts, settings);
    runtime.add(controller, args.concurrent.unwrap_or(4));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> anyhow::Result<(Vec<&'static str>, Vec<&'static str>)> {
        let list: Vec<String> = list.iter().map(|n| (*n).to_owned()).collect();
        choose(&list).map(|(chosen, missing)| (chosen.iter().map(|c| c.name).collect(), missing))
    }

    #[test]
    fn components_are_found_by_both_names() {
        assert_eq!(names(&["helm", "source-controller"]).unwrap(), (vec!["source", "helm"], vec![]));
        assert_eq!(
            names(&["kustomize-controller", "notification-controller"]).unwrap(),
            (vec!["kustomize"], vec!["notification"])
        );
        assert_eq!(names(&[]).unwrap().0.len(), COMPONENTS.len());
    }

    #[test]
    fn unavailable_and_unknown_components_are_rejected() {
        assert_eq!(
            names(&["notification"]).unwrap_err().to_string(),
            "the component `notification` is not part of this build"
        );
        assert_eq!(
            names(&["sauce"]).unwrap_err().to_string(),
            "`sauce` is not a component; known are source, kustomize, helm"
        );
    }

    #[test]
    fn every_component_of_an_installation_is_known() {
        for component in fl_install::Component::ALL {
            let name = component.name();
            let short = name.strip_suffix("-controller").unwrap_or(name);
            let is_here = COMPONENTS.iter().any(|c| c.name == short);
            assert!(is_here || ABSENT.contains(&short), "{name}");
            assert_eq!(is_here, component.is_available(), "`install` runs {name}");
        }
    }
}
