//! The index of live queries: it finds which of very many filters match a document.
//!
//! It knows nothing about streams, versions or clocks; the caller decides what a match means. The
//! cost of a document does not grow with the number of queries, only with the number of candidates:
//!
//! ```text
//! filter ── plan ──▶ entries, of which a matching document meets one
//!                       │  the rarest, by a sample of documents
//!                       ▼
//! document ── walk ──▶ tree of paths ──▶ postings by value, type, absence,
//!                                        fragments of text, terms, cells;
//!                                        intervals by bounds
//!                       │
//!                       ▼
//!                   candidates ── check ──▶ matches
//! ```
//!
//! The entries are a proven superset, and the filter itself verifies each candidate, with one
//! exception: an interval that is equivalent to its filter, if the document has a single value at
//! the path, proves the match. Queries that no entry can represent are residual: evaluated for
//! every document, and limited by a quota. A query that is often proposed without matching moves to
//! a predicate that was observed to be rarer.
#![allow(
    clippy::doc_markdown,
    reason = "MongoDB, ObjectId, GeoJSON and so on are names, not code"
)]
mod bounds;
mod cells;
mod check;
mod class;
mod entry;
mod grams;
mod group;
mod hashes;
mod intervals;
mod limits;
mod literal;
mod match_plan;
mod matcher;
mod names;
mod placement;
mod plain;
mod plan;
mod point;
mod postings;
mod probe_counts;
mod query;
mod residual;
mod sample;
mod statistics;
mod trie;
mod walk;

pub use class::Class;
pub use limits::{MatcherLimits, QueryRefusal};
pub use matcher::{Matcher, QueryId, reach};
pub use placement::{Placement, QueryReach, placement};
pub use statistics::Statistics;
