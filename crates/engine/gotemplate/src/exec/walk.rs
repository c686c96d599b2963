//! The walk over a template's nodes: text, actions, branches, loops, calls of other templates.

use super::context::Context;
use crate::error::{Error, Excerpt};
use crate::func::CallError;
use crate::parse::node::{Branch, Node, NodeRef, Operand, Span, Template, TemplateCall, Tree};
use crate::value::{Kind, List, Map, Str, Value};

/// A value with what `reflect` adds to it: whether it is wrapped in `interface {}` (an element of a map or
/// list). A wrapped nil and "no value" give different messages.
#[derive(Clone, Debug)]
pub(super) struct Rv {
    pub(super) v: Value,
    pub(super) iface: bool,
}

impl Rv {
    pub(super) fn plain(v: Value) -> Self {
        Rv { v, iface: false }
    }

    pub(super) fn missing() -> Self {
        Rv::plain(Value::Nil)
    }

    /// The type as `reflect.Value.Type` names it.
    pub(super) fn type_name(&self) -> std::borrow::Cow<'static, str> {
        if self.iface { "interface {}".into() } else { self.v.type_name() }
    }
}

/// How excerpts label a piped value.
pub(super) const PIPED: &str = "the value piped in";

/// Early end of a walk: an error, or `break`/`continue` on the way to its loop.
#[derive(Debug)]
pub(super) enum Stop {
    Break,
    Continue,
    Error(Box<Error>),
}

pub(super) type Walk<T> = Result<T, Stop>;

pub(super) struct State<'s, 'a, 't> {
    pub(super) cx: &'s mut Context<'a>,
    template: &'t Template,
    out: &'s mut Vec<u8>,
    pub(super) vars: Vec<(Str, Rv)>,
    node: Option<NodeRef<'t>>,
}

impl<'s, 'a, 't> State<'s, 'a, 't> {
    pub(super) fn new(cx: &'s mut Context<'a>, template: &'t Template, out: &'s mut Vec<u8>) -> Self {
        State { cx, template, out, vars: Vec::with_capacity(4), node: None }
    }

    pub(super) fn run(mut self, data: Value) -> Result<(), Error> {
        let dot = Rv::plain(data);
        let name = self.cx.dollar.clone();
        self.vars.push((name, dot.clone()));
        match self.walk_list(&dot, self.template.root) {
            Ok(()) => Ok(()),
            Err(Stop::Error(error)) => Err(*error),
            Err(Stop::Break | Stop::Continue) => Ok(()),
        }
    }

