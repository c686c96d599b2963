//! Flags as helm's command line takes them, and those that are answered with a reason instead.

use anyhow::{anyhow, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction};

/// Lets every switch of a command take a value too: `--include-crds=false`, as Go's flags do.
pub(crate) fn like_pflag(command: clap::Command) -> clap::Command {
    command.mut_args(|arg: Arg| match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .default_missing_value("true")
            .hide_default_value(true)
            .hide_possible_values(true)
            .value_name("BOOL")
            .value_parser(go_bool()),
        _ => arg,
    })
}

/// Go's `strconv.ParseBool`.
fn go_bool() -> impl TypedValueParser<Value = bool> {
    let yes = PossibleValue::new("true").aliases(["1", "t", "T", "TRUE", "True"]);
    let no = PossibleValue::new("false").aliases(["0", "f", "F", "FALSE", "False"]);
    PossibleValuesParser::new([yes, no])
        .map(|text| matches!(text.as_str(), "1" | "t" | "T" | "TRUE" | "True" | "true"))
}

/// The items of all uses of a flag that takes a list.
///
/// # Errors
/// Quotes are where none may be; the sentence is the one of Go's flags.
pub(super) fn items(name: &str, texts: &[String]) -> anyhow::Result<Vec<String>> {
    let mut items = Vec::new();
    for text in texts {
        let of_text = fl_flux_cli::list_items(text);
        items.extend(of_text.map_err(|why| anyhow!("invalid argument {text:?} for {name:?} flag: {why}"))?);
    }
    Ok(items)
}

fn key_and_value(text: &str) -> Result<String, String> {
    match text.split(',').find(|pair| !pair.contains('=')) {
        Some(pair) => Err(format!("{pair} must be formatted as key=value")),
        None => Ok(text.to_owned()),
    }
}

fn duration(text: &str) -> Result<String, String> {
    text.parse::<fl_types::Duration>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Flags that change nothing about what is rendered, for helm neither; scripts pass them along.
#[derive(Debug, clap::Args)]
pub(super) struct WithoutEffect {
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true)]
    wait: bool,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
    #[arg(long, hide = true, value_parser = duration)]
    timeout: Option<String>,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    take_ownership: bool,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(short, long, hide = true, value_parser = key_and_value)]
    labels: Vec<String>,

    // How to reach a cluster, which rendering does not do.
    #[arg(long, hide = true)]
    burst_limit: Option<i64>,
    #[arg(long, hide = true)]
    qps: Option<f32>,
    #[arg(long, hide = true)]
    kubeconfig: Option<String>,
    #[arg(long, hide = true)]
    kube_context: Option<String>,
    #[arg(long, hide = true)]
    kube_apiserver: Option<String>,
    #[arg(long, hide = true)]
    kube_as_group: Vec<String>,
    #[arg(long, hide = true)]
    kube_as_user: Option<String>,
    #[arg(long, hide = true)]
    kube_ca_file: Option<String>,
    #[arg(long, hide = true)]
    kube_insecure_skip_tls_verify: bool,
    #[arg(long, hide = true)]
    kube_tls_server_name: Option<String>,
    #[arg(long, hide = true)]
    kube_token: Option<String>,
}

/// Flags of `helm template` that need what this command does not do; they are answered with the reason.
#[derive(Debug, clap::Args)]
pub(super) struct Refused {
    #[arg(long, hide = true)]
    validate: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    dry_run: Option<String>,
    #[arg(long, hide = true)]
    post_renderer: Option<String>,
    #[arg(long, hide = true)]
    post_renderer_args: Vec<String>,
    #[arg(long, hide = true)]
    dependency_update: bool,
    #[arg(long, hide = true)]
    enable_dns: bool,
    #[arg(long, hide = true)]
    verify: bool,
    #[arg(long, hide = true)]
    keyring: Option<String>,
    #[arg(long, hide = true)]
    username: Option<String>,
    #[arg(long, hide = true)]
    password: Option<String>,
    #[arg(long, hide = true)]
    pass_credentials: bool,
    #[arg(long, hide = true)]
    ca_file: Option<String>,
    #[arg(long, hide = true)]
    cert_file: Option<String>,
    #[arg(long, hide = true)]
    key_file: Option<String>,
    #[arg(long, hide = true)]
    insecure_skip_tls_verify: bool,
    #[arg(long, hide = true)]
    plain_http: bool,
    #[arg(long, hide = true)]
    registry_config: Option<String>,
    #[arg(long, hide = true)]
    repository_cache: Option<String>,
    #[arg(long, hide = true)]
    repository_config: Option<String>,
}

impl Refused {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if let Some(mode) = &self.dry_run {
            match mode.as_str() {
                // Rendering is a dry run in any case.
                "" | "true" | "false" | "none" | "client" => {}
                "server" => bail!("--dry-run=server needs a cluster; this command works without one"),
                _ => bail!(
                    "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server"
                ),
            }
        }
        let credentials = self.username.is_some()
            || self.password.is_some()
            || self.pass_credentials
            || self.ca_file.is_some()
            || self.cert_file.is_some()
            || self.key_file.is_some()
            || self.insecure_skip_tls_verify
            || self.plain_http;
        let refusals = [
            (self.validate, "--validate needs a cluster; this command works without one"),
            (
                self.post_renderer.is_some() || !self.post_renderer_args.is_empty(),
                "--post-renderer would start a program, which fluorite never does; pipe the output through it instead",
            ),
            (
                self.dependency_update,
                "--dependency-update fetches charts; put them into charts/ with `helm dependency build` first",
            ),
            (
                self.enable_dns,
                "--enable-dns lets templates look up names in the network, which fluorite never does",
            ),
            (
                self.verify || self.keyring.is_some(),
                "--verify is for fetched charts; give a directory or an archive you trust",
            ),
            (
                credentials,
                "credentials and certificates for a repository are not taken here: charts are fetched from where anyone \
may read them; download the archive and name it",
            ),
            (
                self.registry_config.is_some()
                    || self.repository_cache.is_some()
                    || self.repository_config.is_some(),
                "repositories and registries that helm knows by name are not looked at; give --repo URL or oci://",
            ),
        ];
        match refusals.iter().find(|(given, _)| *given) {
            Some((_, why)) => bail!("{why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_as_helm_splits_them() {
        let items = |texts: &[&str]| {
            items("-f, --values", &texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        assert_eq!(items(&["a/v1,b/v1", "", "c"]).expect("a list"), ["a/v1", "b/v1", "c"]);
        assert_eq!(items(&["\"a,b\",c", "\"a\"\"b\""]).expect("a list"), ["a,b", "c", "a\"b"]);
        let refused = "invalid argument \"a\\\"b\" for \"-f, --values\" flag: parse error on line 1, column 2: bare \" in non-quoted-field";
        assert_eq!(items(&["a\"b"]).expect_err("a bare quote"), refused);
    }

    #[test]
    fn switches_take_the_values_that_go_takes() {
        let command =
            || like_pflag(clap::Command::new("t").arg(Arg::new("on").long("on").action(ArgAction::SetTrue)));
        for (given, wanted) in [("--on", true), ("--on=false", false), ("--on=T", true), ("--on=0", false)] {
            let matches = command().try_get_matches_from(["t", given]).expect(given);
            assert_eq!(matches.get_one::<bool>("on"), Some(&wanted), "{given}");
        }
        assert_eq!(command().try_get_matches_from(["t"]).expect("nothing").get_one("on"), Some(&false));
        let error = command().try_get_matches_from(["t", "--on=maybe"]).expect_err("no boolean");
        assert!(error.to_string().contains("invalid value 'maybe'"), "{error}");
    }
}
