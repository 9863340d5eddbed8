//! The outcomes of the operations of a write.

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
    /// Its new version.
    pub version: i64,
    /// Its after-image; `None` if it was deleted.
    pub body: Option<Arc<DocumentBuf>>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was changed.
    pub updated_ms: i64,
    /// Whether it did not exist before.
    pub created: bool,
}

impl DocumentChange {
    /// The document's representation; `None` if it was deleted.
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

/// The outcome of one operation.
pub type Outcome = Result<DocumentChange, DocumentRefusal>;
/// The outcomes of the operations of a write, in order.
pub type Outcomes = Arc<[Outcome]>;
/// The outcome of a write.
pub type WriteResult = Result<Outcomes, DocumentRefusal>;

/// The results of a bulk as a JSON array. `refused` has the texts of the rejected operations, in
/// order.
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
