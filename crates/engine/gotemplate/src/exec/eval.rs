//! Pipelines, commands and calls.

use super::walk::{PIPED, Rv, State, Stop, Walk};
use crate::error::Error;
use crate::func::{Function, Signature, Type};
use crate::parse::node::{Callee, Command, NodeRef, Number, Operand, OperandKind, Pipe};
use crate::value::Value;

impl<'t> State<'_, '_, 't> {
    pub(super) fn eval_pipeline(&mut self, dot: &Rv, pipe: &'t Pipe) -> Walk<Rv> {
        self.at(NodeRef::Pipe(pipe));
        let mut value: Option<Rv> = None;
        for command in self.tree().commands(pipe) {
            let mut result = self.eval_command(dot, command, value)?;
            result.iface = false;
            value = Some(result);
        }
        let value = value.unwrap_or_else(Rv::missing);
        for name in pipe.decl() {
            if pipe.is_assign() {
                self.set_var(name, value.clone())?;
            } else {
                self.vars.push((name.clone(), value.clone()));
            }
        }
        Ok(value)
    }

    fn not_a_function(&self, args: &'t [Operand], last: Option<&Rv>) -> Walk<()> {
        if args.len() > 1 || last.is_some() {
            let shown = self.shown(NodeRef::Operand(&args[0]));
            return self.fail(format!("can't give argument to non-function {shown}"));
        }
        Ok(())
    }

    fn eval_command(&mut self, dot: &Rv, command: &'t Command, last: Option<Rv>) -> Walk<Rv> {
        self.step()?;
        let args = self.tree().args(command);
        let first = &args[0];
        match &first.kind {
            OperandKind::Field(_) | OperandKind::Chain(..) | OperandKind::Variable(..) => {
                return self.eval_access(dot, first, args, last);
            }
            OperandKind::Identifier(word) => {
                self.at(NodeRef::Operand(first));
                return self.eval_callee(
                    dot,
                    word.callee,
                    &word.name,
                    NodeRef::Command(command),
                    &args[1..],
                    last,
                );
            }
            OperandKind::Pipe(pipe) => {
                self.not_a_function(args, last.as_ref())?;
                return self.eval_pipeline(dot, pipe);
            }
            _ => {}
        }
        self.at(NodeRef::Operand(first));
        self.not_a_function(args, last.as_ref())?;
        match &first.kind {
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Nil => self.fail("nil is not a command"),
            _ => self.constant(first),
        }
    }

    /// A literal passed as `interface {}`.
    pub(super) fn constant(&mut self, operand: &'t Operand) -> Walk<Rv> {
        match &operand.kind {
            OperandKind::Bool(b) => Ok(Rv::plain(Value::Bool(*b))),
            OperandKind::String(text, _) => Ok(Rv::plain(Value::Str(text.clone()))),
            OperandKind::Number(number) => {
                self.at(NodeRef::Operand(operand));
                self.ideal(number)
            }
            _ => {
                let shown = NodeRef::Operand(operand).print(self.tree());
                self.fail(format!("can't evaluate command {}", crate::fmt::quoted(&shown)))
            }
        }
    }

    fn ideal(&self, number: &Number) -> Walk<Rv> {
        let text = number.text.as_bytes();
        let rune = text.first() == Some(&b'\'');
        let hex = text.len() > 2
            && text[0] == b'0'
            && (text[1] | 0x20) == b'x'
            && !text.iter().any(|b| matches!(b, b'p' | b'P'));
        let value = if let Some((re, im)) = number.complex {
            Value::Complex(re, im)
        } else if let Some(f) = number.float
            && !hex
            && !rune
            && text.iter().any(|b| b".eEpP".contains(b))
        {
            Value::Float(f)
        } else if let Some(i) = number.int {
            Value::int(i)
        } else {
            return self.fail(format!("{} overflows int", number.text));
        };
        Ok(Rv::plain(value))
    }

