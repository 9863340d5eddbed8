//! BSON documents, which are kept as bytes.
//!
//! [`Document`] and [`Array`] are views of bytes that were validated once ([`validate`]); reading
//! them copies nothing and cannot panic: a view of bytes that were never valid merely ends early.
//! [`Value`] owns its data, and keeps documents and arrays as bytes too, so that comparing,
//! printing and matching exist once, for [`ValueRef`].

mod document;
mod kind;
mod owned;
mod type_set;
mod validate;
mod value;
mod writer;

pub use document::{Array, ArrayValues, BsonElement, Document, DocumentElements};
pub use kind::BsonType;
pub use owned::{ArrayBuf, DocumentBuf, Value};
pub use type_set::TypeSet;
pub use validate::validate;
pub use value::{BinaryRef, ObjectId, Regex, ValueRef};
pub(crate) use writer::write_value;
pub use writer::{ArrayWriter, DocumentWriter};
