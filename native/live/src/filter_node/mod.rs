//! The filter node: which answers a write changes, for the queries of one query partition and the
//! documents of one write partition.

mod input;

pub use input::{Begin, Config, Input};
