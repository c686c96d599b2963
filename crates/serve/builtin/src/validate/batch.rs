//! Jobs and cron jobs.

use serde_json::Value;

use super::pod;
use crate::cron::Schedule;
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{label_selector, print_selector, qualified_name, selects, to_selector};

pub(crate) fn job(errors: &mut Errors, object: &Value) {
    generated_labels(errors, object);
    generated_selector(errors, object);
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    job_spec(errors, &path, spec);
    job_selector(errors, &path, spec);
}

fn job_selector(errors: &mut Errors, path: &Path, spec: &Value) {
    if spec["selector"].is_null() {
        errors.required(&path.child("selector"), "");
    } else {
        label_selector(errors, &path.child("selector"), &spec["selector"]);
    }
    if let Ok(selector) = to_selector(&spec["selector"]) {
        let labels = &spec["template"]["metadata"]["labels"];
        if !selects(&selector, labels) {
            let why = "`selector` does not match template `labels`";
            errors.invalid(&path.at("template.metadata.labels"), labels.clone(), why);
        }
    }
}

/// Rejects labels of the pod template that the server sets itself.
fn generated_labels(errors: &mut Errors, object: &Value) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let uid = text(&object["metadata"], "uid");
    let name = text(&object["metadata"], "name");
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    let path = Path::new("spec.template.metadata.labels");
    for (key, wanted) in [
        ("batch.kubernetes.io/controller-uid", uid),
        ("controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
        ("job-name", name),
    ] {
        if labels[key].as_str().is_some_and(|value| value != wanted) {
            errors.invalid(&path.key(key), labels.clone(), format!("must be '{wanted}'"));
        }
    }
}

/// Rejects a selector other than the generated one.
fn generated_selector(errors: &mut Errors, object: &Value) {
    if object["spec"]["manualSelector"] == true || object["spec"]["selector"].is_null() {
        return;
    }
    let selector = &object["spec"]["selector"];
    let uid = &object["metadata"]["uid"];
    let generated = ["batch.kubernetes.io/controller-uid", "controller-uid"]
        .iter()
        .any(|key| *selector == serde_json::json!({"matchLabels": {*key: uid}}));
    if !generated {
        let shown = print_selector(selector);
        errors.invalid_printed(&Path::new("spec.selector"), shown, "`selector` not auto-generated");
    }
}

