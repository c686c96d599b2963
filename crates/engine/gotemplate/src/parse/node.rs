//! The parsed tree, and how Go prints its nodes in error messages.
//!
//! A chart has tens of thousands of nodes, so lists are exactly as long as what they hold and names are shared.

use crate::func::Function;
use crate::value::Str;

/// A template ready to run; shared between threads and executions.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) name: Str,
    /// Name of the text it was parsed from, for positions.
    pub(crate) parse_name: Str,
    /// The source, shared with whoever handed it over.
    pub(crate) text: Str,
    pub(crate) root: Box<[Node]>,
}

#[derive(Debug)]
pub(crate) enum Node {
    /// Plain text: bytes `start..end` of the source.
    Text {
        start: u32,
        end: u32,
    },
    Action {
        pos: u32,
        pipe: Pipe,
    },
    If(Box<Branch>),
    With(Box<Branch>),
    Range(Box<Branch>),
    Template(Box<TemplateCall>),
    Break {
        pos: u32,
    },
    Continue {
        pos: u32,
    },
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pos: u32,
    pub(crate) pipe: Pipe,
    pub(crate) list: Box<[Node]>,
    pub(crate) otherwise: Option<Box<[Node]>>,
}

#[derive(Debug)]
pub(crate) struct TemplateCall {
    pub(crate) pos: u32,
    pub(crate) name: Str,
    pub(crate) pipe: Option<Pipe>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) pos: u32,
    pub(crate) decl: Box<[Str]>,
    pub(crate) is_assign: bool,
    pub(crate) cmds: Box<[Command]>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: u32,
    pub(crate) args: Box<[Operand]>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) pos: u32,
    pub(crate) kind: OperandKind,
}

#[derive(Debug)]
pub(crate) enum OperandKind {
    Field(Box<[Str]>),
    /// Name with `$`, then fields.
    Variable(Str, Box<[Str]>),
    Chain(Box<Operand>, Box<[Str]>),
    Identifier(Str, Callee),
    Dot,
    Nil,
    Bool(bool),
    Number(Box<Number>),
    /// Text and the quoted source.
    String(Str, Str),
    Pipe(Box<Pipe>),
}

/// What an identifier names, resolved while parsing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    Native(Function),
    And,
    Or,
    Call,
    Len,
}

#[derive(Debug, Default)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
    pub(crate) text: String,
}

/// A node that an error message can point at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeRef<'t> {
    Node(&'t Node),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Operand(&'t Operand),
}

impl NodeRef<'_> {
    pub(crate) fn pos(self) -> u32 {
        match self {
            NodeRef::Node(node) => match node {
                Node::Text { start, .. } => *start,
                Node::Action { pos, .. } | Node::Break { pos } | Node::Continue { pos } => *pos,
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => branch.pos,
                Node::Template(call) => call.pos,
            },
            NodeRef::Pipe(pipe) => pipe.pos,
            NodeRef::Command(command) => command.pos,
            NodeRef::Operand(operand) => operand.pos,
        }
    }

    /// The node printed as Go prints it.
    pub(crate) fn print(self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            NodeRef::Node(node) => print_node(&mut out, node, text),
            NodeRef::Pipe(pipe) => print_pipe(&mut out, pipe),
            NodeRef::Command(command) => print_command(&mut out, command),
            NodeRef::Operand(operand) => print_operand(&mut out, operand),
        }
        out
    }
}

fn print_list(out: &mut Vec<u8>, list: &[Node], text: &[u8]) {
    for node in list {
        print_node(out, node, text);
    }
}

fn print_node(out: &mut Vec<u8>, node: &Node, text: &[u8]) {
    match node {
        Node::Text { start, end } => out.extend_from_slice(&text[*start as usize..*end as usize]),
        Node::Action { pipe, .. } => {
            out.extend_from_slice(b"{{");
            print_pipe(out, pipe);
            out.extend_from_slice(b"}}");
        }
        Node::If(branch) => print_branch(out, b"if", branch, text),
        Node::With(branch) => print_branch(out, b"with", branch, text),
        Node::Range(branch) => print_branch(out, b"range", branch, text),
        Node::Template(call) => {
            out.extend_from_slice(b"{{template ");
            crate::fmt::quote_into(out, &call.name, b'"', false);
            if let Some(pipe) = &call.pipe {
                out.push(b' ');
                print_pipe(out, pipe);
            }
            out.extend_from_slice(b"}}");
        }
        Node::Break { .. } => out.extend_from_slice(b"{{break}}"),
        Node::Continue { .. } => out.extend_from_slice(b"{{continue}}"),
    }
}

fn print_branch(out: &mut Vec<u8>, word: &[u8], branch: &Branch, text: &[u8]) {
    out.extend_from_slice(b"{{");
    out.extend_from_slice(word);
    out.push(b' ');
    print_pipe(out, &branch.pipe);
    out.extend_from_slice(b"}}");
    print_list(out, &branch.list, text);
    if let Some(list) = &branch.otherwise {
        out.extend_from_slice(b"{{else}}");
        print_list(out, list, text);
    }
    out.extend_from_slice(b"{{end}}");
}

pub(crate) fn print_pipe(out: &mut Vec<u8>, pipe: &Pipe) {
    for (i, name) in pipe.decl.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(name);
    }
    if !pipe.decl.is_empty() {
        out.extend_from_slice(if pipe.is_assign { b" = " } else { b" := " });
    }
    for (i, command) in pipe.cmds.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b" | ");
        }
        print_command(out, command);
    }
}

fn print_command(out: &mut Vec<u8>, command: &Command) {
    for (i, arg) in command.args.iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        print_wrapped(out, arg);
    }
}

/// A pipeline in parentheses, anything else as it is.
fn print_wrapped(out: &mut Vec<u8>, operand: &Operand) {
    if let OperandKind::Pipe(pipe) = &operand.kind {
        out.push(b'(');
        print_pipe(out, pipe);
        out.push(b')');
    } else {
        print_operand(out, operand);
    }
}

pub(crate) fn print_operand(out: &mut Vec<u8>, operand: &Operand) {
    let fields = match &operand.kind {
        OperandKind::Field(fields) => fields,
        OperandKind::Variable(name, fields) => {
            out.extend_from_slice(name);
            fields
        }
        OperandKind::Chain(node, fields) => {
            print_wrapped(out, node);
            fields
        }
        OperandKind::Identifier(name, _) => return out.extend_from_slice(name),
        OperandKind::Dot => return out.push(b'.'),
        OperandKind::Nil => return out.extend_from_slice(b"nil"),
        OperandKind::Bool(b) => return out.extend_from_slice(if *b { b"true" } else { b"false" }),
        OperandKind::Number(number) => return out.extend_from_slice(number.text.as_bytes()),
        OperandKind::String(_, quoted) => return out.extend_from_slice(quoted),
        OperandKind::Pipe(pipe) => return print_pipe(out, pipe),
    };
    for field in fields {
        out.push(b'.');
        out.extend_from_slice(field);
    }
}
