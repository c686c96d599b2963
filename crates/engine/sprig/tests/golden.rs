//! Every recorded expression gives the output or error message that Go gave.

use std::rc::Rc;
use std::sync::Arc;

use fl_gotemplate::{Limits, Map, MapClass, MapType, MissingKey, TemplateSet, Value};
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

static VALUES: MapClass = MapClass { name: "chartutil.Values", methods: &[] };

fn render(template: &[u8]) -> Result<Vec<u8>, String> {
    let mut set = TemplateSet::new(Arc::new(fl_sprig::functions()));
    set.set_missing_key(MissingKey::Zero);
    set.parse("case/templates/_helpers.tpl", include_bytes!("golden/helpers.tpl").as_slice())
        .map_err(|e| e.to_string())?;
    set.parse("case/templates/out.txt", template).map_err(|e| e.to_string())?;
    let values = fl_sprig::from_yaml(include_bytes!("golden/values.yaml")).map_err(|e| e.to_string())?;
    let values = values.as_map().expect("values are a map").retyped(MapType::Named(&VALUES));
    let release = Map::from_iter([("Name", Value::str("rel")), ("Namespace", Value::str("ns1"))]);
    let data = Map::from_iter([("Values", Value::Map(values)), ("Release", release.into())]);
    let host = HostContext::new(Rc::new(FixedHost), Mode::Render);
    let mut out = Vec::new();
    set.execute("case/templates/out.txt", data.into(), &Limits::default(), Some(Rc::new(host)), &mut out)
        .map_err(|e| e.to_string())?;
    // Helm removes `<no value>` from everything it renders.
    Ok(fl_sprig::without_no_value(&out).to_vec())
}

#[test]
fn expressions_match_go() {
    let mut wrong = Vec::new();
    let mut total = 0;
    for line in include_str!("golden/expressions.jsonl").lines() {
        let case = fl_sprig::from_json(line.as_bytes()).expect("a case is JSON");
        let case = case.as_map().expect("a case is an object");
        let text = |key: &str| case.get(key.as_bytes()).and_then(|v| v.as_str().map(|s| s.to_vec()));
        let template = text("template").expect("a case has a template");
        total += 1;
        let got = render(&template);
        let same = match (&got, text("out"), text("error")) {
            (Ok(out), Some(want), _) => *out == want,
            (Err(error), _, Some(want)) => error.as_bytes() == want,
            _ => false,
        };
        if !same {
            wrong.push(format!("{line}\n  got {:?}", got.map(|o| String::from_utf8_lossy(&o).into_owned())));
        }
    }
    assert!(total > 100, "the goldens are there");
    assert!(wrong.is_empty(), "{} of {total} differ:\n{}", wrong.len(), wrong.join("\n"));
}
