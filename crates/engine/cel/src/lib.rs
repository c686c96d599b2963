//! CEL with Kubernetes' function library, compiled once and run within a cost limit.
//!
//! [`Expression`] evaluates over JSON values. [`Validator`] runs the `x-kubernetes-validations` of a schema.
//!
//! ```
//! use serde_json::json;
//! let ready = fl_cel::Expression::compile("status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", &["status"])?;
//! assert!(ready.eval_bool(&[("status", &json!({"conditions": [{"type": "Ready", "status": "True"}]}))]).unwrap_or(false));
//! # Ok::<(), fl_cel::CompileError>(())
//! ```

mod ast;
mod check;
mod cost;
mod error;
mod eval;
mod expression;
mod format_check;
mod functions;
mod identifier_escaping;
mod lexer;
mod literals;
mod parser;
mod rules;
mod types;
mod value;

pub use error::{CompileError, EvalError, Issue};
pub use expression::{DEFAULT_COST_LIMIT, Declarations, Expression};
pub use identifier_escaping::is_identifier;
pub use rules::{
    COST_BUDGET, FieldPathError, Program, RuleError, Validator, compile, field_path, uses_old_self,
};
pub use value::Value;
