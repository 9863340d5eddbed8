//! The tests of this crate, as one program: linking one takes a fraction of the time of many.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::needless_raw_string_hashes,
    reason = "rows of a table look alike"
)]
#![allow(clippy::doc_markdown, reason = "MongoDB and so on are names, not code")]

mod common;
mod ejson;
mod explain;
mod expression;
mod filter;
mod filter_cases;
mod group;
mod lookup;
mod near;
mod noise;
mod order;
mod pattern;
mod sort_and_projection;
mod update;
