//! The tests of this crate, as one program: linking one takes a fraction of the time of many.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod claims;
mod copied_documents;
mod crash;
mod feed;
mod groups;
mod index_builds;
mod index_check;
mod model;
mod newest;
mod opened;
mod plans;
mod reads;
mod usage;
