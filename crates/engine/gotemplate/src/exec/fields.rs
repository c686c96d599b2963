//! Field chains: map keys, struct fields, methods, and the rules for nil.

use super::set::MissingKey;
use super::walk::{Rv, State, Stop, Walk};
use crate::error::Error;
use crate::func::CallError;
use crate::parse::node::{NodeRef, Operand};
use crate::value::{Kind, Map, MapType, Str, Value};

impl<'t> State<'_, '_, 't> {
    pub(super) fn eval_fields(
        &mut self,
        dot: &Rv,
        receiver: Rv,
        node: NodeRef<'t>,
        fields: &'t [Str],
        args: &'t [Operand],
        last: Option<Rv>,
    ) -> Walk<Rv> {
        let Some((final_field, chain)) = fields.split_last() else { return Ok(receiver) };
        let mut receiver = receiver;
        for (i, field) in chain.iter().enumerate() {
            receiver = match self.eval_field(dot, field, node, &[], None, &receiver) {
                Ok(next) => next,
                Err(stop) => return Err(self.with_receiver(stop, node, fields.len() - i, &receiver)),
            };
        }
        self.eval_field(dot, final_field, node, args, last, &receiver)
            .map_err(|stop| self.with_receiver(stop, node, 1, &receiver))
    }

    /// Adds the value whose field was accessed to an error; `left` fields of the chain remained.
    fn with_receiver(&self, stop: Stop, node: NodeRef<'t>, left: usize, receiver: &Rv) -> Stop {
        let Stop::Error(mut error) = stop else { return stop };
        if let Error::Exec(_, Some(excerpt)) = &mut *error
            && excerpt.values.is_empty()
        {
            let whole = self.shown(node);
            let end = whole.rmatch_indices('.').nth(left - 1).map_or(whole.len(), |(at, _)| at);
            let before = if end == 0 { "." } else { &whole[..end] };
            excerpt.note(before.to_owned(), &receiver.v);
        }
        Stop::Error(error)
    }

    fn eval_field(
        &mut self,
        dot: &Rv,
        field: &'t Str,
        node: NodeRef<'t>,
        args: &'t [Operand],
        last: Option<Rv>,
        receiver: &Rv,
    ) -> Walk<Rv> {
        let has_args = !args.is_empty() || last.is_some();
        match &receiver.v {
            Value::Nil => {
                if receiver.iface {
                    return self.fail(format!("nil pointer evaluating interface {{}}.{field}"));
                }
                if self.cx.missing_key() == MissingKey::Error {
                    return self.fail(format!("nil data; no entry for key {}", crate::fmt::quoted(field)));
                }
                Ok(Rv::missing())
            }
            Value::Map(map) => {
                if let MapType::Named(class) = map.ty()
                    && let Some(method) = class.methods.iter().find(|m| m.name.as_bytes() == field.as_bytes())
                {
                    let values = self.eval_args(dot, method.signature, field, args, last)?;
                    let result = (method.code)(map, &values, self.cx);
                    return self.method_result(field, node, result);
                }
                self.map_key(map, field, has_args)
            }
            Value::Object(object) => {
                let name = field.to_text();
                if let Some(signature) = object.method(&name) {
                    let values = self.eval_args(dot, signature, field, args, last)?;
                    let result = object.call(&name, &values, self.cx);
                    return self.method_result(field, node, result);
                }
                if matches!(object.kind(), Kind::Struct | Kind::Pointer)
                    && let Some(value) = object.field(&name)
                {
                    if has_args {
                        return self.fail(format!("{field} has arguments but cannot be invoked as function"));
                    }
                    return Ok(Rv::plain(value));
                }
                if object.kind() == Kind::Map {
                    // An object over a map decides about missing keys itself; with arguments the access fails
                    // below.
                    if !has_args && let Some(value) = object.field(&name) {
                        return Ok(Rv::plain(value));
                    }
                    return match object.plain() {
                        Some(Value::Map(map)) => self.map_key(&map, field, has_args),
                        _ => self.entry_of(&object.entries().unwrap_or_default(), field),
                    };
                }
                self.no_field(field, receiver)
            }
            _ => self.no_field(field, receiver),
        }
    }

    fn no_field(&self, field: &Str, receiver: &Rv) -> Walk<Rv> {
        self.fail(format!("can't evaluate field {field} in type {}", receiver.type_name()))
    }

    fn method_result(
        &mut self,
        field: &Str,
        node: NodeRef<'t>,
        result: Result<Value, CallError>,
    ) -> Walk<Rv> {
        match result {
            Ok(value) => Ok(Rv::plain(value)),
            Err(error) => {
                self.at(node);
                self.fail_call(error.context(&format!("error calling {field}")))
            }
        }
    }

    fn map_key(&self, map: &Map, field: &Str, has_args: bool) -> Walk<Rv> {
        if has_args {
            return self.fail(format!("{field} is not a method but has arguments"));
        }
        let iface = map.ty().elements_are_any();
        if let Some(value) = map.borrow().get(field.as_bytes()) {
            return Ok(Rv { v: value.clone(), iface });
        }
        match self.cx.missing_key() {
            MissingKey::Invalid => Ok(Rv::missing()),
            MissingKey::Zero if iface => Ok(Rv { v: Value::Nil, iface }),
            MissingKey::Zero => Ok(Rv::plain(Value::str(""))),
            MissingKey::Error => self.fail(format!("map has no entry for key {}", crate::fmt::quoted(field))),
        }
    }

    /// Looks up a key in an object over a map that only lists its entries.
    fn entry_of(&self, entries: &[(Value, Value)], field: &Str) -> Walk<Rv> {
        let found = entries.iter().find(|(key, _)| key.as_str() == Some(field));
        match (found, self.cx.missing_key()) {
            (Some((_, value)), _) => Ok(Rv::plain(value.clone())),
            (None, MissingKey::Error) => {
                self.fail(format!("map has no entry for key {}", crate::fmt::quoted(field)))
            }
            (None, _) => Ok(Rv::missing()),
        }
    }
}
