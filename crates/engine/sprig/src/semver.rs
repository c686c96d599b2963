//! Versions: `semver` returns an object with fields and methods, `semverCompare` checks a range.

use std::any::Any;
use std::borrow::Cow;

use fl_gotemplate::{CallError, Context, Functions, IntKind, Kind, Object, Signature, Type, Value};
use fl_semver::{Constraints, Version};

use crate::args::{S, fixed, text};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "semver", &[S], |_, a| Ok(Value::object(SemVer(parse(&text(a, 0))?))));
    fixed(f, "semverCompare", &[S, S], |_, a| {
        let range = Constraints::parse(&text(a, 0)).map_err(|e| CallError::new(e.to_string()))?;
        Ok(range.check(&parse(&text(a, 1))?).into())
    });
}

fn parse(text: &str) -> Result<Version, CallError> {
    Version::parse(text).map_err(|e| CallError::new(e.to_string()))
}

/// A `*semver.Version`.
#[derive(Debug, Clone)]
struct SemVer(Version);

const NONE: Signature = Signature::fixed(&[]);
const ONE_STRING: Signature = Signature::fixed(&[Type::Str]);
const OTHER: Signature = Signature::fixed(&[Type::Named("*semver.Version")]);

fn uint(n: u64) -> Value {
    Value::Int(IntKind::Uint64, n as i64)
}

impl SemVer {
    fn compare(&self, args: &[Value]) -> std::cmp::Ordering {
        args[0].as_object::<SemVer>().map_or(std::cmp::Ordering::Equal, |other| self.0.cmp(&other.0))
    }
}

fn made(version: Result<Version, fl_semver::Error>) -> Result<Value, CallError> {
    version.map(|v| Value::object(SemVer(v))).map_err(|e| CallError::new(e.to_string()))
}

impl Object for SemVer {
    fn type_name(&self) -> Cow<'static, str> {
        "*semver.Version".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn string(&self) -> Option<Vec<u8>> {
        Some(self.0.to_string().into_bytes())
    }

    fn json(&self) -> Option<Value> {
        Some(self.0.to_string().into())
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "Original" | "String" | "IncMajor"
            | "IncMinor" | "IncPatch" => Some(NONE),
            "SetPrerelease" | "SetMetadata" => Some(ONE_STRING),
            "Compare" | "Equal" | "LessThan" | "GreaterThan" | "LessThanEqual" | "GreaterThanEqual" => {
                Some(OTHER)
            }
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
        let version = &self.0;
        let argument =
            || args.first().and_then(Value::as_str).map(|s| s.to_text().into_owned()).unwrap_or_default();
        Ok(match name {
            "Major" => uint(version.major()),
            "Minor" => uint(version.minor()),
            "Patch" => uint(version.patch()),
            "Prerelease" => version.prerelease().into(),
            "Metadata" => version.metadata().into(),
            "Original" => version.original().into(),
            "String" => version.to_string().into(),
            "IncMajor" => return made(version.inc_major()),
            "IncMinor" => return made(version.inc_minor()),
            "IncPatch" => return made(version.inc_patch()),
            "SetPrerelease" => return made(version.with_prerelease(&argument())),
            "SetMetadata" => return made(version.with_metadata(&argument())),
            "Compare" => Value::int(self.compare(args) as i64),
            "Equal" => self.compare(args).is_eq().into(),
            "LessThan" => self.compare(args).is_lt().into(),
            "GreaterThan" => self.compare(args).is_gt().into(),
            "LessThanEqual" => self.compare(args).is_le().into(),
            "GreaterThanEqual" => self.compare(args).is_ge().into(),
            _ => return Err(CallError::new(format!("no method {name}"))),
        })
    }
}
