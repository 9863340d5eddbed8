//! Entries in an arena, with their links.
//!
//! ```text
//! node := tag{u64} key_length{u24} height{u8} value_length{u32} link{u32}* key value
//! ```
//!
//! A node is completely written before its number is published. From then on only its links change,
//! which are atomic. A number reaches other threads only through a [`Link`], whose release and
//! acquire order their reads after the writes.
#![allow(
    unsafe_code,
    reason = "a node has a header, links and bytes of any length in one piece of memory"
)]

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::arena::Arena;
use super::sync::{AtomicU32, Ordering, Witness};

/// The bits of a key's length; the height is above them.
const KEY_BITS: u32 = 24;

/// Identifies a node of one list; or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeNumber(u32);

impl NodeNumber {
    /// The head as a predecessor, the end as a successor.
    pub(crate) const NONE: Self = Self(0);
}

/// Refers to a node.
#[derive(Debug)]
pub(crate) struct Link(AtomicU32);

impl Link {
    pub(crate) fn none() -> Self {
        Self(AtomicU32::new(NodeNumber::NONE.0))
    }

    /// The node that it refers to, with everything written to the node before.
    #[inline]
    pub(crate) fn get(&self) -> NodeNumber {
        NodeNumber(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, number: NodeNumber) {
        self.0.store(number.0, Ordering::Release);
    }

    /// Makes it refer to another node, unless another thread was faster.
    pub(crate) fn replace(&self, from: NodeNumber, to: NodeNumber) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let swapped = self.0.compare_exchange(from.0, to.0, success, failure);
        swapped.is_ok()
    }
}

#[derive(Debug)]
#[repr(C)]
struct Header {
    tag: [u8; 8],
    key_and_height: u32,
    value_length: u32,
    witness: Witness,
}

const _: () = assert!(align_of::<Link>() <= super::arena::UNIT);
/// The offset of links.
const LINKS_AT: usize = size_of::<Header>().next_multiple_of(align_of::<Link>());

const fn bytes_at(height: usize) -> usize {
    LINKS_AT + height * size_of::<Link>()
}

/// A node that was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkipListNode<'a> {
    start: NonNull<u8>,
    arena: PhantomData<&'a Arena>,
}

impl<'a> SkipListNode<'a> {
    #[inline]
    fn header(self) -> &'a Header {
        // SAFETY: a node begins with a header, which was written before its `SkipListNode` existed,
        // is aligned like a unit, and does not change while the arena is borrowed.
        let header: &Header = unsafe { self.start.cast().as_ref() };
        Witness::read(&header.witness);
        header
    }

    #[inline]
    fn height(self) -> usize {
        (self.header().key_and_height >> KEY_BITS) as usize
    }

    #[inline]
    fn key_length(self) -> usize {
        (self.header().key_and_height & ((1 << KEY_BITS) - 1)) as usize
    }

    #[inline]
    pub(crate) fn tag(self) -> u64 {
        u64::from_ne_bytes(self.header().tag)
    }

    /// The node's link on a level, if its height reaches that level.
    #[inline]
    pub(crate) fn link(self, level: usize) -> Option<&'a Link> {
        if level >= self.height() {
            return None;
        }
        // SAFETY: the node has room for as many links as its height says.
        let link = unsafe { self.start.add(bytes_at(level)) };
        // SAFETY: links were written with the header and lie behind it at a multiple of their
        // alignment. They are atomic, and nothing else is ever written there.
        Some(unsafe { link.cast().as_ref() })
    }

    /// This many bytes of the key and value from `at` on.
    #[inline]
    fn bytes(self, at: usize, length: usize) -> &'a [u8] {
        // SAFETY: both callers stay within the lengths that the header has, as `push` wrote them
        // together with as many bytes.
        let start = unsafe { self.start.add(bytes_at(self.height()) + at) };
        // SAFETY: as above; the bytes are never written again while the arena is borrowed.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), length) }
    }

    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        self.bytes(0, self.key_length())
    }

    #[inline]
    pub(crate) fn value(self) -> &'a [u8] {
        self.bytes(self.key_length(), self.header().value_length as usize)
    }
}

