//! Threats D03, D04 and B02: malicious templates end with an error that names them, with little time and
//! memory.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fl_gotemplate::{DEEP_STACK_BUDGET, Error, Limits, TemplateSet, Value, on_deep_stack};
use fl_sprig::{Host, HostContext, Mode};

struct FixedHost;

impl Host for FixedHost {
    fn now(&self) -> (i64, u32) {
        (1_700_000_000, 0)
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(42);
    }
}

fn run_with(template: &str, limits: &Limits) -> Result<Vec<u8>, Error> {
    let mut set = TemplateSet::new(Arc::new(fl_sprig::functions()));
    set.parse("c/templates/evil.yaml", template)?;
    let host = HostContext::new(Rc::new(FixedHost), Mode::Render);
    let mut out = Vec::new();
    set.execute("c/templates/evil.yaml", Value::dict(), limits, Some(Rc::new(host)), &mut out)?;
    Ok(out)
}

/// Runs a template that must fail, and returns the error message.
fn error_of(template: &str) -> String {
    let start = Instant::now();
    let error =
        run_with(template, &Limits::default()).expect_err("a hostile template is refused").to_string();
    assert!(start.elapsed() < Duration::from_secs(20), "{template} took {:?}", start.elapsed());
    assert!(error.contains("c/templates/evil.yaml"), "{error} names the template");
    error
}

#[test]
fn amplifying_templates_stop_at_the_limits() {
    for template in [
        "{{ repeat 1000000000 \"x\" }}",
        "{{ range until 1000000000 }}x{{ end }}",
        "{{ range 1000000000 }}x{{ end }}",
        "{{ untilStep 0 9000000000000000000 1 | len }}",
        "{{ seq 1 1000000000 | len }}",
        "{{ indent 1000000000 \"a\" }}",
        "{{ randAlphaNum 1000000000 }}",
        "{{ randBytes 1000000000 }}",
        "{{ $s := \"xxxxxxxxxx\" }}{{ range 40 }}{{ $s = printf \"%s%s\" $s $s }}{{ end }}{{ len $s }}",
        "{{ $l := list 1 2 3 }}{{ range 40 }}{{ $l = concat $l $l }}{{ end }}{{ len $l }}",
        "{{ $s := repeat 4000 \"ab\" }}{{ range 6 }}{{ $s = replace \"\" $s $s }}{{ end }}",
        "{{ regexMatch (repeat 100 \"[\\\\pL\\\\pN]{1000}\") \"x\" }}",
        "{{ range 1000000 }}{{ bcrypt \"x\" }}{{ end }}",
    ] {
        if template.contains("bcrypt") {
            let limits = Limits { steps: 2_000_000, ..Limits::default() };
            assert!(run_with(template, &limits).expect_err("refused").is_budget());
            continue;
        }
        error_of(template);
    }
}

#[test]
fn recursion_is_limited() {
    for template in [
        "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}",
        "{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        "{{ define \"a\" }}{{ include \"b\" . }}{{ end }}{{ define \"b\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}",
        "{{ define \"a\" }}{{ tpl \"{{ include `a` . }}\" . }}{{ end }}{{ include \"a\" . }}",
    ] {
        error_of(template);
    }
}

#[test]
fn helm_counts_nested_includes_on_a_deep_stack() {
    let error = on_deep_stack(|| {
        let limits = Limits { stack: DEEP_STACK_BUDGET, ..Limits::default() };
        run_with("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}", &limits)
            .expect_err("refused")
            .to_string()
    })
    .expect("a thread starts");
    assert!(error.ends_with("rendering template has a nested reference name: a: unable to execute template"));
}

#[test]
fn values_that_contain_themselves_do_not_hang() {
    let cycle = "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}{{ $_ := set $d \"b\" $d }}";
    for tail in [
        "{{ $d }}",
        "{{ toJson $d }}",
        "{{ toYaml $d }}",
        "{{ toYamlPretty $d }}",
        "{{ toToml $d }}",
        "{{ deepCopy $d }}",
        "{{ merge (dict \"a\" (dict)) $d | len }}{{ $d }}",
    ] {
        error_of(&format!("{cycle}{tail}"));
    }
    assert_eq!(run_with(&format!("{cycle}{{{{ len $d }}}}"), &Limits::default()).expect("runs"), b"2");
}

#[test]
fn deeply_nested_source_is_rejected() {
    let parens = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    let blocks = format!("{}x{}", "{{ if true }}".repeat(100_000), "{{ end }}".repeat(100_000));
    let chain = format!("{{{{ if 1 }}}}{}{{{{ end }}}}", "{{ else if 1 }}x".repeat(100_000));
    for template in [parens, blocks, chain] {
        error_of(&template);
    }
}

#[test]
fn the_callers_deadline_stops_a_template() {
    let limits = Limits { expired: Some(Rc::new(|| true)), ..Limits::default() };
    let error = run_with("{{ range 100000 }}{{ add 1 2 }}{{ end }}", &limits).expect_err("refused");
    assert!(error.is_budget());
}

#[test]
fn environment_network_and_files_are_unreachable() {
    for template in ["{{ env \"HOME\" }}", "{{ expandenv \"$HOME\" }}"] {
        assert!(error_of(template).contains("not defined"));
    }
    assert_eq!(run_with("{{ getHostByName \"localhost\" }}", &Limits::default()).expect("runs"), b"");
    assert_eq!(
        run_with("{{ lookup \"v1\" \"Secret\" \"a\" \"b\" }}", &Limits::default()).expect("runs"),
        b"map[]"
    );
}
