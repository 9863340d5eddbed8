//! The tests of this crate, as one program: linking one takes a fraction of the time of many.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::needless_for_each,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the numbers of a test are small, and its steps short"
)]

mod events;
mod support;
mod transactions;
mod views;