fn job_spec(errors: &mut Errors, path: &Path, spec: &Value) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        errors.non_negative(&path.child(key), &spec[key]);
    }
    if is_set(spec, "maxFailedIndexes") && !is_set(spec, "backoffLimitPerIndex") {
        errors.required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    let mode = text(spec, "completionMode");
    if !mode.is_empty() {
        errors.one_of(&path.child("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    match mode {
        "Indexed" => {
            if !is_set(spec, "completions") {
                errors.required(&path.child("completions"), "when completion mode is Indexed");
            }
            if let Some(parallelism) = spec["parallelism"].as_i64().filter(|p| *p > 100_000) {
                let why = "must be less than or equal to 100000 when completion mode is Indexed";
                errors.invalid(&path.child("parallelism"), parallelism, why);
            }
            if let (Some(failed), Some(all)) =
                (spec["maxFailedIndexes"].as_i64(), spec["completions"].as_i64())
                && failed > all
            {
                let why = "must be less than or equal to completions";
                errors.invalid(&path.child("maxFailedIndexes"), failed, why);
            }
        }
        _ => {
            for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(number) = spec[key].as_i64() {
                    errors.invalid(&path.child(key), number, "requires indexed completion mode");
                }
            }
        }
    }
    if is_set(spec, "podFailurePolicy") {
        failure_policy(errors, &path.child("podFailurePolicy"), spec);
    }
    if let Some(policy) = spec["podReplacementPolicy"].as_str() {
        let supported: &[&str] =
            if is_set(spec, "podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        errors.one_of(&path.child("podReplacementPolicy"), policy, supported);
    }
    success_policy(errors, path, spec);
    if let Some(name) = spec["managedBy"].as_str() {
        let parts: Vec<&str> = name.splitn(2, '/').collect();
        if parts.len() != 2 || parts[0].is_empty() || parts[1].is_empty() {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.invalid(&path.child("managedBy"), name, why);
        } else {
            crate::validate::common_rules::subdomain(errors, &path.child("managedBy"), parts[0]);
            let rest = parts[1];
            if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
                const VALID_PATH: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
                let why = format!("Invalid path (regex used for validation is '{VALID_PATH}')");
                errors.invalid(&path.child("managedBy"), rest, why);
            }
        }
        if name.len() > 63 {
            errors.too_long(&path.child("managedBy"), 63);
        }
    }
    pod::template(errors, &path.child("template"), &spec["template"]);
    restart_policy(errors, &path.at("template.spec.restartPolicy"), spec);
}

fn success_policy(errors: &mut Errors, path: &Path, spec: &Value) {
    let policy = &spec["successPolicy"];
    if policy.is_null() {
        return;
    }
    let at = path.child("successPolicy");
    let rules = list(policy, "rules");
    if text(spec, "completionMode") != "Indexed" {
        let shown: Vec<String> = rules
            .iter()
            .map(|r| {
                format!(
                    "{{\"SucceededIndexes\":{},\"SucceededCount\":{}}}",
                    r["succeededIndexes"], r["succeededCount"]
                )
            })
            .collect();
        let shown = format!("{{\"Rules\":[{}]}}", shown.join(","));
        errors.invalid_printed(&at, shown, "requires indexed completion mode");
        return;
    }
    if rules.is_empty() {
        errors.required(
            &at.child("rules"),
            "at least one rules must be specified when the successPolicy is specified",
        );
    }
    for (i, rule) in rules.iter().enumerate() {
        let path = at.child("rules").index(i);
        if !is_set(rule, "succeededCount") && !is_set(rule, "succeededIndexes") {
            errors.required(&path, "at least one of succeededCount or succeededIndexes must be specified");
        }
        let mut named = None;
        if let Some(indexes) = rule["succeededIndexes"].as_str() {
            let counted = count_indexes(indexes, spec["completions"].as_i64().unwrap_or(0));
            named = Some(*counted.as_ref().unwrap_or(&0));
            if let Err(why) = counted {
                let why = format!("error parsing succeededIndexes: {why}");
                errors.invalid(&path.child("succeededIndexes"), indexes, why);
            }
        }
        errors.non_negative(&path.child("succeededCount"), &rule["succeededCount"]);
        if let (Some(count), Some(all)) = (rule["succeededCount"].as_i64(), spec["completions"].as_i64())
            && count > all
        {
            let why = format!("must be less than or equal to {all} (the number of specified completions)");
            errors.invalid(&path.child("succeededCount"), count, why);
        }
        if let (Some(count), Some(named)) = (rule["succeededCount"].as_i64(), named)
            && count > named
        {
            let why = format!(
                "must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.invalid(&path.child("succeededCount"), count, why);
        }
    }
}

/// The number of indexes in a list such as `0-2,5`, for a job with `completions` indexes.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, None::<i64>);
    if text.is_empty() {
        return Ok(0);
    }
    for part in text.split(',') {
        let bounds: Vec<&str> = part.split('-').collect();
        if bounds.len() > 2 {
            return Err(format!(
                "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
            ));
        }
        for bound in &bounds {
            let at: i64 = bound
                .parse()
                .map_err(|_| format!("cannot convert string to integer for index: {bound:?}"))?;
            if at >= completions {
                return Err(format!("too large index: {bound:?}"));
            }
            if let Some(previous) = last.filter(|previous| *previous >= at) {
                return Err(format!("non-increasing order, previous: {previous}, current: {at}"));
            }
            last = Some(at);
        }
        let from: i64 = bounds[0].parse().unwrap_or(0);
        total += last.unwrap_or(0) - from + 1;
    }
    Ok(total)
}

fn restart_policy(errors: &mut Errors, path: &Path, spec: &Value) {
    match text(&spec["template"]["spec"], "restartPolicy") {
        "" | "Always" => errors.required(path, "valid values: \"OnFailure\", \"Never\""),
        "Never" => {}
        "OnFailure" if is_set(spec, "podFailurePolicy") => {
            errors.invalid(
                path,
                "OnFailure",
                "only \"Never\" is supported when podFailurePolicy is specified",
            );
        }
        "OnFailure" => {}
        other => errors.not_supported(path, other, &["OnFailure", "Never"]),
    }
}

fn failure_policy(errors: &mut Errors, path: &Path, spec: &Value) {
    let rules = list(&spec["podFailurePolicy"], "rules");
    if rules.len() > 20 {
        errors.too_many(&path.child("rules"), rules.len(), 20);
    }
    let template = &spec["template"]["spec"];
    let containers: Vec<&str> = list(template, "containers")
        .iter()
        .chain(list(template, "initContainers"))
        .map(|c| text(c, "name"))
        .collect();
    const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
    for (at, rule) in rules.iter().enumerate() {
        let path = path.child("rules").index(at);
        match text(rule, "action") {
            "" => errors.required(
                &path.child("action"),
                "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]",
            ),
            "FailIndex" if !is_set(spec, "backoffLimitPerIndex") => {
                let why = "requires the backoffLimitPerIndex to be set";
                errors.invalid(&path.child("action"), "FailIndex", why);
            }
            action => errors.one_of(&path.child("action"), action, ACTIONS),
        }
        let codes = &rule["onExitCodes"];
        match (codes.is_null(), list(rule, "onPodConditions").is_empty()) {
            (true, true) => {
                let why = "specifying one of OnExitCodes and OnPodConditions is required";
                errors.invalid_omitted(&path, why);
            }
            (false, false) => {
                let why = "specifying both OnExitCodes and OnPodConditions is not supported";
                errors.invalid_omitted(&path, why);
            }
            _ => {}
        }
        if !codes.is_null() {
            exit_codes(errors, &path.child("onExitCodes"), codes, &containers);
        }
        for (i, pattern) in list(rule, "onPodConditions").iter().enumerate() {
            let path = path.child("onPodConditions").index(i);
            qualified_name(errors, &path.child("type"), text(pattern, "type"));
            errors.one_of(&path.child("status"), text(pattern, "status"), &["False", "True", "Unknown"]);
        }
    }
}

fn exit_codes(errors: &mut Errors, path: &Path, codes: &Value, containers: &[&str]) {
    match text(codes, "operator") {
        "" => errors.required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]"),
        operator => errors.one_of(&path.child("operator"), operator, &["In", "NotIn"]),
    }
    if let Some(name) = codes["containerName"].as_str().filter(|name| !containers.contains(name)) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&path.child("containerName"), name, why);
    }
    let values: Vec<i64> = list(codes, "values").iter().filter_map(Value::as_i64).collect();
    let at = path.child("values");
    if values.is_empty() {
        errors.invalid(&at, codes["values"].clone(), "at least one value is required");
    }
    for (i, value) in values.iter().enumerate() {
        if *value == 0 && text(codes, "operator") == "In" {
            errors.invalid(&at.index(i), 0, "must not be 0 for the In operator");
        }
        if values[..i].contains(value) {
            errors.duplicate(&at.index(i), *value);
        }
    }
    if values.windows(2).any(|pair| pair[0] > pair[1]) {
        errors.invalid(&at, codes["values"].clone(), "must be ordered");
    }
}

