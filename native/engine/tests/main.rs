//! The tests of this crate, as one program: linking one takes a fraction of the time of many.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod attribute_maps;
mod attribute_support;
mod behind;
mod budgets;
mod changes;
mod concurrency;
mod crash;
mod crash_support;
mod crash_threads;
mod damage;
mod database_support;
mod dump;
mod format_pages;
mod full_disk;
mod group_support;
mod groups;
mod head_model;
mod head_support;
mod heads;
mod keyspaces;
mod kill;
mod layout;
mod lists;
mod memtable_attributes;
mod merge_support;
mod model;
mod model_support;
mod operations;
mod ranked;
mod ranked_support;
mod transactions;
mod unknown_merges;
mod version_1;
mod vfs;
mod wal;
mod wal_crash;
mod wal_page;
