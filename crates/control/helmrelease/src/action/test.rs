//! The tests of a release: hooks that say whether it works.

use fl_release::Release;

use super::Action;
use super::error::ActionError;
use super::hooks::HookRun;
use crate::spec::{Asked, Wait};

impl Action<'_> {
    /// Runs the tests and answers with the release as tested.
    pub(crate) async fn test(&mut self) -> Result<Release, ActionError> {
        let options = self.object.test();
        let mut release = self.records.last().await?;
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
        let (aftermath, result) = self.start_hooks(&mut release, run).await;
        // Helm writes the hooks that were left out in front of the others.
        let (mut first, rest): (Vec<_>, Vec<_>) =
            (0..release.hooks.len()).partition::<Vec<usize>, _>(|at| !chosen.contains(at));
        let order_changed = !first.is_empty() && !rest.is_empty();
        first.extend(rest);
        let mut ordered = release.clone();
        if order_changed {
            ordered.hooks = first.iter().map(|at| release.hooks[*at].clone()).collect();
        }
        let recorded = match &result {
            Ok(()) => self.records.update(&ordered).await,
            Err(_) => {
                self.record(&ordered).await;
                Ok(())
            }
        };
        if let Err(error) = self.clean_up_hooks(&release, run, aftermath).await {
            self.log.note("error deleting test hooks", &[("error", &error)]);
        }
        result?;
        recorded?;
        Ok(ordered)
    }
}
