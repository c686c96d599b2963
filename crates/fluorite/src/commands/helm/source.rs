//! Charts that are not on this machine: fetched from repositories and registries that anyone may read.

use anyhow::{Context, bail};
use fl_source::helm::{HelmLimits, fetch_chart};

/// A chart as the flags of `helm template` name it.
pub(super) struct Wanted<'a> {
    pub(super) reference: &'a str,
    pub(super) repository: Option<&'a str>,
    pub(super) version: &'a str,
    pub(super) devel: bool,
}

/// Any version, those in development too.
const DEVELOPMENT: &str = ">0.0.0-0";

impl Wanted<'_> {
    /// The archive; none when the chart is a path of this machine.
    pub(super) fn fetch(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let version = if self.version.is_empty() && self.devel { DEVELOPMENT } else { self.version };
        if let Some(repository) = self.repository {
            return fetch(repository, self.reference, version).map(Some);
        }
        if self.reference.starts_with("oci://") {
            let Some((repository, name)) = self.reference.rsplit_once('/') else {
                bail!("{:?} names no chart", self.reference);
            };
            // A tag at the end is a version, as helm reads it.
            let (name, version) = match name.split_once(':') {
                Some((name, tag)) if version.is_empty() => (name, tag),
                _ => (name, version),
            };
            return fetch(repository, name, version).map(Some);
        }
        if self.reference.starts_with("http://") || self.reference.starts_with("https://") {
            return download(self.reference).map(Some);
        }
        Ok(None)
    }
}

/// The archive of a chart of a repository.
pub(crate) fn fetch(repository: &str, name: &str, version: &str) -> anyhow::Result<Vec<u8>> {
    let limits = HelmLimits { chart: ARCHIVE, ..HelmLimits::default() };
    block_on(async { fetch_chart(repository, name, version, limits).await.map_err(anyhow::Error::msg) })
}

/// Bytes of one archive.
const ARCHIVE: u64 = 100 << 20;

fn download(url: &str) -> anyhow::Result<Vec<u8>> {
    block_on(async {
        let client = fl_http::Client::new(fl_http::Settings::new(fl_http::Owner::engine()))?;
        let response = client.send(fl_http::Request::get(url)?).await?;
        if !response.status().is_success() {
            bail!("cannot fetch {url}: the server answered {}", response.status());
        }
        Ok(response.bytes(ARCHIVE).await?.to_vec())
    })
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start fetching")?.block_on(work)
}