    /// Evaluates a field, chain or variable, with arguments if it ends in a method.
    fn eval_access(
        &mut self,
        dot: &Rv,
        first: &'t Operand,
        args: &'t [Operand],
        last: Option<Rv>,
    ) -> Walk<Rv> {
        let node = NodeRef::Operand(first);
        self.at(node);
        let rest = args.get(1..).unwrap_or_default();
        match &first.kind {
            OperandKind::Field(fields) => self.eval_fields(dot, dot.clone(), node, fields, rest, last),
            OperandKind::Variable(names) => {
                let (name, fields) = names.split_first().expect("a variable has a name");
                let value = self.var(name)?;
                if fields.is_empty() {
                    if !args.is_empty() {
                        self.not_a_function(args, last.as_ref())?;
                    }
                    return Ok(value);
                }
                self.eval_fields(dot, value, node, fields, rest, last)
            }
            OperandKind::Chain(chain) => {
                let (inner, fields) = &**chain;
                if matches!(inner.kind, OperandKind::Nil) {
                    let shown = self.shown(NodeRef::Operand(first));
                    return self.fail(format!("indirection through explicit nil in {shown}"));
                }
                let value = self.eval_operand(dot, inner)?;
                self.eval_fields(dot, value, node, fields, rest, last)
            }
            _ => Ok(Rv::missing()),
        }
    }

    /// Evaluates an operand that is not a constant, before its type is checked.
    fn eval_operand(&mut self, dot: &Rv, operand: &'t Operand) -> Walk<Rv> {
        self.at(NodeRef::Operand(operand));
        match &operand.kind {
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Field(_) | OperandKind::Chain(..) | OperandKind::Variable(..) => {
                self.eval_access(dot, operand, &[], None)
            }
            OperandKind::Pipe(pipe) => self.eval_pipeline(dot, pipe),
            OperandKind::Identifier(word) => {
                self.eval_callee(dot, word.callee, &word.name, NodeRef::Operand(operand), &[], None)
            }
            _ => self.constant(operand),
        }
    }

    fn eval_callee(
        &mut self,
        dot: &Rv,
        callee: Callee,
        name: &'t [u8],
        node: NodeRef<'t>,
        args: &'t [Operand],
        last: Option<Rv>,
    ) -> Walk<Rv> {
        const ONE: Signature = Signature::fixed(&[Type::Reflect]);
        const SOME: Signature = Signature::variadic(&[Type::Reflect, Type::Reflect]);
        match callee {
            Callee::Native(function) => self.eval_native(dot, function, name, node, args, last),
            Callee::And | Callee::Or => {
                self.check_count(SOME, name, args.len(), last.is_some())?;
                let stop_at = matches!(callee, Callee::Or);
                let mut value = Rv::missing();
                for arg in args {
                    value = self.eval_reflect(dot, arg)?;
                    if value.v.truth() == stop_at {
                        return Ok(value);
                    }
                }
                Ok(last.unwrap_or(value))
            }
            Callee::Len => {
                self.check_count(ONE, name, args.len(), last.is_some())?;
                let value = match (args.first(), last) {
                    (Some(arg), _) => self.eval_reflect(dot, arg)?,
                    (None, Some(last)) => last,
                    (None, None) => Rv::missing(),
                };
                match crate::builtins::length(&value.v, value.iface) {
                    Ok(n) => Ok(Rv::plain(Value::int(n as i64))),
                    Err(message) => {
                        self.at(node);
                        self.fail_at(format!("error calling len: {message}"), &value.v)
                    }
                }
            }
            Callee::Call => {
                self.check_count(SOME, name, args.len(), last.is_some())?;
                let mut values = Vec::with_capacity(args.len() + 1);
                for arg in args {
                    values.push(self.eval_reflect(dot, arg)?.v);
                }
                let shown = match args.first() {
                    Some(arg) => self.shown(NodeRef::Operand(arg)),
                    // A piped value is shown by its type, as `reflect.Value.String` does; only a string is
                    // shown as is.
                    None => match last.as_ref().map(|l| &l.v) {
                        Some(v @ Value::Str(_)) => crate::fmt::display(v),
                        Some(v) => format!("<{} Value>", v.type_name()),
                        None => String::new(),
                    },
                };
                values.extend(last.map(|l| l.v));
                self.at(node);
                // No value in a template is a Go function, so `call` always fails.
                match values.first() {
                    None | Some(Value::Nil) => self.fail("error calling call: call of nil"),
                    Some(v) => {
                        let ty = v.type_name();
                        self.fail(format!("error calling call: non-function {shown} of type {ty}"))
                    }
                }
            }
        }
    }