pub(crate) fn job_update(errors: &mut Errors, new: &Value, old: &Value) {
    let (path, spec, before) = (Path::new("spec"), &new["spec"], &old["spec"]);
    job_spec(errors, &path, spec);
    job_selector(errors, &path, spec);
    completions(errors, &path.child("completions"), spec, before);
    if spec["selector"] != before["selector"] {
        errors.invalid_printed(
            &path.child("selector"),
            print_selector(&spec["selector"]),
            "field is immutable",
        );
    }
    let suspended = before["suspend"] == true && !is_set(&old["status"], "startTime");
    if comparable_template(spec, suspended) != comparable_template(before, suspended) {
        let shown = crate::go_print::compact("PodTemplateSpec", &spec["template"]);
        errors.invalid_printed(&path.child("template"), shown, "field is immutable");
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        errors.immutable(&path.child(key), &spec[key], &before[key]);
    }
}

/// An indexed job may be scaled while completions and parallelism stay equal.
fn completions(errors: &mut Errors, path: &Path, spec: &Value, before: &Value) {
    let indexed = text(spec, "completionMode") == "Indexed";
    let elastic = indexed && spec["completions"] == spec["parallelism"] && is_set(before, "completions");
    if spec["completions"] == before["completions"] || elastic {
        return;
    }
    let why = if indexed {
        "can only be modified in tandem with parallelism".to_string()
    } else {
        "field is immutable".to_owned()
    };
    errors.invalid(path, spec["completions"].clone(), why);
}

