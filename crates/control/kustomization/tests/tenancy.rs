//! F06: what a tenant's Kustomization says of objects that its account may not read: nothing.

mod lab;

use fl_runtime::{Kind, Write};
use fl_sim::{NAMESPACE, World, condition};
use lab::{map, run, world, world_with};
use serde_json::{Value, json};

const CANARY: &str = "c4n4ry-of-another-tenant";

fn message(object: &Value, kind: &str) -> String {
    condition(object, kind)["message"].as_str().unwrap_or_default().to_owned()
}

/// An account that may do everything in its own namespace and nothing elsewhere, and another tenant beside it.
async fn tenants(world: &World) {
    let rbac = |kind: &str, plural: &str| Kind::new("rbac.authorization.k8s.io", "v1", kind, plural, true);
    let write = Write::by("admin");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    world.user.create(&rbac("Role", "roles"), Some(NAMESPACE), &role, &write).await.expect("a role");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": NAMESPACE}]});
    world
        .user
        .create(&rbac("RoleBinding", "rolebindings"), Some(NAMESPACE), &binding, &write)
        .await
        .expect("a binding");
    world.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant"}})).await;
    world.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).await;
    // A broken Deployment and a Secret of the other tenant.
    let deployments = Kind::new("apps", "v1", "Deployment", "deployments", true);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "theirs", "namespace": "other"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": CANARY}]}}}});
    world.user.create(&deployments, Some("other"), &deployment, &write).await.expect("a deployment");
    let status = json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Progressing", "status": "False",
        "reason": "ProgressDeadlineExceeded", "message": CANARY}]}});
    let to_status = Write::by("controller").to("status");
    let patch = fl_runtime::Patch::Merge;
    world
        .user
        .patch(&deployments, Some("other"), "theirs", patch, &status, &to_status)
        .await
        .expect("a status");
    world
        .apply(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "other"},
            "stringData": {"password": CANARY}}),
        )
        .await;
}

fn spec(more: Value) -> Value {
    let mut spec = json!({"interval": "10m", "retryInterval": "10m", "prune": true, "timeout": "20s", "path": "own",
        "serviceAccountName": "tenant", "sourceRef": {"kind": "GitRepository", "name": "app"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

/// All that a Kustomization and its events say, with one name taken out.
async fn said(world: &World, name: &str, without: &str) -> String {
    let failed = world.failed("Kustomization", name).await;
    let events = world.events().await;
    let ours = events.iter().filter(|e| e.contains(without)).cloned().collect::<Vec<_>>().join("\n");
    let all = format!("{}\n{}\n{ours}", message(&failed, "Ready"), message(&failed, "Healthy"));
    assert!(!failed.to_string().contains(CANARY) && !all.contains(CANARY), "{name}: {all}");
    all.replace(without, "X").replace(name, "N")
}

/// Times are no information here: all of these run into the same limits.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(' ') {
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(if number { "T" } else { word });
        out.push(' ');
    }
    out
}

/// A health check of something the account may not read says the same whether it is there, broken, or not there.
#[test]
fn health_checks_are_no_oracle() {
    run(async {
        let world = world(51, &[("own/a.yaml", map("a", "1"))]).await;
        tenants(&world).await;
        let mut all = Vec::new();
        for (name, object) in [("first", "theirs"), ("second", "absent")] {
            let check = json!({"healthChecks": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": object, "namespace": "other"}]});
            world.source("Kustomization", name, spec(check)).await;
            all.push(timeless(&said(&world, name, object).await));
            assert!(world.get("ConfigMap", "a").await.is_some(), "its own objects are applied");
        }
        assert_eq!(all[0], all[1]);
    });
}

/// An object of another tenant among the files: the refusal is that of the API server, and says the same in either case.
#[test]
fn applies_are_no_oracle() {
    run(async {
        let secret = |name: &str| {
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n  namespace: other\nstringData: {{password: guess}}\n"
            )
        };
        let files = [("theirs/s.yaml", secret("theirs")), ("absent/s.yaml", secret("absent"))];
        let world = world(52, &files).await;
        tenants(&world).await;
        let mut all = Vec::new();
        for (name, path) in [("first", "theirs"), ("second", "absent")] {
            world.source("Kustomization", name, spec(json!({"path": path}))).await;
            let text = said(&world, name, path).await;
            assert!(text.contains("forbidden"), "{text}");
            all.push(timeless(&text));
        }
        assert_eq!(all[0], all[1]);
        let kind = Kind::secret();
        let theirs = world.user.get(&kind, Some("other"), "theirs").await.expect("still there");
        assert!(theirs["metadata"]["labels"].is_null(), "{theirs}");
        assert!(world.user.get(&kind, Some("other"), "absent").await.is_err());
    });
}

/// A dependency tells whether it is ready, as the API promises, and nothing of what is in it.
#[test]
fn dependencies_tell_ready_or_not_and_nothing_else() {
    run(async {
        let world = world(53, &[("own/a.yaml", map("a", "1"))]).await;
        tenants(&world).await;
        let kind = Kind::of::<fl_api::kustomize::Kustomization>();
        let theirs = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "theirs", "namespace": "other"}, "spec": {"interval": "1h", "prune": true, "path": CANARY,
                "suspend": true, "sourceRef": {"kind": "GitRepository", "name": "app"}}});
        world.user.create(&kind, Some("other"), &theirs, &Write::by("admin")).await.expect("theirs");
        for (name, expression) in [
            ("plain", ""),
            ("convert", "int(dep.spec.path) == 1"),
            ("missing", "dep.spec[dep.spec.path] == 'x'"),
            ("types", "dep.spec.path + 1 == 2"),
            ("not-bool", "dep.spec.path"),
            ("matches", "'x'.matches(dep.spec.path + '(')"),
            ("time", "timestamp(dep.spec.path) == timestamp(dep.spec.path)"),
            ("duration", "duration(dep.spec.path) == duration('1s')"),
            ("quantity", "quantity(dep.spec.path).isInteger()"),
            ("url", "url(dep.spec.path + ' :').getHost() == ''"),
        ] {
            let mut on = json!({"name": "theirs", "namespace": "other"});
            if !expression.is_empty() {
                on["readyExpr"] = expression.into();
            }
            world.source("Kustomization", name, spec(json!({"dependsOn": [on]}))).await;
            said(&world, name, name).await;
        }
        let all = world.events().await.join("\n");
        assert!(!all.contains(CANARY), "{all}");
    });
}

