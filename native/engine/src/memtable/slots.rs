//! Numbered places that are filled once and never move.
//!
//! They lie in chunks of doubling size, so that a number finds its place without a lock while
//! others are added.

use super::sync::{AtomicU32, FIRST_BITS, OnceLock, Ordering};

const CHUNKS: usize = 22;

type Chunk<T> = OnceLock<Box<[OnceLock<T>]>>;

/// Places numbered from 1.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    chunks: [Chunk<T>; CHUNKS],
    used: AtomicU32,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| OnceLock::new()),
            used: AtomicU32::new(0),
        }
    }

    /// Fills the next place and returns its number; `None` when there is no place left.
    pub(crate) fn push(&self, item: T) -> Option<u32> {
        let number = self.used.fetch_add(1, Ordering::Relaxed).checked_add(1)?;
        let (chunk, at) = place(number);
        let slots = self.chunks.get(chunk)?.get_or_init(|| {
            let size = 1_usize << (chunk + FIRST_BITS as usize);
            (0..size).map(|_| OnceLock::new()).collect()
        });
        slots.get(at)?.set(item).ok()?;
        Some(number)
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (chunk, at) = place(number);
        self.chunks.get(chunk)?.get()?.get(at)?.get()
    }

    /// How many places were taken.
    pub(crate) fn len(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }
}

/// Chunk, and place in it, of a number.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let shifted = u64::from(number) + (1 << FIRST_BITS);
    let bits = shifted.ilog2();
    let at = shifted - (1 << bits);
    (
        (bits - FIRST_BITS) as usize,
        usize::try_from(at).unwrap_or(usize::MAX),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_found_under_its_number() {
        let slots = Slots::new();
        let numbers: Vec<u32> = (0..5000).filter_map(|item| slots.push(item)).collect();
        assert_eq!(numbers, (1..=5000).collect::<Vec<u32>>());
        assert!(
            numbers
                .iter()
                .zip(0..)
                .all(|(&number, item)| slots.get(number) == Some(&item))
        );
        assert_eq!(slots.get(0), None);
        assert_eq!(slots.get(5001), None);
    }
}
