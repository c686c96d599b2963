//! `.Files`: the files of a chart that are not templates, values or subcharts.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use fl_gotemplate::{CallError, Context, Kind, List, Object, Signature, Str, Type, Value};

use fl_yaml::{Dialect, Node};

use super::glob::Glob;
use crate::chart::{Content, File};

/// The Go type `engine.files`, a map from names to bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChartFiles(BTreeMap<Str, Content>);

impl ChartFiles {
    pub(crate) fn new(files: &[File]) -> Self {
        Self(files.iter().map(|f| (Str::from(f.name.as_str()), f.data.clone())).collect())
    }

    fn bytes(&self, name: &Value) -> Str {
        name.as_str().and_then(|name| self.0.get(name)).map_or_else(|| Str::from(""), shared)
    }

    /// Formats base names and contents as YAML.
    fn as_yaml(&self, convert: impl Fn(&Str) -> String) -> Value {
        let mut table = Node::map();
        if let Some(map) = table.as_map_mut() {
            for (name, data) in &self.0 {
                let base = name.rsplit(|b| *b == b'/').find(|part| !part.is_empty()).unwrap_or(b".");
                map.insert(String::from_utf8_lossy(base).as_ref(), Node::string(convert(&shared(data))));
            }
        }
        let text = fl_yaml::to_sigs_yaml(&table, Dialect::Sigs).unwrap_or_default();
        Value::str(text.strip_suffix('\n').unwrap_or(&text))
    }

    fn lines(&self, name: &Value) -> Value {
        let data = self.bytes(name);
        if data.is_empty() {
            return Value::List(List::of_strings(Vec::<Str>::new()));
        }
        let text = data.strip_suffix(b"\n").unwrap_or(&data);
        Value::List(List::of_strings(text.split(|b| *b == b'\n').map(Str::from)))
    }
}

/// Returns the bytes, or nothing on a read error: templates have no way to fail everywhere they read.
/// `read_error` reports the error after the render.
fn shared(data: &Content) -> Str {
    data.read().cloned().unwrap_or_else(|_| Str::from(""))
}

/// The first read error that templates ran into.
pub(crate) fn read_error(files: &[File]) -> Option<std::io::Error> {
    files.iter().find_map(|file| file.data.failure())
}

impl Object for ChartFiles {
    fn type_name(&self) -> Cow<'static, str> {
        "engine.files".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> Kind {
        Kind::Map
    }

    fn entries(&self) -> Option<Vec<(Value, Value)>> {
        Some(
            self.0
                .iter()
                .map(|(name, data)| (Value::Str(name.clone()), Value::Bytes(shared(data))))
                .collect(),
        )
    }

    fn field(&self, name: &str) -> Option<Value> {
        // A missing key of a map of bytes is an empty slice, printed as `[]`.
        Some(Value::Bytes(self.bytes(&Value::str(name))))
    }

    fn plain(&self) -> Option<Value> {
        Some(Value::Map(
            self.0.iter().map(|(name, data)| (name.clone(), Value::Bytes(shared(data)))).collect(),
        ))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(Signature::fixed(&[Type::Str])),
            "AsConfig" | "AsSecrets" => Some(Signature::fixed(&[])),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Value], cx: &mut Context<'_>) -> Result<Value, CallError> {
        let argument = args.first().unwrap_or(&Value::Nil);
        Ok(match name {
            "Get" => Value::Str(self.bytes(argument)),
            "GetBytes" => Value::Bytes(self.bytes(argument)),
            "Lines" => self.lines(argument),
            "Glob" => {
                cx.step(self.0.len() as u64)?;
                let glob = Glob::new(&argument.as_str().map(Str::to_text).unwrap_or_default());
                let kept = self.0.iter().filter(|(name, _)| glob.matches(&name.to_text()));
                Value::object(Self(kept.map(|(name, data)| (name.clone(), data.clone())).collect()))
            }
            "AsConfig" => self.as_yaml(|data| data.to_text().into_owned()),
            _ => self.as_yaml(|data| base64::engine::general_purpose::STANDARD.encode(data.as_bytes())),
        })
    }
}
