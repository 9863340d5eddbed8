//! Finds which of very many literals a text contains.
//!
//! A literal is registered in the posting list of one of its fragments, whose length is the largest
//! of [`LENGTHS`] that fits. For a text, the fragments of the lengths in use at each position are
//! looked up by their hashes. So the cost is the length of the text times the number of lengths in
//! use, regardless of the number of literals, and literals are added and removed without a rebuild.

use rillbase_query::bson::ValueRef;

use crate::entry::Probe;
use crate::hashes::{Hashes, mixed};
use crate::literal::{Literal, folded};

/// Lengths of fragments in bytes.
const LENGTHS: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// The number of fragments of each length at a node.
#[derive(Debug, Default)]
pub(crate) struct Grams {
    /// Those anchored at the beginning of the text.
    first: [u32; LENGTHS.len()],
    /// Those anywhere.
    anywhere: [u32; LENGTHS.len()],
}

/// The fragment by which a literal is found: its last one, because literals often have common
/// prefixes.
pub(crate) fn probe(literal: &Literal, hashes: &Hashes) -> Probe {
    let bytes = literal.text.as_bytes();
    let fitting = LENGTHS.iter().rposition(|length| *length <= bytes.len());
    let class = fitting.unwrap_or(0);
    let length = length(class);
    let piece = if literal.anchored {
        bytes.get(..length)
    } else {
        bytes.get(bytes.len().saturating_sub(length)..)
    };
    Probe::Gram {
        class: u8::try_from(class).unwrap_or(0),
        anchored: literal.anchored,
        hash: hash(piece.unwrap_or(bytes), literal.anchored, hashes),
    }
}

fn length(class: usize) -> usize {
    LENGTHS.get(class).copied().unwrap_or(1)
}

fn hash(piece: &[u8], anchored: bool, hashes: &Hashes) -> u64 {
    let mut hash = hashes.seed() ^ (piece.len() as u64) << 1 ^ u64::from(anchored);
    let (words, rest) = piece.as_chunks::<8>();
    for word in words {
        hash = mixed(hash, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let last = rest
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = mixed(hash, last);
    }
    hash
}

impl Grams {
    /// The counter of the fragments of a class.
    pub(crate) fn counter(&mut self, class: u8, anchored: bool) -> Option<&mut u32> {
        let counters = if anchored {
            &mut self.first
        } else {
            &mut self.anywhere
        };
        counters.get_mut(usize::from(class))
    }

    /// Whether there are no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.first
            .iter()
            .chain(&self.anywhere)
            .all(|count| *count == 0)
    }

    /// Passes the fragments of a text that may have entries to `visit`; `buffer` is overwritten.
    pub(crate) fn pieces(
        &self,
        value: ValueRef<'_>,
        hashes: &Hashes,
        buffer: &mut Vec<u8>,
        visit: &mut impl FnMut(Probe),
    ) {
        let (ValueRef::String(text) | ValueRef::Symbol(text)) = value else {
            return;
        };
        folded(text, buffer);
        for class in 0..LENGTHS.len() {
            let length = length(class);
            let waits = |counters: &[u32]| counters.get(class).is_some_and(|count| *count > 0);
            let mut tell = |piece: &[u8], anchored| {
                visit(Probe::Gram {
                    class: u8::try_from(class).unwrap_or(0),
                    anchored,
                    hash: hash(piece, anchored, hashes),
                });
            };
            if waits(&self.first)
                && let Some(piece) = buffer.get(..length)
            {
                tell(piece, true);
            }
            if waits(&self.anywhere) {
                buffer.windows(length).for_each(|piece| tell(piece, false));
            }
        }
    }
}
