//! `.Capabilities`

use std::any::Any;
use std::borrow::Cow;
use std::rc::Rc;

use fl_gotemplate::{CallError, Context, Kind, List, ListType, Object, Signature, Str, Type, Value};

use super::Generation;
use crate::capabilities::{Capabilities, GO_VERSION, HELM_4_VERSION, HELM_VERSION, KubeVersion};

/// The value of `.Capabilities`.
pub(crate) fn capabilities(from: &Capabilities, helm: Generation) -> Value {
    let version = match helm {
        Generation::Helm3 => HELM_VERSION,
        Generation::Helm4 => HELM_4_VERSION,
    };
    let fields = [
        ("KubeVersion", Value::object(KubeVersionObject(from.kube_version.clone()))),
        (
            "APIVersions",
            Value::object(ApiVersions(from.api_versions.iter().map(|v| Str::from(v.as_str())).collect())),
        ),
        ("HelmVersion", Value::object(HelmVersion(version))),
    ];
    Value::object(CapabilitiesObject { fields: Rc::new(fields) })
}

#[derive(Debug, Clone)]
struct CapabilitiesObject {
    fields: Rc<[(&'static str, Value); 3]>,
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> Cow<'static, str> {
        "*chartutil.Capabilities".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.to_vec()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Copy").then_some(Signature::fixed(&[]))
    }

    fn call(&self, _: &str, _: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
        Ok(Value::object(self.clone()))
    }
}

#[derive(Debug)]
struct KubeVersionObject(KubeVersion);

impl Object for KubeVersionObject {
    fn type_name(&self) -> Cow<'static, str> {
        "chartutil.KubeVersion".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields().into_iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let text = |s: &str| Value::str(s);
        vec![
            ("Version", text(&self.0.version)),
            ("Major", text(&self.0.major)),
            ("Minor", text(&self.0.minor)),
        ]
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "String" | "GitVersion").then_some(Signature::fixed(&[]))
    }

    fn call(&self, _: &str, _: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
        Ok(Value::str(self.0.version.as_str()))
    }

    fn addressed_string(&self) -> Option<Vec<u8>> {
        Some(self.0.version.clone().into_bytes())
    }
}

#[derive(Debug)]
struct HelmVersion(&'static str);

impl Object for HelmVersion {
    fn type_name(&self) -> Cow<'static, str> {
        "version.BuildInfo".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields().into_iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Version", Value::str(self.0)),
            ("GitCommit", Value::str("")),
            ("GitTreeState", Value::str("")),
            ("GoVersion", Value::str(GO_VERSION)),
        ]
    }

    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(vec![("version", Value::str(self.0)), ("go_version", Value::str(GO_VERSION))])
    }

    fn json(&self) -> Option<Value> {
        Some(Value::Map(self.json_fields()?.into_iter().collect()))
    }
}

/// `chartutil.VersionSet`, a list of strings with a method.
#[derive(Debug)]
struct ApiVersions(Vec<Str>);

impl Object for ApiVersions {
    fn type_name(&self) -> Cow<'static, str> {
        "chartutil.VersionSet".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> Kind {
        Kind::Slice
    }

    fn plain(&self) -> Option<Value> {
        let items = self.0.iter().map(|v| Value::Str(v.clone())).collect();
        Some(Value::List(List::with_type(ListType::Named("chartutil.VersionSet", false), items)))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then_some(Signature::fixed(&[Type::Str]))
    }

    fn call(&self, _: &str, args: &[Value], cx: &mut Context<'_>) -> Result<Value, CallError> {
        cx.step(8)?;
        let wanted = args.first().and_then(Value::as_str);
        Ok(Value::Bool(wanted.is_some_and(|wanted| self.0.contains(wanted))))
    }
}
