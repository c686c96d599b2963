//! Test: runs the test hooks of a release.

use fl_helm_storage::Release;

use super::Configuration;
use super::error::ActionError;
use super::hooks::HookRun;
use crate::spec::{ReleaseSpec, Wait};

impl Configuration<'_> {
    /// Runs the tests and returns the tested release.
    pub(crate) async fn test(&mut self) -> Result<Release, ActionError> {
        let options = self.object.test();
        let mut release = self.storage.last().await?;
        let filters = options.filters.unwrap_or_default();
        let names = |exclude: bool| -> Vec<&str> {
            let wanted = filters.iter().filter(|filter| filter.exclude.unwrap_or(false) == exclude);
            wanted.map(|filter| filter.name.as_str()).collect()
        };
        let (included, excluded) = (names(false), names(true));
        let runs =
            |name: &str| !excluded.contains(&name) && (included.is_empty() || included.contains(&name));
        let chosen: Vec<usize> =
            (0..release.hooks.len()).filter(|at| runs(&release.hooks[*at].name)).collect();
        let run = HookRun {
            event: "test",
            wait: Wait::Poller,
            timeout: self.object.timeout_of(options.timeout),
            server_side: release.applied_by_server(),
            only: Some(&chosen),
        };
        let (deferred, result) = self.start_hooks(&mut release, run).await;
        // Helm stores the hooks that were filtered out before the others.
        let (mut first, rest): (Vec<_>, Vec<_>) =
            (0..release.hooks.len()).partition::<Vec<usize>, _>(|at| !chosen.contains(at));
        let order_changed = !first.is_empty() && !rest.is_empty();
        first.extend(rest);
        let mut ordered = release.clone();
        if order_changed {
            ordered.hooks = first.iter().map(|at| release.hooks[*at].clone()).collect();
        }
        let recorded = match &result {
            Ok(()) => self.storage.update(&ordered).await,
            Err(_) => {
                self.record(&ordered).await;
                Ok(())
            }
        };
        if let Err(error) = self.clean_up_hooks(&release, run, deferred).await {
            self.log.note("error deleting test hooks", &[("error", &error)]);
        }
        result?;
        recorded?;
        Ok(ordered)
    }
}