/// All nodes of one list.
#[derive(Debug)]
pub(crate) struct Nodes {
    arena: Arena,
}

impl Nodes {
    pub(crate) fn new() -> Self {
        Self {
            arena: Arena::new(),
        }
    }

    /// Writes a node without successors. Returns its number and size in bytes; `None` if there is
    /// no room for it.
    pub(crate) fn push(
        &self,
        key: &[u8],
        value: &[u8],
        tag: u64,
        height: usize,
    ) -> Option<(NodeNumber, usize)> {
        let key_length = u32::try_from(key.len()).ok()?;
        let height_bits = u32::from(u8::try_from(height).ok()?) << KEY_BITS;
        let header = Header {
            tag: tag.to_ne_bytes(),
            key_and_height: (key_length < 1 << KEY_BITS).then_some(key_length | height_bits)?,
            value_length: u32::try_from(value.len()).ok()?,
            witness: Witness::written(),
        };
        let key_at = bytes_at(height);
        let value_at = key_at + key.len();
        let size = value_at.checked_add(value.len())?;
        let (number, start) = self.arena.take(size)?;
        // SAFETY: the piece was handed out to this call alone, has room for all of `size`, and is
        // aligned like a unit. Its number is not published yet.
        unsafe { start.cast().write(header) };
        for level in 0..height {
            // SAFETY: `bytes_at(level)` is before `key_at`, so within the piece.
            let link = unsafe { start.add(bytes_at(level)) };
            // SAFETY: as for the header; links lie at multiples of their alignment.
            unsafe { link.cast().write(Link::none()) };
        }
        for (at, bytes) in [(key_at, key), (value_at, value)] {
            // SAFETY: key and value end at or before `size`.
            let target = unsafe { start.add(at) };
            // SAFETY: as above; the caller's bytes cannot overlap a piece that is not published
            // yet.
            unsafe { target.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
        Some((
            NodeNumber(number),
            size.next_multiple_of(super::arena::UNIT),
        ))
    }

    /// The node with a number.
    ///
    /// # Safety
    ///
    /// The number is [`NodeNumber::NONE`] or was returned by `push` of these nodes, and was passed
    /// here in a way that orders memory, as links do.
    #[inline]
    pub(crate) unsafe fn get(&self, number: NodeNumber) -> Option<SkipListNode<'_>> {
        Some(SkipListNode {
            // `NodeNumber::NONE` is before the first chunk, so `find` returns `None` for it.
            start: self.arena.find(number.0)?,
            arena: PhantomData,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_reads_as_it_was_written_whatever_its_lengths_and_height() {
        let nodes = Nodes::new();
        let lengths = [0, 1, 2, 3, 4, 15, 16, 17, 100, 5000];
        let mut written = Vec::new();
        for (height, &key_length) in lengths.iter().enumerate() {
            for value_length in lengths {
                let key = vec![u8::try_from(height).unwrap(); key_length];
                let value = vec![0xee; value_length];
                let tag = u64::MAX - written.len() as u64;
                let (number, _) = nodes.push(&key, &value, tag, height).unwrap();
                written.push((number, key, value, tag, height));
            }
        }
        for (number, key, value, tag, height) in written {
            // SAFETY: the number is of these nodes and of this thread.
            let node = unsafe { nodes.get(number) }.unwrap();
            assert_eq!(node.key(), key);
            assert_eq!(node.value(), value);
            assert_eq!(node.tag(), tag);
            assert!((0..height).all(|level| node.link(level).unwrap().get() == NodeNumber::NONE));
            assert!(node.link(height).is_none());
        }
    }

    #[test]
    fn a_key_whose_length_has_no_room_is_refused() {
        let nodes = Nodes::new();
        assert!(nodes.push(&vec![0; 1 << KEY_BITS], b"", 1, 1).is_none());
    }
}
