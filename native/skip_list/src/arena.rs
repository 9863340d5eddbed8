//! Memory that is handed out in pieces and given back all at once.
//!
//! Pieces have numbers, which count units of memory. Chunks double in size: the one that starts at
//! number 2^n has 2^n units, so that a number locates its piece. A piece that does not fit into the
//! rest of a chunk starts the first one that is large enough; chunks without a piece are never
//! allocated, and of the others the system allocates only the pages that were written.
#![allow(
    unsafe_code,
    reason = "memory for entries of any length, which several threads fill, has no safe type"
)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use super::sync::{AtomicU32, AtomicU64, FIRST_BITS, OnceLock, Ordering};

/// The alignment of pieces, which suffices for a node's numbers and links.
pub(crate) const UNIT: usize = align_of::<AtomicU32>();
const CHUNKS: usize = (u32::BITS - FIRST_BITS) as usize;

#[derive(Debug)]
struct ArenaChunk {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a chunk is plain memory of its own. Only the owner of a piece accesses it; `node`
// explains why that is safe.
unsafe impl Send for ArenaChunk {}
// SAFETY: as above; threads share only the address of the memory, which never changes.
unsafe impl Sync for ArenaChunk {}

impl ArenaChunk {
    fn new(units: usize) -> Option<Self> {
        let layout = Layout::from_size_align(units.checked_mul(UNIT)?, UNIT).ok()?;
        // SAFETY: no chunk has zero units.
        let start = unsafe { alloc(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Some(Self { start, layout })
    }
}

impl Drop for ArenaChunk {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nothing else refers to a chunk that is
        // dropped.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Memory for nodes.
#[derive(Debug)]
pub(crate) struct Arena {
    chunks: [OnceLock<Option<ArenaChunk>>; CHUNKS],
    /// The number after the last piece.
    end: AtomicU64,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            end: AtomicU64::new(1 << FIRST_BITS),
        }
    }

    /// Allocates a piece of this many bytes, aligned to [`UNIT`] and uninitialized; `None` if there
    /// are no numbers left. It is never allocated again.
    pub(crate) fn take(&self, bytes: usize) -> Option<(u32, NonNull<u8>)> {
        let units = u64::try_from(bytes.div_ceil(UNIT)).ok()?;
        let start_from = |end: u64| match end.checked_next_power_of_two()? {
            // A chunk starts, or ends after the piece.
            boundary if boundary == end && units <= end => Some(end),
            boundary if boundary - end >= units => Some(end),
            boundary => Some(boundary.max(units.next_power_of_two())),
        };
        let numbers = 0..=u64::from(u32::MAX);
        let next_end = |end: u64| {
            let start = start_from(end)?;
            let end = start.checked_add(units)?;
            (numbers.contains(&start) && end <= *numbers.end() + 1).then_some(end)
        };
        let relaxed = Ordering::Relaxed;
        let before = self.end.fetch_update(relaxed, relaxed, next_end).ok()?;
        let number = u32::try_from(start_from(before)?).ok()?;
        let (chunk, _) = locate(number);
        let fill = || ArenaChunk::new(1 << (chunk + FIRST_BITS as usize));
        self.chunks.get(chunk)?.get_or_init(fill);
        Some((number, self.find(number)?))
    }

    /// The start of a piece; `None` if its chunk was never allocated.
    #[inline]
    pub(crate) fn find(&self, number: u32) -> Option<NonNull<u8>> {
        let (chunk, unit) = locate(number);
        let chunk = self.chunks.get(chunk)?.get()?.as_ref()?;
        // SAFETY: `locate` returns a unit within the chunk.
        Some(unsafe { chunk.start.add(unit * UNIT) })
    }
}

/// The chunk of a number, and the unit within it. Numbers before the first chunk have none.
#[inline]
fn locate(number: u32) -> (usize, usize) {
    let Some(bits) = number.checked_ilog2().filter(|&bits| bits >= FIRST_BITS) else {
        return (usize::MAX, 0);
    };
    (
        (bits - FIRST_BITS) as usize,
        (number - (1 << bits)) as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and last byte of each piece, as addresses.
    fn piece_bounds(arena: &Arena, sizes: &[usize]) -> Vec<(usize, usize)> {
        let pieces = sizes.iter().map(|&bytes| {
            let (number, start) = arena.take(bytes).unwrap();
            assert_eq!(arena.find(number), Some(start));
            (start.addr().get(), start.addr().get() + bytes - 1)
        });
        pieces.collect()
    }

    #[test]
    fn pieces_of_any_size_lie_apart_and_where_their_numbers_say() {
        let arena = Arena::new();
        let sizes = [1, 4096, 3, 4, 5, 100_000, 7, 64, 4097, 20_000, 1, 300_000];
        let mut pieces = piece_bounds(&arena, &sizes);
        assert!(pieces.iter().all(|(start, _)| start % UNIT == 0));
        pieces.sort_unstable();
        assert!(pieces.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn a_piece_that_does_not_fit_begins_a_chunk_that_is_large_enough() {
        let arena = Arena::new();
        let chunk = |bytes| locate(arena.take(bytes).unwrap().0);
        assert_eq!(chunk(4092), (0, 0));
        assert_eq!(chunk(4), (0, 1023));
        assert_eq!(chunk(4), (1, 0));
        assert_eq!(chunk(40_000), (4, 0));
        assert_eq!(chunk(4), (4, 10_000));
    }

    #[test]
    fn numbers_that_were_never_given_are_nowhere() {
        let arena = Arena::new();
        for number in [0, 1, 1023, 1024, u32::MAX] {
            assert_eq!(arena.find(number), None);
        }
    }

    #[test]
    fn exhausted_numbers_are_an_error() {
        let arena = Arena::new();
        assert!(arena.take(usize::MAX).is_none());
        arena.end.store(u64::from(u32::MAX) - 1, Ordering::Relaxed);
        assert!(arena.take(1 << 20).is_none());
    }
}
