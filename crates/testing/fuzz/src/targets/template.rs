//! Templates: the parser, and the evaluator with Helm's functions over small data.

use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use fl_gotemplate::{Functions, Limits, List, Map, MissingKey, TemplateSet, Value};
use fl_sprig::{Host, HostContext, Mode};

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("template-parse", template_parse), ("template-run", template_run)];

/// A world without a clock; its randomness repeats.
struct Still(std::cell::Cell<u64>);

impl Host for Still {
    fn now(&self) -> (i64, u32) {
        (1_700_000_000, 5)
    }

    fn random(&self, buffer: &mut [u8]) {
        for byte in buffer {
            let next =
                self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0.set(next);
            *byte = (next >> 56) as u8;
        }
    }
}

fn functions() -> Arc<Functions> {
    static ALL: OnceLock<Arc<Functions>> = OnceLock::new();
    Arc::clone(ALL.get_or_init(|| {
        let mut all = fl_sprig::functions();
        // Making keys takes longer than a thousand other cases.
        let slow = [
            "genPrivateKey",
            "genCA",
            "genSelfSignedCert",
            "genSignedCert",
            "bcrypt",
            "htpasswd",
            "derivePassword",
        ];
        slow.iter().for_each(|name| all.remove(name));
        Arc::new(all)
    }))
}

/// Any bytes as a template, with ordinary and with other delimiters.
fn template_parse(input: &[u8]) {
    let mut set = TemplateSet::new(functions());
    let _ = set.parse("fuzz", input);
    set.set_delimiters("<<", ">>");
    let _ = set.parse("fuzz", input);
}

/// Any bytes as a template that runs within small budgets.
fn template_run(input: &[u8]) {
    let mut set = TemplateSet::new(functions());
    set.set_missing_key(MissingKey::Zero);
    if set.parse("fuzz", input).is_err() {
        return;
    }
    let limits =
        Limits { steps: 20_000, output: 1 << 20, value: 1 << 18, allocation: 1 << 22, ..Limits::default() };
    let inner = Map::from_iter([("a", Value::Float(1.5)), ("nul", Value::Nil), ("s", Value::str("x y"))]);
    let list = List::new(vec![Value::str("b"), Value::int(2), Value::Nil, inner.clone().into()]);
    let data = Map::from_iter([
        ("Values", Value::Map(inner)),
        ("l", list.into()),
        ("t", true.into()),
        ("n", Value::int64(-3)),
        ("s", Value::str(b"h\xffllo \xc3\xa9".to_vec())),
    ]);
    let host = HostContext::new(Rc::new(Still(std::cell::Cell::new(7))), Mode::Render);
    let mut out = Vec::new();
    let _ = set.execute("fuzz", data.into(), &limits, Some(Rc::new(host)), &mut out);
    assert!(out.len() <= 2 << 20, "more output than the budget allows");
}
