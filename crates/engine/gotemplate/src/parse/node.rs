//! Parsed trees, and how Go prints their nodes in error messages.
//!
//! A chart has tens of thousands of nodes, so the nodes of one text are stored in a few long lists, and names
//! are shared.

use std::sync::Arc;

use crate::func::Function;
use crate::value::Str;

/// A parsed template; shared between threads and executions.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) name: Str,
    /// Name of the text it was parsed from, for locations.
    pub(crate) parse_name: Str,
    pub(crate) tree: Arc<Tree>,
    pub(crate) root: Span,
}

impl Template {
    /// Whether it contains only white space: such a definition does not replace another.
    pub(crate) fn is_blank(&self) -> bool {
        self.tree.is_blank(self.root)
    }
}

/// A range of one of the lists of a [`Tree`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// All nodes of one text. Nodes of a block, commands of a pipeline and operands of a command are each a
/// contiguous range.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The source, shared with the caller.
    pub(crate) text: Str,
    pub(crate) lists: Lists,
}

/// The lists of a tree.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) nodes: Vec<Node>,
    pub(crate) commands: Vec<Command>,
    pub(crate) operands: Vec<Operand>,
}

impl Lists {
    /// Moves everything into lists of exact size; these lists keep their capacity for reuse.
    pub(crate) fn take_exact(&mut self) -> Lists {
        fn exact<T>(list: &mut Vec<T>) -> Vec<T> {
            let mut taken = Vec::with_capacity(list.len());
            taken.append(list);
            taken
        }
        Lists {
            nodes: exact(&mut self.nodes),
            commands: exact(&mut self.commands),
            operands: exact(&mut self.operands),
        }
    }
}

impl Tree {
    pub(crate) fn nodes(&self, span: Span) -> &[Node] {
        &self.lists.nodes[span.start as usize..span.end as usize]
    }

    pub(crate) fn commands(&self, pipe: &Pipe) -> &[Command] {
        &self.lists.commands[pipe.cmds.start as usize..pipe.cmds.end as usize]
    }

    pub(crate) fn args(&self, command: &Command) -> &[Operand] {
        &self.lists.operands[command.args.start as usize..command.args.end as usize]
    }

    pub(crate) fn is_blank(&self, span: Span) -> bool {
        self.nodes(span).iter().all(|node| match node {
            Node::Text { start, end } => {
                let bytes = &self.text[*start as usize..*end as usize];
                crate::runes::runes(bytes).all(|(_, c, _)| crate::runes::is_space(c))
            }
            _ => false,
        })
    }
}

#[derive(Debug)]
pub(crate) enum Node {
    /// Plain text: the range `start..end` of the source.
    Text {
        start: u32,
        end: u32,
    },
    /// An action with just a raw string, whose content is printed as is.
    Raw {
        start: u32,
        end: u32,
    },
    Action(Pipe),
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
    pub(crate) list: Span,
    pub(crate) otherwise: Option<Span>,
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
    pub(crate) cmds: Span,
    /// Boxed because few pipelines declare variables.
    pub(crate) variables: Option<Box<Variables>>,
}

/// The variables that a pipeline declares or assigns.
#[derive(Debug)]
pub(crate) struct Variables {
    pub(crate) names: Vec<Str>,
    /// `=`, not `:=`
    pub(crate) assign: bool,
}

impl Pipe {
    /// Names of the variables.
    pub(crate) fn decl(&self) -> &[Str] {
        self.variables.as_ref().map_or(&[], |variables| &variables.names)
    }

    /// Whether they are assigned rather than declared.
    pub(crate) fn is_assign(&self) -> bool {
        self.variables.as_ref().is_some_and(|variables| variables.assign)
    }
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) pos: u32,
    pub(crate) args: Span,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) pos: u32,
    pub(crate) kind: OperandKind,
}

#[derive(Debug)]
pub(crate) enum OperandKind {
    Field(Arc<[Str]>),
    /// Name with `$`, then fields.
    Variable(Arc<[Str]>),
    Chain(Box<(Operand, Arc<[Str]>)>),
    Identifier(Arc<Word>),
    Dot,
    Nil,
    Bool(bool),
    Number(Arc<Number>),
    /// Text, and the end of the quoted source.
    String(Str, u32),
    Pipe(Box<Pipe>),
}

impl OperandKind {
    /// Whether this is a literal.
    pub(crate) fn is_constant(&self) -> bool {
        use OperandKind::{Bool, Nil, Number, String};
        matches!(self, Bool(_) | Nil | Number(_) | String(..))
    }
}

/// A function name and its function.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) name: Str,
    pub(crate) callee: Callee,
}

/// The function of an identifier, resolved while parsing.
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

