//! The sort node: the windows of the sorted queries of one query partition.

mod input;

pub use input::{Begin, Config, Input};
