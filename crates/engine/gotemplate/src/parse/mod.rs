//! Parser: tokens to trees, with Go's checks and error messages.

mod lex;
mod names;
pub(crate) mod node;
mod number;
mod operands;

use std::sync::Arc;

use self::lex::{Item, Lexer, Tok};
pub(crate) use self::names::Names;
use self::node::{
    Branch, Command, Lists, Node, OperandKind, Pipe, Span, Template, TemplateCall, Tree, Variables,
};
use crate::error::{Error, Excerpt};
use crate::func::Functions;
use crate::strconv::unquote;
use crate::value::Str;

/// Maximum nesting of parentheses and of blocks. Go allows 10,000 parentheses and any number of blocks; real
/// templates stay far below, and the stack of a small thread must suffice.
const MAX_PARENS: usize = 200;
const MAX_BLOCKS: usize = 200;

/// Delimiters and functions.
#[derive(Debug)]
pub(crate) struct ParseOptions<'a> {
    pub(crate) functions: &'a Functions,
    pub(crate) left: &'a [u8],
    pub(crate) right: &'a [u8],
}

/// State kept between texts: shared names, and buffers for growing lists.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) names: Names,
    /// Unfinished lists, inner ones on top of outer ones; a finished list is moved into the tree at once.
    unfinished: Lists,
    finished: Lists,
}

impl Workspace {
    pub(crate) fn with_names(names: Names) -> Self {
        Workspace { names, ..Workspace::default() }
    }
}

/// Parses one text into its templates: the text itself and those it defines.
pub(crate) fn parse(
    name: &Str,
    text: &Str,
    options: &ParseOptions<'_>,
    work: &mut Workspace,
) -> Result<Vec<Arc<Template>>, Error> {
    let fail = |message: String| Error::Parse(format!("template: {name}:1: {message}"), None);
    if u32::try_from(text.len()).is_err() {
        return Err(fail("template is larger than 4 GiB".to_owned()));
    }
    let has = |word: &str| options.functions.get(word).is_some();
    let lists = std::mem::take(&mut work.finished);
    let mut parser = Parser {
        name: name.clone(),
        tree: Tree { text: text.clone(), lists },
        text,
        work,
        lexer: Lexer::new(text, options.left, options.right, !has("break"), !has("continue")),
        functions: options.functions,
        frame: Frame::new(),
        done: Vec::new(),
        blocks: 0,
    };
    let root = parser.parse_root()?;
    parser.add(name.clone(), root)?;
    let Parser { mut tree, done, work, .. } = parser;
    work.finished = tree.lists;
    tree.lists = work.finished.take_exact();
    let tree = Arc::new(tree);
    let template = |(template, root)| {
        Arc::new(Template { name: template, parse_name: name.clone(), tree: Arc::clone(&tree), root })
    };
    Ok(done.into_iter().map(template).collect())
}

/// Parsing state of one tree; a `define` inside a text starts a new one.
struct Frame {
    token: [Item; 3],
    peek_count: usize,
    vars: Vec<Str>,
    /// Start of the current action.
    action: Option<u32>,
    range_depth: usize,
    paren_depth: usize,
}

impl Frame {
    fn new() -> Self {
        Frame {
            token: [Item { tok: Tok::Error, start: 0, end: 0 }; 3],
            peek_count: 0,
            vars: vec![Str::from("$")],
            action: None,
            range_depth: 0,
            paren_depth: 0,
        }
    }
}

/// How a list of nodes ended.
enum End {
    End,
    /// `else`, `else if` and `else with`; the next token distinguishes them.
    Else,
}

impl End {
    fn text(&self) -> &'static str {
        match self {
            End::End => "{{end}}",
            End::Else => "{{else}}",
        }
    }
}

enum Parsed {
    Node(Node),
    End(End),
}

fn finish<T>(stack: &mut Vec<T>, mark: usize, finished: &mut Vec<T>) -> Span {
    // At most as long as the text, which is shorter than 4 GiB.
    let start = finished.len() as u32;
    finished.extend(stack.drain(mark..));
    Span { start, end: finished.len() as u32 }
}

struct Parser<'t> {
    name: Str,
    tree: Tree,
    text: &'t [u8],
    work: &'t mut Workspace,
    lexer: Lexer<'t>,
    functions: &'t Functions,
    frame: Frame,
    done: Vec<(Str, Span)>,
    blocks: usize,
}

type Parse<T> = Result<T, Error>;

