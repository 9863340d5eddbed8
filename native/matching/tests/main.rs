//! The tests of this crate, as one program: linking one takes a fraction of the time of many.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::needless_raw_string_hashes,
    reason = "rows of a table look alike"
)]

mod edges;
mod equivalence;
mod explain;
mod life;
mod support;