/// Under `--no-cross-namespace-refs` an expression about an object of another namespace is refused without a look at that object: its answer
/// would give away one bit of it per try. Waiting for it to be ready stays possible, as in Flux.
#[test]
fn expressions_about_other_namespaces_are_refused_under_lock_down() {
    run(async {
        let options = fl_runtime::Options { no_cross_namespace_refs: true, ..Default::default() };
        let files = [("own/a.yaml", map("a", "1"))];
        let world = world_with(54, &files, fl_kustomization::Options::default(), options).await;
        tenants(&world).await;
        let kind = Kind::of::<fl_api::kustomize::Kustomization>();
        let theirs = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "theirs", "namespace": "other"}, "spec": {"interval": "1h", "prune": true, "path": CANARY,
                "suspend": true, "sourceRef": {"kind": "GitRepository", "name": "app"}}});
        world.user.create(&kind, Some("other"), &theirs, &Write::by("admin")).await.expect("theirs");
        let guess = |first: char| format!("dep.spec.path.startsWith('{first}')");
        let mut said = Vec::new();
        for (name, on) in [
            ("right", json!({"name": "theirs", "namespace": "other", "readyExpr": guess('c')})),
            ("wrong", json!({"name": "theirs", "namespace": "other", "readyExpr": guess('x')})),
        ] {
            world.source("Kustomization", name, spec(json!({"dependsOn": [on]}))).await;
            let failed = world.failed("Kustomization", name).await;
            assert_eq!(condition(&failed, "Ready")["reason"], "AccessDenied", "{name}");
            assert_eq!(condition(&failed, "Stalled")["status"], "True", "{name}");
            said.push(message(&failed, "Ready"));
        }
        let want = "can't access 'Kustomization/other/theirs', cross-namespace references have been blocked";
        assert_eq!(said, [want, want]);
        let absent = json!({"name": "absent", "namespace": "other", "readyExpr": "true"});
        world.source("Kustomization", "absent", spec(json!({"dependsOn": [absent]}))).await;
        let failed = world.failed("Kustomization", "absent").await;
        assert_eq!(message(&failed, "Ready"), want.replace("theirs", "absent"));
        let own = json!({"name": "wrong", "readyExpr": "dep.metadata.name == 'wrong'"});
        world.source("Kustomization", "own", spec(json!({"dependsOn": [own]}))).await;
        world.ready("Kustomization", "own").await;
        let plain = json!({"name": "theirs", "namespace": "other"});
        world.source("Kustomization", "plain", spec(json!({"dependsOn": [plain]}))).await;
        let failed = world.failed("Kustomization", "plain").await;
        assert_eq!(condition(&failed, "Ready")["reason"], "DependencyNotReady");
    });
}