impl Parser<'_> {
    fn line_of(&self, pos: u32) -> usize {
        1 + memchr::memchr_iter(b'\n', &self.text[..pos as usize]).count()
    }

    fn error<T>(&self, message: impl AsRef<str>) -> Parse<T> {
        let pos = self.frame.token[0].start;
        let text = format!("template: {}:{}: {}", self.name, self.line_of(pos), message.as_ref());
        let excerpt = Excerpt { column: None, ..Excerpt::at(self.name.to_string(), self.text, pos as usize) };
        Err(Error::Parse(text, Some(Box::new(excerpt))))
    }

    fn unexpected<T>(&self, item: Item, context: &str) -> Parse<T> {
        let shown = self.lexer.describe(item);
        if item.tok != Tok::Error {
            return self.error(format!("unexpected {shown} in {context}"));
        }
        let started = self.frame.action.map(|pos| self.line_of(pos));
        match started.filter(|line| *line != self.line_of(item.start)) {
            None => self.error(shown),
            Some(started) => {
                let words = if shown.ends_with(" action") { "" } else { " in action" };
                self.error(format!("{shown}{words} started at {}:{started}", self.name))
            }
        }
    }

    fn next(&mut self) -> Item {
        if self.frame.peek_count > 0 {
            self.frame.peek_count -= 1;
        } else {
            self.frame.token[0] = self.lexer.next_item();
        }
        self.frame.token[self.frame.peek_count]
    }

    fn backup(&mut self) {
        self.frame.peek_count += 1;
    }

    fn backup2(&mut self, one: Item) {
        self.frame.token[1] = one;
        self.frame.peek_count = 2;
    }

    fn backup3(&mut self, two: Item, one: Item) {
        self.frame.token[1] = one;
        self.frame.token[2] = two;
        self.frame.peek_count = 3;
    }

    fn peek(&mut self) -> Item {
        if self.frame.peek_count == 0 {
            self.frame.peek_count = 1;
            self.frame.token[0] = self.lexer.next_item();
        }
        self.frame.token[self.frame.peek_count - 1]
    }

    fn next_non_space(&mut self) -> Item {
        loop {
            let item = self.next();
            if item.tok != Tok::Space {
                return item;
            }
        }
    }

    fn peek_non_space(&mut self) -> Item {
        let item = self.next_non_space();
        self.backup();
        item
    }

    fn expect(&mut self, tok: Tok, context: &str) -> Parse<Item> {
        let item = self.next_non_space();
        if item.tok == tok { Ok(item) } else { self.unexpected(item, context) }
    }

    fn add(&mut self, name: Str, root: Span) -> Parse<()> {
        match self.done.iter().position(|(known, _)| *known == name) {
            Some(at) if !self.tree.is_blank(self.done[at].1) => {
                if !self.tree.is_blank(root) {
                    let name = crate::fmt::quoted(&name);
                    return self.error(format!("template: multiple definition of template {name}"));
                }
                return Ok(());
            }
            Some(at) => drop(self.done.remove(at)),
            None => {}
        }
        self.done.push((name, root));
        Ok(())
    }

    fn parse_root(&mut self) -> Parse<Span> {
        while self.peek().tok != Tok::Eof {
            if self.peek().tok == Tok::LeftDelim {
                let delim = self.next();
                if self.next_non_space().tok == Tok::Define {
                    let outer = std::mem::replace(&mut self.frame, Frame::new());
                    self.parse_definition()?;
                    self.frame = outer;
                    continue;
                }
                self.backup2(delim);
            }
            match self.text_or_action()? {
                Parsed::End(end) => return self.error(format!("unexpected {}", end.text())),
                Parsed::Node(node) => self.work.unfinished.nodes.push(node),
            }
        }
        Ok(finish(&mut self.work.unfinished.nodes, 0, &mut self.tree.lists.nodes))
    }

    fn parse_definition(&mut self) -> Parse<()> {
        const CONTEXT: &str = "define clause";
        let item = self.next_non_space();
        let name = self.template_name(item, CONTEXT)?;
        self.expect(Tok::RightDelim, CONTEXT)?;
        let (list, end) = self.item_list()?;
        if let End::Else = end {
            return self.error(format!("unexpected {} in {CONTEXT}", end.text()));
        }
        self.add(name, list)
    }

    fn item_list(&mut self) -> Parse<(Span, End)> {
        if self.blocks >= MAX_BLOCKS {
            return self.error(format!("more than {MAX_BLOCKS} nested blocks"));
        }
        self.blocks += 1;
        let mark = self.work.unfinished.nodes.len();
        while self.peek_non_space().tok != Tok::Eof {
            match self.text_or_action()? {
                Parsed::End(end) => {
                    self.blocks -= 1;
                    return Ok((
                        finish(&mut self.work.unfinished.nodes, mark, &mut self.tree.lists.nodes),
                        end,
                    ));
                }
                Parsed::Node(node) => self.work.unfinished.nodes.push(node),
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parse<Parsed> {
        let item = self.next_non_space();
        match item.tok {
            Tok::Text => Ok(Parsed::Node(Node::Text { start: item.start, end: item.end })),
            Tok::LeftDelim => {
                self.frame.action = Some(item.start);
                let parsed = self.action()?;
                self.frame.action = None;
                Ok(parsed)
            }
            _ => self.unexpected(item, "input"),
        }
    }

    fn action(&mut self) -> Parse<Parsed> {
        let item = self.next_non_space();
        let pos = item.start;
        let node = match item.tok {
            Tok::Block => self.block_control()?,
            Tok::Break => {
                self.loop_control("{{break}}")?;
                Node::Break { pos }
            }
            Tok::Continue => {
                self.loop_control("{{continue}}")?;
                Node::Continue { pos }
            }
            Tok::Else => {
                let next = self.peek_non_space();
                if !matches!(next.tok, Tok::If | Tok::With) {
                    self.expect(Tok::RightDelim, "else")?;
                }
                return Ok(Parsed::End(End::Else));
            }
            Tok::End => {
                self.expect(Tok::RightDelim, "end")?;
                return Ok(Parsed::End(End::End));
            }
            Tok::If => self.if_control()?,
            Tok::Range => Node::Range(Box::new(self.control("range")?)),
            Tok::Template => self.template_control()?,
            Tok::With => self.with_control()?,
            Tok::RawString if self.is_alone(item) => Node::Raw { start: item.start + 1, end: item.end - 1 },
            _ => {
                self.backup();
                Node::Action(self.pipeline("command", Tok::RightDelim)?)
            }
        };
        Ok(Parsed::Node(node))
    }

    /// Whether the action consists of just a raw string; if so, its end is consumed too.
    fn is_alone(&mut self, raw: Item) -> bool {
        let mut after = self.next();
        let blank = (after.tok == Tok::Space).then_some(after);
        if blank.is_some() {
            after = self.next();
        }
        // Raw strings drop carriage returns.
        if after.tok == Tok::RightDelim && memchr::memchr(b'\r', raw.text(self.text)).is_none() {
            return true;
        }
        match blank {
            Some(blank) => self.backup3(raw, blank),
            None => self.backup2(raw),
        }
        // The caller puts the string back.
        self.next();
        false
    }

    fn loop_control(&mut self, word: &str) -> Parse<()> {
        let item = self.next_non_space();
        if item.tok != Tok::RightDelim {
            return self.unexpected(item, word);
        }
        if self.frame.range_depth == 0 {
            return self.error(format!("{word} outside {{{{range}}}}"));
        }
        Ok(())
    }

    fn if_control(&mut self) -> Parse<Node> {
        Ok(Node::If(Box::new(self.control("if")?)))
    }

    fn with_control(&mut self) -> Parse<Node> {
        Ok(Node::With(Box::new(self.control("with")?)))
    }

    fn control(&mut self, context: &str) -> Parse<Branch> {
        let vars = self.frame.vars.len();
        let pipe = self.pipeline(context, Tok::RightDelim)?;
        if context == "range" {
            self.frame.range_depth += 1;
        }
        let (list, end) = self.item_list()?;
        if context == "range" {
            self.frame.range_depth -= 1;
        }
        let otherwise = match end {
            End::End => None,
            End::Else => Some(self.otherwise(context)?),
        };
        self.frame.vars.truncate(vars);
        Ok(Branch { pos: pipe.pos, pipe, list, otherwise })
    }

    fn otherwise(&mut self, context: &str) -> Parse<Span> {
        let next = self.peek().tok;
        if context == "if" && next == Tok::If || context == "with" && next == Tok::With {
            self.next();
            if self.blocks >= MAX_BLOCKS {
                return self.error(format!("more than {MAX_BLOCKS} nested blocks"));
            }
            self.blocks += 1;
            let node = if context == "if" { self.if_control()? } else { self.with_control()? };
            self.blocks -= 1;
            let mark = self.work.unfinished.nodes.len();
            self.work.unfinished.nodes.push(node);
            return Ok(finish(&mut self.work.unfinished.nodes, mark, &mut self.tree.lists.nodes));
        }
        let (list, end) = self.item_list()?;
        if let End::Else = end {
            return self.error(format!("expected end; found {}", end.text()));
        }
        Ok(list)
    }

    fn block_control(&mut self) -> Parse<Node> {
        const CONTEXT: &str = "block clause";
        let item = self.next_non_space();
        let name = self.template_name(item, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Tok::RightDelim)?;
        let outer = std::mem::replace(&mut self.frame, Frame::new());
        let (list, end) = self.item_list()?;
        if let End::Else = end {
            self.frame = outer;
            return self.error(format!("unexpected {} in {CONTEXT}", end.text()));
        }
        self.add(name.clone(), list)?;
        self.frame = outer;
        Ok(Node::Template(Box::new(TemplateCall { pos: item.start, name, pipe: Some(pipe) })))
    }

    fn template_control(&mut self) -> Parse<Node> {
        const CONTEXT: &str = "template clause";
        let item = self.next_non_space();
        let name = self.template_name(item, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().tok != Tok::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Tok::RightDelim)?);
        }
        Ok(Node::Template(Box::new(TemplateCall { pos: item.start, name, pipe })))
    }

    fn template_name(&mut self, item: Item, context: &str) -> Parse<Str> {
        if !matches!(item.tok, Tok::String | Tok::RawString) {
            return self.unexpected(item, context);
        }
        match unquote(item.text(self.text)) {
            Some(name) => Ok(self.work.names.share(&name)),
            None => self.error("invalid syntax"),
        }
    }

    fn str_of(&mut self, item: Item) -> Str {
        self.work.names.share(item.text(self.text))
    }

    fn pipeline(&mut self, context: &str, end: Tok) -> Parse<Pipe> {
        let pos = self.peek_non_space().start;
        let variables = self.declarations(context)?;
        let mark = self.work.unfinished.commands.len();
        loop {
            let item = self.next_non_space();
            match item.tok {
                tok if tok == end => {
                    self.check_pipeline(&self.work.unfinished.commands[mark..], context)?;
                    let cmds =
                        finish(&mut self.work.unfinished.commands, mark, &mut self.tree.lists.commands);
                    return Ok(Pipe { pos, cmds, variables });
                }
                Tok::Bool
                | Tok::CharConstant
                | Tok::Complex
                | Tok::Dot
                | Tok::Field
                | Tok::Identifier
                | Tok::Number
                | Tok::Nil
                | Tok::RawString
                | Tok::String
                | Tok::Variable
                | Tok::LeftParen => {
                    self.backup();
                    let command = self.command()?;
                    self.work.unfinished.commands.push(command);
                }
                _ => return self.unexpected(item, context),
            }
        }
    }

    /// Parses the variables before `:=` or `=`.
    fn declarations(&mut self, context: &str) -> Parse<Option<Box<Variables>>> {
        let mut names = Vec::new();
        let set = |names: Vec<Str>, assign| match names.is_empty() {
            true => Ok(None),
            false => Ok(Some(Box::new(Variables { names, assign }))),
        };
        loop {
            let variable = self.peek_non_space();
            if variable.tok != Tok::Variable {
                return set(names, false);
            }
            self.next();
            let after = self.peek();
            let next = self.peek_non_space();
            if matches!(next.tok, Tok::Assign | Tok::Declare) {
                self.next_non_space();
                self.declare(&mut names, variable);
                return set(names, next.tok == Tok::Assign);
            }
            if next.tok == Tok::Char && next.text(self.text) == b"," {
                self.next_non_space();
                self.declare(&mut names, variable);
                if context == "range" && names.len() < 2 {
                    match self.peek_non_space().tok {
                        Tok::Variable | Tok::RightDelim | Tok::RightParen => continue,
                        _ => return self.error("range can only initialize variables"),
                    }
                }
                return self.error(format!("too many declarations in {context}"));
            }
            if after.tok == Tok::Space {
                self.backup3(variable, after);
            } else {
                self.backup2(variable);
            }
            return set(names, false);
        }
    }

    fn declare(&mut self, names: &mut Vec<Str>, variable: Item) {
        let name = self.str_of(variable);
        names.push(name.clone());
        self.frame.vars.push(name);
    }

    fn check_pipeline(&self, cmds: &[Command], context: &str) -> Parse<()> {
        if cmds.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (i, command) in cmds.iter().enumerate().skip(1) {
            use OperandKind::{Bool, Dot, Nil, Number, String};
            if matches!(self.tree.args(command)[0].kind, Bool(_) | Dot | Nil | Number(_) | String(..)) {
                return self.error(format!("non executable command in pipeline stage {}", i + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parse<Command> {
        let pos = self.peek_non_space().start;
        let mark = self.work.unfinished.operands.len();
        loop {
            self.operand()?;
            let item = self.next();
            match item.tok {
                Tok::Space => continue,
                Tok::RightDelim | Tok::RightParen => self.backup(),
                Tok::Pipe => {}
                _ => return self.unexpected(item, "operand"),
            }
            break;
        }
        if self.work.unfinished.operands.len() == mark {
            return self.error("empty command");
        }
        let args = finish(&mut self.work.unfinished.operands, mark, &mut self.tree.lists.operands);
        Ok(Command { pos, args })
    }
}
