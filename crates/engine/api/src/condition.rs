//! Condition types and reasons of Flux. Clients compare these strings.

/// Types of conditions.
pub mod types {
    /// The object is ready.
    pub const READY: &str = "Ready";
    /// Reconciliation is in progress. Absent otherwise.
    pub const RECONCILING: &str = "Reconciling";
    /// Reconciliation has stopped until the spec changes. Absent otherwise.
    pub const STALLED: &str = "Stalled";
    /// The applied objects are healthy.
    pub const HEALTHY: &str = "Healthy";
    /// The source could not be fetched.
    pub const FETCH_FAILED: &str = "FetchFailed";
    /// The chart could not be built.
    pub const BUILD_FAILED: &str = "BuildFailed";
    /// The artifact storage failed.
    pub const STORAGE_OPERATION_FAILED: &str = "StorageOperationFailed";
    /// An included source has no artifact.
    pub const INCLUDE_UNAVAILABLE: &str = "IncludeUnavailable";
    /// There is a newer revision than that of the artifact.
    pub const ARTIFACT_OUTDATED: &str = "ArtifactOutdated";
    /// The artifact is stored.
    pub const ARTIFACT_IN_STORAGE: &str = "ArtifactInStorage";
    /// The required signatures were verified.
    pub const SOURCE_VERIFIED: &str = "SourceVerified";
    /// The last release action succeeded.
    pub const RELEASED: &str = "Released";
    /// The chart's tests succeeded.
    pub const TEST_SUCCESS: &str = "TestSuccess";
    /// A failed release was remediated.
    pub const REMEDIATED: &str = "Remediated";
    /// Objects in the cluster differ from the release.
    pub const DRIFTED: &str = "Drifted";
    /// The newest version is installed.
    pub const UP_TO_DATE: &str = "UpToDate";

    /// Negative polarity conditions: present only while true.
    pub const NEGATIVE: [&str; 7] = [
        RECONCILING,
        STALLED,
        FETCH_FAILED,
        BUILD_FAILED,
        STORAGE_OPERATION_FAILED,
        INCLUDE_UNAVAILABLE,
        ARTIFACT_OUTDATED,
    ];
}

