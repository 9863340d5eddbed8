//! A concurrent skip list whose entries are stored contiguously, as a memtable needs them.
//!
//! An entry is not an allocation of its own, and is referred to by a number instead of a pointer.
//! So its overhead is only 16 bytes, plus four for each of its levels (one and a third on average):
//! a memtable of a given size holds more entries, and is freed in a few pieces. No safe type has
//! such a layout, so this crate contains `unsafe` code, and nothing that does not need it:
//!
//! - [`arena`] allocates pieces of memory, which are never moved or reused.
//! - [`node`] writes an entry into a piece, and reads it.
//! - [`list`] is the list of node numbers; its one `unsafe` call explains where the numbers come
//!   from.
//!
//! A caller's bytes never determine which memory is accessed: lengths are in the headers of nodes,
//! which only [`node`] writes, and never after other threads can find the node.

mod arena;
mod list;
mod node;
mod sync;

pub use list::{ListCursor, SkipList, SkipListEntry};
