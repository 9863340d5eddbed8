//! A concurrent skip list whose entries are stored contiguously, as a memtable needs them.
//!
//! An entry of a memtable costs little beside its bytes if it is no allocation of its own, and
//! nothing holds more than a number of it: 16 bytes and four for each level that it is on, one and a
//! third at the mean. What is full at so many bytes then holds more entries, and is given back in a
//! few pieces. No type of the language has such a layout, so this crate has `unsafe` code, and
//! nothing but what belongs to that:
//!
//! - [`arena`] hands out pieces of memory, each once, which stay where they are.
//! - [`node`] writes an entry into a piece and reads it again.
//! - [`list`] is the list, over numbers of nodes; its one `unsafe` call says where those come from.
//!
//! Bytes of callers never determine where memory is read or written: lengths are in nodes, which
//! are written only by [`node`], and never again once other threads can find them.

mod arena;
mod list;
mod node;
mod sync;

pub use list::{ListCursor, SkipList, SkipListEntry};
