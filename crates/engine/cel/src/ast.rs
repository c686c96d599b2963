//! Syntax tree. Macros have their own nodes: they are evaluated directly instead of being expanded into
//! folds.

/// Offset of a node's characteristic token in the source, in characters.
pub(crate) type Position = usize;

#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) at: Position,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    /// `a.b`, `a.?b`
    Select {
        operand: Box<Expr>,
        field: String,
        optional: bool,
    },
    /// `has(a.b)`
    Has {
        operand: Box<Expr>,
        field: String,
    },
    /// A function or an operator, under its name in error messages (`_+_`, `!_`, `_?_:_`).
    Call {
        target: Option<Box<Expr>>,
        name: String,
        args: Vec<Expr>,
    },
    /// Items; true for `?item`.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    Macro(Box<Macro>),
}

#[derive(Debug, Clone)]
pub(crate) struct Macro {
    pub(crate) kind: MacroKind,
    pub(crate) range: Expr,
    pub(crate) vars: Vec<String>,
    /// The arguments after the variables.
    pub(crate) args: Vec<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
    OptMap,
    OptFlatMap,
}
