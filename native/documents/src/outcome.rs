//! How the operations of a write ended.

use std::sync::Arc;

use rillbase_query::bson::{DocumentBuf, Value, ValueRef};
use rillbase_query::ejson::{Form, write_value};

use crate::envelope::{Meta, write};
use crate::refusal::DocumentRefusal;

/// A document that was changed.
#[derive(Debug, Clone)]
pub struct DocumentChange {
    /// Its `_id`.
    pub id: Value,
    /// Its version now.
    pub version: i64,
    /// Its after-image; none: it is gone.
    pub body: Option<Arc<DocumentBuf>>,
    /// When it came into being, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was changed.
    pub updated_ms: i64,
    /// Whether it was not there before.
    pub created: bool,
}

impl DocumentChange {
    /// How the document is shown; none: it is gone.
    #[must_use]
    pub fn envelope(&self, form: Form) -> Option<String> {
        let body = self.body.as_deref()?.as_ref();
        let meta = Meta {
            version: self.version,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        };
        let id = body.get("_id").unwrap_or(ValueRef::Null);
        let mut out = String::with_capacity(body.as_bytes().len() * 2 + 128);
        write(&mut out, meta, id, body, form);
        Some(out)
    }
}

/// How one operation ended.
pub type Outcome = Result<DocumentChange, DocumentRefusal>;
/// How the operations of a write ended, in their order.
pub type Outcomes = Arc<[Outcome]>;
/// How a write ended.
pub type WriteResult = Result<Outcomes, DocumentRefusal>;

/// The results of a bulk as a JSON array. `refused` has what is said of
/// the operations that were refused, in their order.
#[must_use]
pub fn results(outcomes: &[Outcome], refused: &[&str], form: Form) -> String {
    let mut out = String::with_capacity(2 + 64 * outcomes.len());
    let mut refused = refused.iter();
    out.push('[');
    for (number, outcome) in outcomes.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        match outcome {
            Ok(change) => {
                out.push_str("{\"id\":");
                write_value(&mut out, change.id.as_ref(), form);
                out.push_str(",\"version\":");
                out.push_str(&change.version.to_string());
                out.push('}');
            }
            Err(_) => out.push_str(refused.next().copied().unwrap_or("null")),
        }
    }
    out.push(']');
    out
}
