//! Conversion of arguments to parameter types: Go's assignability and errors.

use super::walk::{Rv, State, Walk};
use crate::func::Type;
use crate::parse::node::{NodeRef, Operand, OperandKind};
use crate::value::{IntKind, Kind, ListType, MapType, Value};

impl<'t> State<'_, '_, 't> {
    /// Converts a literal to the type of a parameter.
    pub(super) fn typed_constant(&mut self, ty: Type, arg: &'t Operand) -> Walk<Value> {
        self.at(NodeRef::Operand(arg));
        let number = match &arg.kind {
            OperandKind::Number(number) => Some(number),
            _ => None,
        };
        let wanted = match ty {
            Type::Any | Type::Reflect => return Ok(self.constant(arg)?.v),
            Type::Bool => match &arg.kind {
                OperandKind::Bool(b) => return Ok(Value::Bool(*b)),
                _ => "bool",
            },
            Type::Str => match &arg.kind {
                OperandKind::String(text, _) => return Ok(Value::Str(text.clone())),
                _ => "string",
            },
            Type::Int(kind) if kind.signed() => match number.and_then(|n| n.int) {
                Some(i) => return Ok(Value::Int(kind, wrap(kind, i))),
                None => "integer",
            },
            Type::Int(kind) => match number.and_then(|n| n.uint) {
                Some(u) => return Ok(Value::Int(kind, wrap(kind, u as i64))),
                None => "unsigned integer",
            },
            Type::Float64 => match number.and_then(|n| n.float) {
                Some(f) => return Ok(Value::Float(f)),
                None => "float",
            },
            _ => {
                let shown = self.shown(NodeRef::Operand(arg));
                return self.fail(format!("can't handle {shown} for arg of type {}", ty.name()));
            }
        };
        let shown = self.shown(NodeRef::Operand(arg));
        self.fail(format!("expected {wanted}; found {shown}"))
    }

    /// Checks that a value can be passed as a type, and converts it.
    pub(super) fn validate(&self, value: Rv, ty: Type) -> Walk<Value> {
        if matches!(ty, Type::Any | Type::Reflect) {
            return Ok(value.v);
        }
        if matches!(value.v, Value::Nil) {
            if value.iface {
                let message = format!("wrong type for value; expected {}; got interface {{}}", ty.name());
                return self.fail_at(message, &Value::Nil);
            }
            if ty.can_be_nil() {
                return Ok(Value::Nil);
            }
            return self.fail_at(format!("invalid value; expected {}", ty.name()), &Value::Nil);
        }
        match assign(value.v, ty) {
            Ok(value) => Ok(value),
            Err(value) => {
                let got = value.type_name();
                self.fail_at(format!("wrong type for value; expected {}; got {got}", ty.name()), &value)
            }
        }
    }
}

fn wrap(kind: IntKind, n: i64) -> i64 {
    match kind {
        IntKind::Int8 => i64::from(n as i8),
        IntKind::Int16 => i64::from(n as i16),
        IntKind::Int32 => i64::from(n as i32),
        IntKind::Uint8 => i64::from(n as u8),
        IntKind::Uint16 => i64::from(n as u16),
        IntKind::Uint32 => i64::from(n as u32),
        IntKind::Int | IntKind::Int64 | IntKind::Uint | IntKind::Uint64 => n,
    }
}

/// Go's assignability; returns the value as error if it cannot be assigned.
pub(super) fn assign(value: Value, ty: Type) -> Result<Value, Value> {
    let fits = match (&value, ty) {
        (_, Type::Any | Type::Reflect)
        | (Value::Bool(_), Type::Bool)
        | (Value::Float(_), Type::Float64)
        | (Value::Str(_), Type::Str)
        | (Value::Bytes(_), Type::Bytes) => true,
        (Value::Int(kind, _), Type::Int(want)) => *kind == want,
        (Value::List(list), Type::List) => list.ty() == ListType::Any,
        (Value::List(list), Type::Strings) => list.ty() == ListType::Str,
        (Value::Map(map), Type::Dict) => match map.ty() {
            MapType::Any => true,
            MapType::Named(_) => return Ok(Value::Map(map.retyped(MapType::Any))),
            MapType::Str => false,
        },
        (Value::Map(map), Type::StrDict) => matches!(map.ty(), MapType::Str),
        (Value::Object(object), Type::Named(name)) => {
            let own = object.type_name();
            own == name || own.strip_prefix('*') == Some(name)
        }
        // A named slice type is assignable to a plain one. Objects over maps hold bytes, which no function
        // takes.
        (Value::Object(object), Type::List | Type::Strings | Type::Bytes) if object.kind() == Kind::Slice => {
            return match object.plain() {
                Some(plain) => assign(plain, ty).map_err(|_| value),
                None => Err(value),
            };
        }
        _ => false,
    };
    if fits { Ok(value) } else { Err(value) }
}