    fn check_count(&self, signature: Signature, name: &[u8], given: usize, last: bool) -> Walk<()> {
        let total = given + usize::from(last);
        let want = signature.params.len();
        let name = || String::from_utf8_lossy(name);
        if signature.variadic {
            if total < want - 1 {
                return self.fail(format!(
                    "wrong number of args for {}: want at least {} got {given}",
                    name(),
                    want - 1
                ));
            }
        } else if total != want {
            return self.fail(format!("wrong number of args for {}: want {want} got {total}", name()));
        }
        Ok(())
    }

    /// Evaluates arguments according to a signature.
    pub(super) fn eval_args(
        &mut self,
        dot: &Rv,
        signature: Signature,
        name: &[u8],
        args: &'t [Operand],
        last: Option<Rv>,
    ) -> Walk<Vec<Value>> {
        self.check_count(signature, name, args.len(), last.is_some())?;
        let params = signature.params;
        let type_at = |i: usize| params[i.min(params.len() - 1)];
        let mut values = Vec::with_capacity(args.len() + 1);
        for (i, arg) in args.iter().enumerate() {
            let value = self.eval_arg(dot, type_at(i), arg)?;
            values.push(value);
        }
        if let Some(last) = last {
            let ty = type_at(args.len());
            values.push(self.validate(last, ty).map_err(named_as_piped)?);
        }
        Ok(values)
    }

    fn eval_native(
        &mut self,
        dot: &Rv,
        function: Function,
        name: &'t [u8],
        node: NodeRef<'t>,
        args: &'t [Operand],
        last: Option<Rv>,
    ) -> Walk<Rv> {
        let values = self.eval_args(dot, function.signature, name, args, last)?;
        match (function.code)(self.cx, &values) {
            Ok(value) => Ok(Rv::plain(value)),
            Err(error) => {
                self.at(node);
                let before = format!("error calling {}", String::from_utf8_lossy(name));
                self.fail_called(error.context(&before), args, &values)
            }
        }
    }

    fn eval_reflect(&mut self, dot: &Rv, arg: &'t Operand) -> Walk<Rv> {
        if matches!(arg.kind, OperandKind::Nil) {
            self.at(NodeRef::Operand(arg));
            return Ok(Rv::missing());
        }
        self.eval_operand(dot, arg)
    }

    pub(super) fn eval_arg(&mut self, dot: &Rv, ty: Type, arg: &'t Operand) -> Walk<Value> {
        match &arg.kind {
            OperandKind::Nil => {
                self.at(NodeRef::Operand(arg));
                if ty.can_be_nil() {
                    return Ok(Value::Nil);
                }
                self.fail(format!("cannot assign nil to {}", ty.name()))
            }
            OperandKind::Bool(_) | OperandKind::Number(_) | OperandKind::String(..) => {
                self.typed_constant(ty, arg)
            }
            _ => {
                let value = self.eval_operand(dot, arg)?;
                self.validate(value, ty)
            }
        }
    }
}

/// Go's error names the node before the end of the pipe.
fn named_as_piped(mut stop: Stop) -> Stop {
    if let Stop::Error(error) = &mut stop
        && let Error::Exec(_, Some(excerpt)) = &mut **error
    {
        excerpt.values.iter_mut().for_each(|(expression, _)| PIPED.clone_into(expression));
    }
    stop
}