/// Condition reasons, by component.
pub mod reasons {
    macro_rules! reasons {
        ($($name:ident $text:literal),* $(,)?) => {
            $(#[doc = concat!("`", $text, "`")] pub const $name: &str = $text;)*
        };
    }

    reasons! {
        SUCCEEDED "Succeeded",
        FAILED "Failed",
        PROGRESSING "Progressing",
        PROGRESSING_WITH_RETRY "ProgressingWithRetry",
        SUSPENDED "Suspended",
        DEPENDENCY_NOT_READY "DependencyNotReady",
        INVALID_PATH "InvalidPath",
        INVALID_URL "InvalidURL",
        INSECURE_CONNECTIONS_DISALLOWED "InsecureConnectionsDisallowed",
        UNSUPPORTED_CONNECTION_TYPE "UnsupportedConnectionType",
        PRUNE_FAILED "PruneFailed",
        ARTIFACT_FAILED "ArtifactFailed",
        BUILD_FAILED "BuildFailed",
        HEALTH_CHECK_FAILED "HealthCheckFailed",
        HEALTH_CHECK_CANCELED "HealthCheckCanceled",
        RECONCILIATION_SUCCEEDED "ReconciliationSucceeded",
        RECONCILIATION_FAILED "ReconciliationFailed",
        RECONCILIATION_DISABLED "ReconciliationDisabled",
        INVALID_CEL_EXPRESSION "InvalidCELExpression",
        FEATURE_GATE_DISABLED "FeatureGateDisabled",
        ACCESS_DENIED "AccessDenied",
    }

    /// Reasons of sources.
    pub mod source {
        reasons! {
            NEW_ARTIFACT "NewArtifact",
            NEW_REVISION "NewRevision",
            NEW_CHART "NewChart",
            INCLUDE_CHANGE "IncludeChange",
            AUTHENTICATION_FAILED "AuthenticationFailed",
            GIT_OPERATION_FAILED "GitOperationFailed",
            GIT_OPERATION_SUCCEEDED "GitOperationSucceeded",
            EMPTY_GIT_REPOSITORY "EmptyGitRepository",
            URL_INVALID "URLInvalid",
            OCI_ARTIFACT_PULL_FAILED "OCIArtifactPullFailed",
            OCI_ARTIFACT_LAYER_OPERATION_FAILED "OCIArtifactLayerOperationFailed",
            BUCKET_OPERATION_FAILED "BucketOperationFailed",
            INDEXATION_FAILED "IndexationFailed",
            READ_OPERATION_FAILED "ReadOperationFailed",
            INVALID_STS_CONFIGURATION "InvalidSTSConfiguration",
            INVALID_PROVIDER_CONFIGURATION "InvalidProviderConfiguration",
            CHART_PULL_ERROR "ChartPullError",
            CHART_PULL_SUCCEEDED "ChartPullSucceeded",
            CHART_PACKAGE_SUCCEEDED "ChartPackageSucceeded",
            INVALID_CHART_REFERENCE "InvalidChartReference",
            METADATA_PATCH_ERROR "MetadataPatchError",
            VALUES_FILES_ERROR "ValuesFilesError",
            DEPENDENCY_BUILD_ERROR "DependencyBuildError",
            CHART_PACKAGE_ERROR "ChartPackageError",
            CHART_VERIFICATION_ERROR "ChartVerificationError",
            DIRECTORY_CREATION_FAILED "DirectoryCreationFailed",
            STAT_OPERATION_FAILED "StatOperationFailed",
            ARCHIVE_OPERATION_FAILED "ArchiveOperationFailed",
            ACQUIRE_LOCK_FAILED "AcquireLockFailed",
            ILLEGAL_PATH "IllegalPath",
            COPY_FAILURE "CopyFailure",
            SYMLINK_UPDATE_FAILED "SymlinkUpdateFailed",
            NOT_FOUND "NotFound",
            NO_ARTIFACT "NoArtifact",
            VERIFICATION_ERROR "VerificationError",
            INVALID_VERIFICATION_MODE "InvalidVerificationMode",
            INVALID_GIT_OBJECT "InvalidGitObject",
            INVALID_TAG_SIGNATURE "InvalidTagSignature",
            INVALID_COMMIT_SIGNATURE "InvalidCommitSignature",
            ARTIFACT_VERIFICATION_FAILED "ArtifactVerificationFailed",
        }
    }

    /// Reasons of Helm releases.
    pub mod helm {
        reasons! {
            INSTALL_SUCCEEDED "InstallSucceeded",
            INSTALL_FAILED "InstallFailed",
            UPGRADE_SUCCEEDED "UpgradeSucceeded",
            UPGRADE_FAILED "UpgradeFailed",
            TEST_SUCCEEDED "TestSucceeded",
            TEST_FAILED "TestFailed",
            AWAITING_TESTS "AwaitingTests",
            ROLLBACK_SUCCEEDED "RollbackSucceeded",
            ROLLBACK_FAILED "RollbackFailed",
            UNINSTALL_SUCCEEDED "UninstallSucceeded",
            UNINSTALL_FAILED "UninstallFailed",
            SOURCE_NOT_READY "SourceNotReady",
            VALUES_ERROR "ValuesError",
            CHART_MUTATE_ERROR "ChartMutateError",
            REST_CLIENT_ERROR "RESTClientError",
            RESOURCE_MANAGER_ERROR "ResourceManagerError",
            FACTORY_ERROR "FactoryError",
            STATE_ERROR "StateError",
            RECONCILE_ERROR "ReconcileError",
            RETRIES_EXCEEDED "RetriesExceeded",
            MISSING_ROLLBACK_TARGET "MissingRollbackTarget",
            DRIFT_DETECTED "DriftDetected",
            INVENTORY_BUILD_FAILED "InventoryBuildFailed",
        }
    }

    /// Reasons of images.
    pub mod image {
        reasons! {
            IMAGE_URL_INVALID "ImageURLInvalid",
            FAILURE "Failure",
            INVALID_SOURCE_CONFIGURATION "InvalidSourceConfiguration",
            INVALID_UPDATE_STRATEGY "InvalidUpdateStrategy",
            INVALID_POLICY_SELECTOR "InvalidPolicySelector",
            REMOVED_TEMPLATE_FIELD "RemovedTemplateField",
            SOURCE_MANAGER_FAILED "SourceManagerFailed",
            UPDATE_FAILED "UpdateFailed",
        }
    }

    /// Reasons of notifications.
    pub mod notification {
        reasons! {
            TOKEN_NOT_FOUND "TokenNotFound",
        }
    }

    /// Reasons of the operator.
    pub mod operator {
        reasons! {
            OUTDATED_VERSION "OutdatedVersion",
            NEW_VERSION_AVAILABLE "NewVersionAvailable",
            INVALID_DEFAULT_VALUES "InvalidDefaultValues",
            INVALID_EXPORTED_INPUTS "InvalidExportedInputs",
            INVALID_SPEC "InvalidSpec",
            SKIPPED_DUE_TO_SCHEDULE "SkippedDueToSchedule",
        }
    }
}
