//! The query engine for one-time queries and live queries.
//!
//! The same code decides what a query returns and which writes change a live query, so that both
//! always agree. It is pure: no I/O, no clock, no global state; the allowed cost of an evaluation
//! is passed in as fuel.
//!
//! In the order in which data flows:
//!
//! - [`ejson`], [`bson`] — documents arrive as Extended JSON and are kept as BSON bytes, which are
//!   validated once and then read without copies. [`decimal`] is exact decimal128.
//! - [`order`], [`number`], [`key`] — how values compare, and byte strings with the same order.
//! - [`path`], [`pattern`] — dotted paths through arrays; regular expressions
//!   in linear time.
//! - [`filter`] — filters: parsed, brought to normal and canonical form, hashed, matched.
//!   [`expression`], [`schema`], [`text`] and [`geo`] are the implementations of its larger
//!   operators. [`filter_set`] matches many filters against one document.
//! - [`sort`], [`index`] — sort positions and index keys of documents.
//! - [`group`] — rows that summarize many documents; [`exact`] — their sums.
//! - [`lookup`] — other documents that a document refers to.
//! - [`projection`], [`update`], [`merge_patch`] — projecting and changing documents.
//!
//! Nothing here panics on any input: indexing and unwrapping are denied by
//! lints, recursion is bounded by [`limits`], and readers of bytes end early
//! rather than fail.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function refuses with an Error that names its code; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]
#![allow(
    clippy::doc_markdown,
    reason = "MongoDB, ObjectId, GeoJSON and so on are names, not code"
)]
#![allow(
    clippy::enum_glob_use,
    reason = "long matches over the kinds of values read better"
)]
#![allow(
    clippy::format_push_string,
    reason = "text is built where parsing happens once, never where matching does"
)]
#![allow(
    clippy::semicolon_if_nothing_returned,
    reason = "arms that do one thing read alike"
)]
#![allow(
    clippy::needless_for_each,
    reason = "one effect for each element reads well in one line"
)]
#![allow(
    clippy::similar_names,
    reason = "negate and negated, match and matches are what they are"
)]
#![allow(clippy::float_cmp, reason = "BSON equality is exact equality")]
#![allow(
    clippy::match_same_arms,
    reason = "tables of cases are in the order of the cases"
)]
#![allow(
    clippy::iter_without_into_iter,
    reason = "views are passed by value and read by `iter`"
)]
pub mod arithmetic;
pub mod bson;
pub mod decimal;
pub mod double;
pub mod ejson;
pub mod environment;
pub mod error;
pub mod exact;
pub mod expression;
mod field_values;
pub mod filter;
pub mod filter_set;
pub mod fuel;
pub mod geo;
pub mod group;
pub mod index;
pub mod key;
pub mod limits;
pub mod lookup;
pub mod merge_patch;
pub mod number;
pub mod order;
pub mod path;
pub mod pattern;
pub mod projection;
pub mod schema;
pub mod sort;
pub mod text;
mod truth;
pub mod update;
