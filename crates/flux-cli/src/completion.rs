//! What a shell offers at the cursor: commands, flags, and names of objects in the cluster.
//!
//! The scripts of `completion` call `PROGRAM __complete WORD…`, where the last word is the one being typed, and show the lines
//! they get: a word, and behind a tab what it means. Whatever goes wrong, nothing is offered.

use std::time::Duration;

use clap::{Arg, Command};
use serde_json::Value;

use crate::args::Call;
use crate::cluster::{Cluster, Resource, Select, name_of};
use crate::kubeconfig::GLOBAL_FLAGS;
use crate::logger;
use crate::resource_kinds::{self, Kind};

/// Timeout of requests during completion: the user waits at a prompt.
const PATIENCE: Duration = Duration::from_secs(3);

/// Prints what fits the last of the words behind the program's name.
pub(crate) fn complete(definition: &Command, words: &[String]) {
    let (current, before) = words.split_last().map_or(("", &[][..]), |(last, rest)| (last.as_str(), rest));
    // PowerShell drops empty words; its script sends quotes instead.
    let current = if current == "\"\"" { "" } else { current };
    for (word, meaning) in candidates(definition, before, current) {
        match meaning.lines().next().unwrap_or_default() {
            "" => logger::data_line(&word),
            first => logger::data_line(&format!("{word}\t{first}")),
        }
    }
}

/// Where the words before the cursor lead.
struct Place<'a> {
    command: &'a Command,
    path: Vec<String>,
    /// Plain words behind the command.
    plain: usize,
    /// A flag whose value comes next.
    open: Option<&'a Arg>,
    /// Values of flags that say which cluster and namespace.
    given: Vec<(&'static str, String)>,
}

fn place<'a>(definition: &'a Command, words: &[String]) -> Place<'a> {
    let mut place = Place { command: definition, path: Vec::new(), plain: 0, open: None, given: Vec::new() };
    for word in words {
        if let Some(flag) = place.open.take() {
            place.note(flag, word);
            continue;
        }
        if let Some((name, value)) = word.split_once('=').filter(|(name, _)| name.starts_with("--")) {
            if let Some(flag) = find_flag(place.command, name) {
                place.note(flag, value);
            }
            continue;
        }
        if word.starts_with('-') {
            place.open = find_flag(place.command, word).filter(|flag| takes_value(flag));
            continue;
        }
        match place.command.find_subcommand(word) {
            Some(below) if place.plain == 0 => {
                place.path.push(below.get_name().to_owned());
                place.command = below;
            }
            _ => place.plain += 1,
        }
    }
    place
}

impl Place<'_> {
    fn note(&mut self, flag: &Arg, value: &str) {
        if let Some(known) = GLOBAL_FLAGS.iter().find(|f| flag.get_long() == Some(f.name)) {
            self.given.push((known.name, value.to_owned()));
        }
    }
}

fn find_flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let fits = |arg: &&Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        // Letters may be joined; the last one decides what comes next.
        None => arg.get_short().is_some() && arg.get_short() == word.chars().next_back(),
    };
    command.get_arguments().find(fits)
}

/// Switches take a value only behind an equals sign.
fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

fn candidates(definition: &Command, before: &[String], current: &str) -> Vec<(String, String)> {
    let place = place(definition, before);
    let mut found = if let Some(flag) = place.open {
        values(flag, &place)
    } else if current.starts_with('-') {
        flags(place.command)
    } else if place.plain == 0 && place.command.has_subcommands() {
        commands(place.command)
    } else {
        match kind_of(&place.path) {
            Some(kind) => names(&place, &kind.resource()),
            None => Vec::new(),
        }
    };
    found.retain(|(word, _)| word.starts_with(current));
    found
}

fn commands(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
    let about = |c: &Command| c.get_about().map(ToString::to_string).unwrap_or_default();
    shown.map(|c| (c.get_name().to_owned(), about(c))).collect()
}

fn flags(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_arguments().filter(|a| !a.is_hide_set());
    let help = |a: &Arg| a.get_help().map(ToString::to_string).unwrap_or_default();
    shown.filter_map(|a| Some((format!("--{}", a.get_long()?), help(a)))).collect()
}

