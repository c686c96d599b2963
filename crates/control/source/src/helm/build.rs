//! The result of building a chart.

use fl_api::condition::reasons;

/// A chart that was built, or that storage has already.
#[derive(Clone, Debug)]
pub(super) struct Build {
    pub(super) name: String,
    pub(super) version: String,
    /// `None`: the artifact in storage is this chart.
    pub(super) archive: Option<Vec<u8>>,
    pub(super) values_files: Vec<String>,
    pub(super) resolved_dependencies: usize,
    pub(super) packaged: bool,
    pub(super) verified: bool,
}

impl Build {
    /// `pulled 'app' chart with version '1.0.0'`
    pub(super) fn summary(&self) -> String {
        let action = if self.packaged { "packaged" } else { "pulled" };
        let mut text = format!("{action} '{}' chart with version '{}'", self.name, self.version);
        if !self.values_files.is_empty() {
            text.push_str(&format!(" and merged values files [{}]", self.values_files.join(" ")));
        }
        text
    }

    pub(super) fn reason(&self) -> &'static str {
        if self.packaged {
            reasons::source::CHART_PACKAGE_SUCCEEDED
        } else {
            reasons::source::CHART_PULL_SUCCEEDED
        }
    }
}

/// Why a chart could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Reference,
    Pull,
    Metadata,
    Values,
    Dependencies,
    Package,
    Verification,
}

impl Reason {
    pub(super) fn name(self) -> &'static str {
        match self {
            Reason::Reference => reasons::source::INVALID_CHART_REFERENCE,
            Reason::Pull => reasons::source::CHART_PULL_ERROR,
            Reason::Metadata => reasons::source::METADATA_PATCH_ERROR,
            Reason::Values => reasons::source::VALUES_FILES_ERROR,
            Reason::Dependencies => reasons::source::DEPENDENCY_BUILD_ERROR,
            Reason::Package => reasons::source::CHART_PACKAGE_ERROR,
            Reason::Verification => reasons::source::CHART_VERIFICATION_ERROR,
        }
    }

    fn summary(self) -> &'static str {
        match self {
            Reason::Reference => "invalid chart reference",
            Reason::Pull => "chart pull error",
            Reason::Metadata => "chart metadata patch error",
            Reason::Values => "values files merge error",
            Reason::Dependencies => "dependency build error",
            Reason::Package => "chart package error",
            Reason::Verification => "chart verification error",
        }
    }

    /// Whether only a change of the object or its source can resolve it.
    pub(super) fn is_final(self) -> bool {
        matches!(self, Reason::Reference | Reason::Metadata | Reason::Values)
    }

    /// Whether it is reported by `FetchFailed` rather than `BuildFailed`.
    pub(super) fn is_fetching(self) -> bool {
        matches!(self, Reason::Reference | Reason::Pull)
    }
}

/// A failed build, or an error before it.
#[derive(Clone, Debug)]
pub(super) enum BuildError {
    Failed {
        reason: Reason,
        problem: String,
    },
    /// Before the build: the reason of the event, the message, and whether only a change of the spec can resolve it.
    Before {
        reason: String,
        message: String,
        is_final: bool,
    },
}

impl BuildError {
    pub(super) fn new(reason: Reason, problem: impl Into<String>) -> Self {
        BuildError::Failed { reason, problem: problem.into() }
    }

    pub(super) fn before(reason: &str, message: impl Into<String>) -> Self {
        BuildError::Before { reason: reason.to_owned(), message: message.into(), is_final: false }
    }

    pub(super) fn before_final(reason: &str, message: impl Into<String>) -> Self {
        BuildError::Before { reason: reason.to_owned(), message: message.into(), is_final: true }
    }

    pub(super) fn message(&self) -> String {
        match self {
            BuildError::Failed { reason, problem } => format!("{}: {problem}", reason.summary()),
            BuildError::Before { message, .. } => message.clone(),
        }
    }
}

/// Options of a build.
#[derive(Clone, Debug, Default)]
pub(super) struct BuildOptions {
    pub(super) values_files: Vec<String>,
    pub(super) ignore_missing: bool,
    /// Build metadata for the version.
    pub(super) version_metadata: String,
    /// Name and version of the chart in storage; `None` when it must be built again.
    pub(super) cached: Option<(String, String)>,
    /// The values files that chart was built with, where they are recorded.
    pub(super) cached_values_files: Option<Vec<String>>,
}

impl BuildOptions {
    /// The values files to merge; naming only the chart's own is naming none.
    pub(super) fn merged_files(&self) -> &[String] {
        match self.values_files.as_slice() {
            [only] if crate::tree::clean(only) == "values.yaml" => &[],
            files => files,
        }
    }

    pub(super) fn needs_packaging(&self) -> bool {
        !self.merged_files().is_empty() || !self.version_metadata.is_empty()
    }

    /// The version with the build metadata on it.
    pub(super) fn version(&self, version: &str) -> Result<String, BuildError> {
        if self.version_metadata.is_empty() {
            return Ok(version.to_owned());
        }
        let failed = |problem: String| BuildError::new(Reason::Metadata, problem);
        let parsed = fl_semver::Version::parse(version)
            .map_err(|e| failed(format!("failed to parse version from chart metadata as SemVer: {e}")))?;
        let patched = parsed
            .with_metadata(&self.version_metadata)
            .map_err(|e| failed(format!("failed to set SemVer metadata on chart version: {e}")))?;
        Ok(patched.to_string())
    }

    /// The chart in storage, if it is the one that would be built.
    pub(super) fn cached_build(&self, name: &str, version: &str, packaged: bool) -> Option<Build> {
        self.cached.as_ref().filter(|(n, v)| n == name && v == version)?;
        let files = self.cached_values_files.clone().unwrap_or_else(|| self.merged_files().to_vec());
        Some(Build {
            name: name.to_owned(),
            version: version.to_owned(),
            archive: None,
            values_files: files,
            resolved_dependencies: 0,
            packaged,
            verified: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_and_errors_match_flux() {
        let build = Build {
            name: "app".into(),
            version: "1.0.0+2".into(),
            archive: None,
            values_files: vec!["a.yaml".into(), "b.yaml".into()],
            resolved_dependencies: 0,
            packaged: true,
            verified: false,
        };
        assert_eq!(
            build.summary(),
            "packaged 'app' chart with version '1.0.0+2' and merged values files [a.yaml b.yaml]"
        );
        let error = BuildError::new(Reason::Reference, "no chart name found");
        assert_eq!(error.message(), "invalid chart reference: no chart name found");
    }

    #[test]
    fn metadata_is_appended_to_versions() {
        let options = |metadata: &str| BuildOptions {
            version_metadata: metadata.to_owned(),
            ..BuildOptions::default()
        };
        assert_eq!(options("").version("1.0").unwrap(), "1.0");
        assert_eq!(options("3").version("1.0.0").unwrap(), "1.0.0+3");
        assert_eq!(options("abc.3").version("1.0.0+old").unwrap(), "1.0.0+abc.3");
        assert!(options("3").version("x").is_err());
    }
}