/// A node that an error message can refer to.
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
                // Position of the quote.
                Node::Raw { start, .. } => *start - 1,
                Node::Action(pipe) => pipe.pos,
                Node::Break { pos } | Node::Continue { pos } => *pos,
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => branch.pos,
                Node::Template(call) => call.pos,
            },
            NodeRef::Pipe(pipe) => pipe.pos,
            NodeRef::Command(command) => command.pos,
            NodeRef::Operand(operand) => operand.pos,
        }
    }

    /// Prints the node as Go does.
    pub(crate) fn print(self, tree: &Tree) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            NodeRef::Node(node) => print_node(&mut out, node, tree),
            NodeRef::Pipe(pipe) => print_pipe(&mut out, pipe, tree),
            NodeRef::Command(command) => print_command(&mut out, command, tree),
            NodeRef::Operand(operand) => print_operand(&mut out, operand, tree),
        }
        out
    }
}

fn print_list(out: &mut Vec<u8>, list: Span, tree: &Tree) {
    for node in tree.nodes(list) {
        print_node(out, node, tree);
    }
}

fn print_node(out: &mut Vec<u8>, node: &Node, tree: &Tree) {
    match node {
        Node::Text { start, end } => out.extend_from_slice(&tree.text[*start as usize..*end as usize]),
        Node::Raw { start, end } => {
            out.extend_from_slice(b"{{");
            out.extend_from_slice(&tree.text[*start as usize - 1..*end as usize + 1]);
            out.extend_from_slice(b"}}");
        }
        Node::Action(pipe) => {
            out.extend_from_slice(b"{{");
            print_pipe(out, pipe, tree);
            out.extend_from_slice(b"}}");
        }
        Node::If(branch) => print_branch(out, b"if", branch, tree),
        Node::With(branch) => print_branch(out, b"with", branch, tree),
        Node::Range(branch) => print_branch(out, b"range", branch, tree),
        Node::Template(call) => {
            out.extend_from_slice(b"{{template ");
            crate::fmt::quote_into(out, &call.name, b'"', false);
            if let Some(pipe) = &call.pipe {
                out.push(b' ');
                print_pipe(out, pipe, tree);
            }
            out.extend_from_slice(b"}}");
        }
        Node::Break { .. } => out.extend_from_slice(b"{{break}}"),
        Node::Continue { .. } => out.extend_from_slice(b"{{continue}}"),
    }
}

fn print_branch(out: &mut Vec<u8>, word: &[u8], branch: &Branch, tree: &Tree) {
    out.extend_from_slice(b"{{");
    out.extend_from_slice(word);
    out.push(b' ');
    print_pipe(out, &branch.pipe, tree);
    out.extend_from_slice(b"}}");
    print_list(out, branch.list, tree);
    if let Some(list) = branch.otherwise {
        out.extend_from_slice(b"{{else}}");
        print_list(out, list, tree);
    }
    out.extend_from_slice(b"{{end}}");
}

pub(crate) fn print_pipe(out: &mut Vec<u8>, pipe: &Pipe, tree: &Tree) {
    for (i, name) in pipe.decl().iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(name);
    }
    if !pipe.decl().is_empty() {
        out.extend_from_slice(if pipe.is_assign() { b" = " } else { b" := " });
    }
    for (i, command) in tree.commands(pipe).iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b" | ");
        }
        print_command(out, command, tree);
    }
}

fn print_command(out: &mut Vec<u8>, command: &Command, tree: &Tree) {
    for (i, arg) in tree.args(command).iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        print_wrapped(out, arg, tree);
    }
}

/// Prints a pipeline in parentheses, anything else as is.
fn print_wrapped(out: &mut Vec<u8>, operand: &Operand, tree: &Tree) {
    if let OperandKind::Pipe(pipe) = &operand.kind {
        out.push(b'(');
        print_pipe(out, pipe, tree);
        out.push(b')');
    } else {
        print_operand(out, operand, tree);
    }
}

pub(crate) fn print_operand(out: &mut Vec<u8>, operand: &Operand, tree: &Tree) {
    let fields = match &operand.kind {
        OperandKind::Field(fields) => &fields[..],
        OperandKind::Variable(names) => {
            out.extend_from_slice(&names[0]);
            &names[1..]
        }
        OperandKind::Chain(chain) => {
            print_wrapped(out, &chain.0, tree);
            &chain.1[..]
        }
        OperandKind::Identifier(word) => return out.extend_from_slice(&word.name),
        OperandKind::Dot => return out.push(b'.'),
        OperandKind::Nil => return out.extend_from_slice(b"nil"),
        OperandKind::Bool(b) => return out.extend_from_slice(if *b { b"true" } else { b"false" }),
        OperandKind::Number(number) => return out.extend_from_slice(number.text.as_bytes()),
        OperandKind::String(_, end) => {
            return out.extend_from_slice(&tree.text[operand.pos as usize..*end as usize]);
        }
        OperandKind::Pipe(pipe) => return print_pipe(out, pipe, tree),
    };
    for field in fields {
        out.push(b'.');
        out.extend_from_slice(field);
    }
}
