//! How the document store processes documents, between the bytes of a request and the rows of a
//! database.
//!
//! In the order in which data flows:
//!
//! - [`id`] — identifiers of documents: in paths, as keys, as hashes.
//! - [`bulk`], [`operation`], [`operations`] — what a caller requests, and its effect on the
//!   document. [`definition`] is what the collection requires of it: a schema, how many
//!   [`elements`] it may have, and the indexes whose [`entry`] rows go with the document. [`rule`]
//!   is who may do it, [`precondition`] at which version.
//! - [`plan`] — the writes of a group, and which rows they need; [`stage`] applies them to the rows
//!   in memory, with the keys of [`unique`] indexes once two documents would have one.
//!   [`changes`] is the result, as [`columns`] for the store and as [`after_image`]s for
//!   live queries; [`outcome`] is what the callers receive. [`write_format`] is both as bytes.
//! - [`bounds`] — which entries of an index can belong to documents that match a filter: a
//!   superset, verified by the tests.
//! - [`access`] — by which predicates a live query can be found.
//! - [`selection`] — candidates in, the result of a [`selection_request`] out: a [`page`]; [`envelope`]
//!   is how a document is represented, [`lookups`] with others that it refers to. What cannot be
//!   evaluated is omitted and counted as [`unevaluated`]. [`row_format`] is candidates as bytes,
//!   [`version_format`] documents by key with their versions.
//!
//! Pure like the query engine: no I/O; time and randomness come from outside.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function refuses with a Refusal that names its code"
)]
#![allow(
    clippy::doc_markdown,
    reason = "MongoDB, ObjectId and so on are names, not code"
)]

pub mod access;
pub mod after_image;
pub mod bounds;
pub mod bulk;
pub mod changes;
pub mod columns;
pub mod definition;
pub mod elements;
pub mod entry;
pub mod envelope;
pub mod grouping;
pub mod id;
pub mod lookups;
pub mod operation;
pub mod operations;
pub mod outcome;
pub mod page;
pub mod partition;
pub mod plan;
pub mod precondition;
pub mod refusal;
mod request_place;
pub mod row_format;
pub mod rule;
pub mod selection;
pub mod selection_request;
pub mod stage;
pub mod unevaluated;
pub mod unique;
pub mod version_format;
pub mod write_format;
