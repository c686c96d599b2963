//! Runs expression cases (one JSON object a line: `template`, `values`, `helpers`, `expect` or `expect_error`) through the
//! engine and prints those that differ. `cargo run -p fl-sprig --example expressions -- FILE [FILTER]`
//!
//! With `--print` it prints one JSON object a line with the output or error instead, for comparing with another engine.

use std::rc::Rc;
use std::sync::Arc;

use fl_gotemplate::{Limits, Map, MissingKey, TemplateSet, Value};
use fl_sprig::{Host, HostContext, Mode};

/// A fixed clock and a simple generator, so that runs are reproducible.
struct Fixed(std::cell::Cell<u64>);

impl Host for Fixed {
    fn now(&self) -> (i64, u32) {
        (1_700_000_000, 0)
    }

    fn random(&self, buffer: &mut [u8]) {
        for b in buffer {
            let next =
                self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0.set(next);
            *b = (next >> 56) as u8;
        }
    }
}

fn render(case: &Map) -> Result<Vec<u8>, String> {
    let text = |key: &str| case.get(key.as_bytes()).and_then(|v| v.as_str().cloned());
    let mut set = TemplateSet::new(Arc::new(fl_sprig::functions()));
    set.set_missing_key(MissingKey::Zero);
    if let Some(helpers) = text("helpers") {
        set.parse("case/templates/_helpers.tpl", &*helpers).map_err(|e| e.to_string())?;
    }
    set.parse("case/templates/_case.tpl", &*text("template").unwrap_or_else(|| "".into()))
        .map_err(|e| e.to_string())?;
    let values =
        fl_sprig::from_yaml(&text("values").unwrap_or_else(|| "".into())).map_err(|e| e.to_string())?;
    let values = if let Value::Nil = values { Value::dict() } else { values };
    let release = Map::from_iter([("Name", Value::str("rel")), ("Namespace", Value::str("ns1"))]);
    let data = Map::from_iter([("Values", values), ("Release", release.into())]);
    let host = HostContext::new(Rc::new(Fixed(std::cell::Cell::new(7))), Mode::Render);
    let mut out = Vec::new();
    set.execute("case/templates/_case.tpl", data.into(), &Limits::default(), Some(Rc::new(host)), &mut out)
        .map_err(|e| e.to_string())?;
    Ok(out)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let print = args.first().is_some_and(|a| a == "--print");
    if print {
        args.remove(0);
    }
    let filter = args.get(1).cloned().unwrap_or_default();
    let (mut good, mut total) = (0, 0);
    for line in std::fs::read_to_string(&args[0])?.lines() {
        let Ok(Value::Map(case)) = fl_sprig::from_json(line.as_bytes()) else { continue };
        let text =
            |key: &str| case.get(key.as_bytes()).and_then(|v| v.as_str().map(|s| s.to_text().into_owned()));
        let id = text("id").unwrap_or_default();
        if !id.contains(&filter) || (!print && text("mode").is_some()) {
            continue;
        }
        let got = render(&case);
        if print {
            let row = match &got {
                Ok(out) => Map::from_iter([("id", Value::str(id)), ("out", Value::str(out.clone()))]),
                Err(e) => Map::from_iter([("id", Value::str(id)), ("error", Value::str(e.clone()))]),
            };
            println!(
                "{}",
                String::from_utf8_lossy(
                    &fl_sprig::to_json(&row.into(), false).map_err(|e| e.message().to_owned())?
                )
            );
            continue;
        }
        total += 1;
        let template = text("template").unwrap_or_default();
        match (text("expect"), text("expect_error"), &got) {
            (Some(want), _, Ok(out)) if want.as_bytes() == out => good += 1,
            (Some(want), _, got) => {
                let got = got.as_ref().map(|o| String::from_utf8_lossy(o).into_owned());
                println!("{id} {template}\n  want {want:?}\n  got  {got:?}");
            }
            (None, Some(want), Err(e)) => {
                if want.ends_with(e.as_str()) || want.contains(e.as_str()) {
                    good += 1;
                } else {
                    println!("{id} {template}\n  want error {want}\n  got  error {e}");
                }
            }
            (None, Some(want), Ok(out)) => {
                println!("{id} {template}\n  want error {want}\n  got {:?}", String::from_utf8_lossy(out));
            }
            _ => good += 1,
        }
    }
    if !print {
        println!("{good}/{total}");
    }
    Ok(())
}
