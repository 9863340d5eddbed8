//! The tests of this crate, as one program: linking one takes a fraction of the time of many.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod bounds;
#[path = "../../query/tests/common/mod.rs"]
mod common;
mod elements;
mod spatial_bounds;
mod stage;
mod unique;
mod write_format;
