//! Tables: immutable files of ordered entries.
//!
//! ```text
//! table := (data | filter | index)* map* range_deletes properties top footer
//! ```
//!
//! A partition is a sequence of data blocks with one filter and one index block over them; the top
//! block lists the partitions. Point lookups read one filter, one index block and one data block,
//! all through the shared cache. The byte format is described in `docs/formats/table.md`.

mod attribute_map;
pub(crate) mod builder;
pub(crate) mod codec;
pub(crate) mod cursor;
mod fetch;
pub(crate) mod filter;
pub(crate) mod footer;
pub(crate) mod frame;
pub(crate) mod lookup;
pub(crate) mod properties;
pub(crate) mod reader;
mod verify;
pub(crate) mod zone_filter;