/// Values of a flag: those it lists itself, namespaces, contexts.
fn values(flag: &Arg, place: &Place<'_>) -> Vec<(String, String)> {
    match flag.get_long() {
        Some("namespace" | "flux-namespace") => {
            names(place, &Resource::new("v1", "Namespace", "namespaces", false))
        }
        Some("context") => call(place)
            .and_then(|call| crate::kubeconfig::contexts(&call))
            .unwrap_or_default()
            .into_iter()
            .map(|name| (name, String::new()))
            .collect(),
        _ => flag.get_possible_values().iter().map(|v| (v.get_name().to_owned(), String::new())).collect(),
    }
}

/// The kind whose names a command takes.
fn kind_of(path: &[String]) -> Option<&'static Kind> {
    let (verb, nouns) = path.split_first()?;
    let nouns: Vec<&str> = nouns.iter().map(|noun| noun.trim_end_matches('s')).collect();
    let verbs =
        ["get", "reconcile", "suspend", "resume", "delete", "export", "debug", "tree", "build", "diff"];
    if !verbs.contains(&verb.as_str()) && *verb != "trigger" {
        return None;
    }
    Some(match nouns[..] {
        ["kustomization"] => &resource_kinds::KUSTOMIZATION,
        ["helmrelease"] => &resource_kinds::HELM_RELEASE,
        ["receiver"] => &resource_kinds::RECEIVER,
        ["alert"] => &resource_kinds::ALERT,
        ["alert-provider"] => &resource_kinds::PROVIDER,
        ["source", "git"] => &resource_kinds::GIT,
        ["source", "oci"] => &resource_kinds::OCI,
        ["source", "helm"] => &resource_kinds::HELM,
        ["source", "chart"] => &resource_kinds::CHART,
        ["source", "bucket"] => &resource_kinds::BUCKET,
        ["source", "external"] => &resource_kinds::EXTERNAL,
        ["image", "repository"] => &resource_kinds::IMAGE_REPOSITORY,
        ["image", "policy"] => &resource_kinds::IMAGE_POLICY,
        ["image", "update"] => &resource_kinds::IMAGE_UPDATE,
        ["artifact", "generator"] => &resource_kinds::GENERATOR,
        _ => return None,
    })
}

fn call(place: &Place<'_>) -> Option<Call> {
    let given: Vec<(usize, &str, String)> =
        place.given.iter().enumerate().map(|(i, (name, value))| (i, *name, value.clone())).collect();
    Call::new(place.path.clone(), Vec::new(), GLOBAL_FLAGS, &given).ok()
}

/// Names of objects in the namespace the words so far ask for.
fn names(place: &Place<'_>, resource: &Resource) -> Vec<(String, String)> {
    let Some(mut call) = call(place) else { return Vec::new() };
    if !call.changed("namespace")
        && let Some(namespace) = std::env::var("FLUX_SYSTEM_NAMESPACE").ok().filter(|n| !n.is_empty())
    {
        call.set("namespace", namespace);
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    // A second installation fails, which is as good as a first one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let list = async {
        let cluster = Cluster::connect(&call).await.ok()?;
        cluster.list(resource, &Select::in_namespace(call.namespace())).await.ok()
    };
    let objects: Vec<Value> = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, list).await })
        .ok()
        .flatten()
        .unwrap_or_default();
    objects.iter().map(|object| (name_of(object).to_owned(), String::new())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flux, Wanted};

    fn offered(line: &[&str]) -> Vec<String> {
        let definition = Flux::augment(Command::new("flux"), "flux", &Wanted::All);
        let words: Vec<String> = line.iter().map(|w| (*w).to_owned()).collect();
        let (current, before) = words.split_last().unwrap();
        candidates(&definition, before, current).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn commands_and_flags() {
        assert_eq!(offered(&["rec"]), ["reconcile"]);
        assert_eq!(offered(&["reconcile", "source", "b"]), ["bucket"]);
        assert_eq!(offered(&["-n", "team", "get", "ks", "--no-h"]), ["--no-header"]);
        assert!(offered(&["get", "ks", "--validation"]).is_empty());
    }

    #[test]
    fn words_lead_to_a_kind_and_a_namespace() {
        let definition = Flux::augment(Command::new("flux"), "flux", &Wanted::All);
        let words: Vec<String> =
            ["get", "--namespace=a", "sources", "git", "-n", "b", "x"].map(str::to_owned).to_vec();
        let place = place(&definition, &words);
        assert_eq!(kind_of(&place.path).map(|k| k.kind), Some("GitRepository"));
        assert_eq!(place.plain, 1);
        assert_eq!(call(&place).unwrap().namespace(), "b");
        assert!(kind_of(&["create".to_owned(), "kustomization".to_owned()]).is_none());
    }
}