    /// The tree of the current template.
    pub(super) fn tree(&self) -> &'t Tree {
        &self.template.tree
    }

    pub(super) fn at(&mut self, node: NodeRef<'t>) {
        self.node = Some(node);
    }

    /// An error at the current node.
    pub(super) fn fail<T>(&self, message: impl AsRef<str>) -> Walk<T> {
        Err(Stop::Error(Box::new(Error::Exec(self.locate(message.as_ref()), self.excerpt()))))
    }

    /// An error at the current node with the value it had.
    pub(super) fn fail_at<T>(&self, message: impl AsRef<str>, value: &Value) -> Walk<T> {
        let mut excerpt = self.excerpt();
        if let (Some(excerpt), Some(node)) = (&mut excerpt, self.node) {
            excerpt.note(self.shown(node), value);
        }
        Err(Stop::Error(Box::new(Error::Exec(self.locate(message.as_ref()), excerpt))))
    }

    /// The excerpt for the current node.
    fn excerpt(&self) -> Option<Box<Excerpt>> {
        let pos = self.node?.pos() as usize;
        Some(Box::new(Excerpt::at(self.template.parse_name.to_string(), &self.tree().text, pos)))
    }

    /// A node as Go prints it.
    pub(super) fn shown(&self, node: NodeRef<'t>) -> String {
        String::from_utf8_lossy(&node.print(self.tree())).into_owned()
    }

    /// An error of a function or a limit at the current node.
    pub(super) fn fail_call<T>(&self, error: CallError) -> Walk<T> {
        self.fail_called(error, &[], &[])
    }

    /// An error of a function with its arguments; a piped argument is the last one. If the error comes from
    /// another template, the excerpt of that one is kept.
    pub(super) fn fail_called<T>(
        &self,
        mut error: CallError,
        args: &'t [Operand],
        values: &[Value],
    ) -> Walk<T> {
        let text = self.locate(error.message());
        if error.is_budget() {
            return Err(Stop::Error(Box::new(Error::Budget(text))));
        }
        let excerpt = error.take_excerpt().or_else(|| {
            let mut excerpt = self.excerpt()?;
            for (i, value) in values.iter().enumerate() {
                match args.get(i) {
                    Some(arg) if arg.kind.is_constant() => {}
                    Some(arg) => excerpt.note(self.shown(NodeRef::Operand(arg)), value),
                    None => excerpt.note(PIPED.to_owned(), value),
                }
            }
            Some(excerpt)
        });
        Err(Stop::Error(Box::new(Error::Exec(text, excerpt))))
    }

    fn locate(&self, message: &str) -> String {
        let Some(node) = self.node else {
            return format!("template: {}: {message}", self.template.name);
        };
        let text = &self.tree().text;
        let before = &text[..node.pos() as usize];
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let context = node.print(self.tree());
        format!(
            "template: {}:{line}:{column}: executing {} at <{}>: {message}",
            self.template.parse_name,
            crate::fmt::quoted(&self.template.name),
            String::from_utf8_lossy(&context),
        )
    }

    pub(super) fn step(&mut self) -> Walk<()> {
        match self.cx.step(1) {
            Ok(()) => Ok(()),
            Err(e) => self.fail_call(e),
        }
    }

    fn walk_list(&mut self, dot: &Rv, list: Span) -> Walk<()> {
        for node in self.tree().nodes(list) {
            self.walk(dot, node)?;
        }
        Ok(())
    }

    fn walk(&mut self, dot: &Rv, node: &'t Node) -> Walk<()> {
        self.at(NodeRef::Node(node));
        self.step()?;
        match node {
            Node::Text { start, end } | Node::Raw { start, end } => {
                let text = &self.tree().text[*start as usize..*end as usize];
                self.out.extend_from_slice(text);
                self.count_output(text.len())
            }
            Node::Action(pipe) => {
                let value = self.eval_pipeline(dot, pipe)?;
                if pipe.variables.is_none() {
                    self.at(NodeRef::Node(node));
                    self.print_value(node, &value.v)?;
                }
                Ok(())
            }
            Node::If(branch) => self.walk_if_or_with(dot, branch, false),
            Node::With(branch) => self.walk_if_or_with(dot, branch, true),
            Node::Range(branch) => {
                let mark = self.vars.len();
                let result = self.walk_range(dot, branch);
                self.vars.truncate(mark);
                match result {
                    Err(Stop::Break) => Ok(()),
                    other => other,
                }
            }
            Node::Template(call) => self.walk_template(dot, call),
            Node::Break { .. } => Err(Stop::Break),
            Node::Continue { .. } => Err(Stop::Continue),
        }
    }

    fn count_output(&mut self, bytes: usize) -> Walk<()> {
        match self.cx.wrote(bytes) {
            Ok(()) => Ok(()),
            Err(e) => self.fail_call(e),
        }
    }

    fn print_value(&mut self, node: &'t Node, value: &Value) -> Walk<()> {
        let before = self.out.len();
        match value {
            Value::Nil => self.out.extend_from_slice(b"<no value>"),
            Value::Str(text) => self.out.extend_from_slice(text),
            Value::Object(object) if object.kind() == Kind::Func && object.string().is_none() => {
                let shown = self.shown(NodeRef::Node(node));
                return self.fail(format!("can't print {shown} of type {}", object.type_name()));
            }
            other => {
                if let Err(e) = crate::fmt::print_into(self.out, other, self.cx.max_value_bytes()) {
                    return self.fail_call(e);
                }
            }
        }
        let written = self.out.len() - before;
        self.count_output(written)
    }

    fn walk_if_or_with(&mut self, dot: &Rv, branch: &'t Branch, with: bool) -> Walk<()> {
        let mark = self.vars.len();
        let value = self.eval_pipeline(dot, &branch.pipe)?;
        let result = if value.v.truth() {
            self.walk_list(if with { &value } else { dot }, branch.list)
        } else if let Some(list) = branch.otherwise {
            self.walk_list(dot, list)
        } else {
            Ok(())
        };
        self.vars.truncate(mark);
        result
    }

    fn walk_range(&mut self, dot: &Rv, branch: &'t Branch) -> Walk<()> {
        let value = self.eval_pipeline(dot, &branch.pipe)?.v;
        let ran = match &value {
            Value::Nil => false,
            Value::Int(kind, n) => {
                if branch.pipe.decl().len() > 1 {
                    let shown = crate::fmt::display(&value);
                    return self.fail(format!("can't use {shown} to iterate over more than one variable"));
                }
                let count = if kind.signed() { (*n).max(0) as u64 } else { *n as u64 };
                for i in 0..count {
                    let item = Rv::plain(Value::Int(*kind, i as i64));
                    self.iterate(branch, Rv::missing(), &item)?;
                }
                count > 0
            }
            Value::List(list) => self.range_list(branch, list)?,
            Value::Bytes(bytes) => {
                for (i, b) in bytes.iter().enumerate() {
                    let item = Rv::plain(Value::Int(crate::value::IntKind::Uint8, i64::from(*b)));
                    self.iterate(branch, Rv::plain(Value::int(i as i64)), &item)?;
                }
                !bytes.is_empty()
            }
            Value::Map(map) => self.range_map(branch, map)?,
            Value::Object(object) => match (object.entries(), object.plain()) {
                (Some(entries), _) => {
                    let ran = !entries.is_empty();
                    for (key, item) in entries {
                        self.iterate(branch, Rv::plain(key), &Rv::plain(item))?;
                    }
                    ran
                }
                (None, Some(Value::List(list))) => self.range_list(branch, &list)?,
                (None, Some(Value::Map(map))) => self.range_map(branch, &map)?,
                _ => return self.cannot_range(&value),
            },
            _ => return self.cannot_range(&value),
        };
        match branch.otherwise {
            Some(list) if !ran => self.walk_list(dot, list),
            _ => Ok(()),
        }
    }

    fn cannot_range(&self, value: &Value) -> Walk<()> {
        self.fail_at(format!("range can't iterate over {}", crate::fmt::display(value)), value)
    }

    fn range_list(&mut self, branch: &'t Branch, list: &List) -> Walk<bool> {
        let iface = list.ty().elements_are_any();
        for (i, item) in list.items().iter().enumerate() {
            self.iterate(branch, Rv::plain(Value::int(i as i64)), &Rv { v: item.clone(), iface })?;
        }
        Ok(!list.is_empty())
    }

    fn range_map(&mut self, branch: &'t Branch, map: &Map) -> Walk<bool> {
        let iface = map.ty().elements_are_any();
        // The body may change the map (`set`), so it iterates over a copy, like Go's sorted keys.
        let entries = map.snapshot();
        let ran = !entries.is_empty();
        for (key, item) in entries {
            self.iterate(branch, Rv::plain(Value::Str(key)), &Rv { v: item, iface })?;
        }
        Ok(ran)
    }

    fn iterate(&mut self, branch: &'t Branch, index: Rv, item: &Rv) -> Walk<()> {
        self.step()?;
        let decl = branch.pipe.decl();
        if branch.pipe.is_assign() {
            match decl {
                [one] => self.set_var(one, item.clone())?,
                [first, second] => {
                    self.set_var(first, index)?;
                    self.set_var(second, item.clone())?;
                }
                _ => {}
            }
        } else {
            let top = self.vars.len();
            if !decl.is_empty() {
                self.vars[top - 1].1 = item.clone();
            }
            if decl.len() > 1 {
                self.vars[top - 2].1 = index;
            }
        }
        let mark = self.vars.len();
        let result = self.walk_list(item, branch.list);
        self.vars.truncate(mark);
        match result {
            Err(Stop::Continue) => Ok(()),
            other => other,
        }
    }

    fn walk_template(&mut self, dot: &Rv, call: &'t TemplateCall) -> Walk<()> {
        let Some(template) = self.cx.lookup(&call.name) else {
            return self.fail(format!("template {} not defined", crate::fmt::quoted(&call.name)));
        };
        if let Err(e) = self.cx.enter() {
            return self.fail_call(e);
        }
        let dot = match &call.pipe {
            Some(pipe) => self.eval_pipeline(dot, pipe)?,
            None => Rv::missing(),
        };
        self.cx.depth += 1;
        let result = State::new(self.cx, &template, self.out).run(dot.v);
        self.cx.depth -= 1;
        result.map_err(|e| Stop::Error(Box::new(e)))
    }

    pub(super) fn set_var(&mut self, name: &Str, value: Rv) -> Walk<()> {
        match self.vars.iter_mut().rev().find(|(n, _)| n == name) {
            Some(slot) => {
                slot.1 = value;
                Ok(())
            }
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    pub(super) fn var(&self, name: &Str) -> Walk<Rv> {
        match self.vars.iter().rev().find(|(n, _)| n == name) {
            Some((_, value)) => Ok(value.clone()),
            None => self.fail(format!("undefined variable: {name}")),
        }
    }
}