/// The pod template without the fields that may change: a suspended job that never started may get new
/// scheduling directives.
fn comparable_template(spec: &Value, suspended: bool) -> Value {
    let mut template = spec["template"].clone();
    if suspended {
        if let Some(pod) = template["spec"].as_object_mut() {
            for key in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
                pod.remove(key);
            }
        }
        if let Some(metadata) = template["metadata"].as_object_mut() {
            metadata.remove("labels");
            metadata.remove("annotations");
        }
    }
    template
}

pub(crate) fn cron_job(errors: &mut Errors, object: &Value) {
    cron_job_spec(errors, &object["spec"], None);
}

pub(crate) fn cron_job_update(errors: &mut Errors, new: &Value, old: &Value) {
    cron_job_spec(errors, &new["spec"], Some(&old["spec"]));
}

fn cron_job_spec(errors: &mut Errors, spec: &Value, before: Option<&Value>) {
    let path = Path::new("spec");
    let (at, schedule) = (path.child("schedule"), text(spec, "schedule"));
    if schedule.is_empty() {
        errors.required(&at, "");
    } else {
        if let Err(error) = Schedule::parse(schedule) {
            errors.invalid(&at, schedule, error.to_string());
        }
        let zone_allowed = before.is_some_and(|b| text(b, "schedule").contains("TZ"));
        if schedule.contains("TZ") {
            if zone_allowed && is_set(spec, "timeZone") {
                errors.invalid(&at, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
            } else if !zone_allowed {
                errors.invalid(
                    &at,
                    schedule,
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                );
            }
        }
    }
    errors.non_negative(&path.child("startingDeadlineSeconds"), &spec["startingDeadlineSeconds"]);
    if before.is_none_or(|b| b["timeZone"] != spec["timeZone"]) {
        time_zone(errors, &path.child("timeZone"), &spec["timeZone"]);
    }
    let policy = text(spec, "concurrencyPolicy");
    pod::required_one_of(errors, &path.child("concurrencyPolicy"), policy, &["Allow", "Forbid", "Replace"]);
    let job = path.at("jobTemplate.spec");
    let template = &spec["jobTemplate"]["spec"];
    job_spec(errors, &job, template);
    if is_set(template, "selector") {
        let shown = print_selector(&template["selector"]);
        errors.invalid_printed(&job.child("selector"), shown, "`selector` will be auto-generated");
    }
    if template["manualSelector"] == true {
        errors.not_supported(&job.child("manualSelector"), true, &["nil", "false"]);
    }
    errors.non_negative(&path.child("successfulJobsHistoryLimit"), &spec["successfulJobsHistoryLimit"]);
    errors.non_negative(&path.child("failedJobsHistoryLimit"), &spec["failedJobsHistoryLimit"]);
}

fn time_zone(errors: &mut Errors, path: &Path, zone: &Value) {
    let Some(zone) = zone.as_str() else { return };
    if zone.is_empty() {
        errors.invalid(path, zone, "timeZone must be nil or non-empty string");
        return;
    }
    let good_part = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_+".contains(&b))
    };
    if !zone.split('/').all(good_part) {
        errors.invalid(path, zone, format!("unknown time zone {zone}"));
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid(path, zone, why);
    } else if zone != "UTC" && jiff::tz::TimeZone::get(zone).is_err() {
        errors.invalid(path, zone, format!("unknown time zone {zone}"));
    }
}
