//! Signatures of OCI artifacts without keys: which conditions they set, and that nothing is produced without them (threat E08).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_oci::Signatures;
use fl_sim::{TestCluster, condition};
use fl_verify::cosign::SimpleSignature;
use serde_json::{Value, json};

const REPOSITORY: &str = "oci.example/app";

/// A small Sigstore of our own: trusted roots and signatures made with it.
fn sigstore() -> Value {
    serde_json::from_str(include_str!("../../../engine/verify/tests/keyless/world.json")).expect("recorded")
}

/// The signatures of a case, in the form in which it has them.
fn signatures(sigstore: &Value, name: &str) -> Signatures {
    let cases = sigstore["cases"].as_array().expect("cases");
    let case = cases.iter().find(|c| c["name"] == name).expect("the case is recorded");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let simple = |value: &Value| SimpleSignature {
        payload: STANDARD.decode(text(&value["payload"])).expect("base64"),
        signature: text(&value["signature"]),
        certificate: value["certificate"].as_str().map(str::to_owned),
        bundle: value["bundle"].as_str().map(str::to_owned),
    };
    Signatures {
        digest: text(&case["digest"]),
        bundles: case
            .get("bundle")
            .filter(|b| !b.is_null())
            .map(|b| b.to_string().into_bytes())
            .into_iter()
            .collect(),
        simple: case.get("simple").filter(|s| !s.is_null()).map(simple).into_iter().collect(),
    }
}

fn spec(subject: &str) -> Value {
    json!({"url": format!("oci://{REPOSITORY}"), "interval": "1h", "ref": {"tag": "v1"},
        "verify": {"provider": "cosign", "trustedRootSecretRef": {"name": "root"},
            "matchOIDCIdentity": [{"issuer": "^https://issuer\\.example$", "subject": subject}]}})
}

/// A test cluster with the trusted root in a Secret and one image.
async fn test_cluster(seed: u64, sigstore: &Value) -> TestCluster {
    let test_cluster = TestCluster::start(seed).await;
    let root = sigstore["roots"]["good"].to_string();
    test_cluster
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "root"},
            "stringData": {"trusted_root.json": root}}))
        .await;
    test_cluster.oci.push(REPOSITORY, "v1", [("a.yaml", "a: 1\n")]);
    test_cluster
}

fn verified(object: &Value) -> (String, String, String) {
    let condition = condition(object, "SourceVerified");
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

/// Both forms of a good signature: the artifact is stored, and the condition says of which revision.
#[tokio::test(start_paused = true)]
async fn a_signature_of_the_right_identity_is_accepted() {
    let sigstore = sigstore();
    for (seed, case) in [(1, "good"), (2, "bundle, entry 3 of 7")] {
        let test_cluster = test_cluster(seed, &sigstore).await;
        let signed = signatures(&sigstore, case);
        let revision = format!("v1@{}", signed.digest);
        test_cluster.oci.sign(REPOSITORY, "v1", signed);
        test_cluster.source("OCIRepository", "app", spec("^ann@example\\.com$")).await;
        let ready = test_cluster.ready("OCIRepository", "app").await;
        let message = format!("verified signature of revision {revision}");
        assert_eq!(verified(&ready), ("True".into(), "Succeeded".into(), message), "{case}");
        assert_eq!(ready["status"]["artifact"]["revision"], revision);
        // Once is enough for a revision: another pass asks the registry for nothing but the digest.
        let before = test_cluster.oci.requests();
        test_cluster.request("OCIRepository", "app", "t1").await;
        let again = test_cluster
            .until("OCIRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == "t1")
            .await;
        assert_eq!(test_cluster.oci.requests() - before, 1);
        assert_eq!(verified(&again).0, "True");
        // Nobody asks for signatures any more.
        let mut plain = spec("");
        plain.as_object_mut().expect("a spec").remove("verify");
        test_cluster.source("OCIRepository", "app", plain).await;
        let after = test_cluster.ready("OCIRepository", "app").await;
        assert!(condition(&after, "SourceVerified").is_null());
    }
}

/// E08: other identities, expired certificates, missing proofs and missing signatures: no artifact, and a condition that says why.
#[tokio::test(start_paused = true)]
async fn invalid_signatures_are_reported_and_produce_no_artifact() {
    let sigstore = sigstore();
    let words = "failed to verify the signature using provider 'cosign keyless': ";
    let ann = "^ann@example\\.com$";
    for (seed, case, subject, why) in [
        (3, "good", "^bob@", "no matching signatures: none of the expected identities matched"),
        (4, "expired", ann, "no matching signatures: "),
        (5, "no log", ann, "no entry in a transparency log"),
        (6, "unknown authority", ann, "no chain leads to one"),
        (7, "bundle, wrong identity", "bob", "none of the expected identities matched"),
        (8, "", ann, "no signatures found"),
    ] {
        let test_cluster = test_cluster(seed, &sigstore).await;
        if !case.is_empty() {
            test_cluster.oci.sign(REPOSITORY, "v1", signatures(&sigstore, case));
        }
        test_cluster.source("OCIRepository", "app", spec(subject)).await;
        let failed = test_cluster.failed("OCIRepository", "app").await;
        let (status, reason, message) = verified(&failed);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "VerificationError"), "{case}: {message}");
        assert!(message.starts_with(words) && message.contains(why), "{case}: {message}");
        let ready = condition(&failed, "Ready");
        assert_eq!(ready["reason"], "VerificationError", "{case}");
        assert_eq!(ready["message"], message.as_str(), "{case}");
        assert!(failed["status"]["artifact"].is_null(), "{case}");
        assert!(
            test_cluster.events().await.iter().any(|e| *e == format!("VerificationError: {message}")),
            "{case}"
        );
    }
}

/// A new image without a signature does not replace the verified one, which stays served.
#[tokio::test(start_paused = true)]
async fn an_unsigned_successor_is_not_taken() {
    let sigstore = sigstore();
    let test_cluster = test_cluster(9, &sigstore).await;
    test_cluster.oci.sign(REPOSITORY, "v1", signatures(&sigstore, "good"));
    test_cluster.source("OCIRepository", "app", spec("^ann@")).await;
    let before = test_cluster.ready("OCIRepository", "app").await["status"]["artifact"].clone();
    test_cluster.oci.push(REPOSITORY, "v1", [("a.yaml", "a: evil\n")]);
    test_cluster.request("OCIRepository", "app", "t1").await;
    let failed = test_cluster.failed("OCIRepository", "app").await;
    assert_eq!(verified(&failed).0, "False");
    assert_eq!(failed["status"]["artifact"], before);
    // Without a root nobody can be trusted.
    test_cluster
        .user
        .delete(&fl_runtime::Kind::secret(), Some("default"), "root", &Default::default())
        .await
        .expect("deleted");
    test_cluster.request("OCIRepository", "app", "t2").await;
    let words = "failed to read trusted root from secret 'default/root'";
    let failed = test_cluster
        .until("OCIRepository", "app", |o| {
            condition(o, "SourceVerified")["message"].as_str().is_some_and(|m| m.contains(words))
        })
        .await;
    assert_eq!(failed["status"]["artifact"], before);
}
