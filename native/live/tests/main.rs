//! The tests of this crate, as one program: linking one takes a fraction of the time of many.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::format_push_string,
    reason = "texts are short and built where they are compared"
)]

mod common;
mod filter_node;
mod groups;
mod hub;
mod lookups;
mod model;
mod simulation;
mod sort_node;
mod wire;
