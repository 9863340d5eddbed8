//! Finding very many literals in a text.
//!
//! A literal waits in the posting of one piece of it, whose length is the
//! largest of [`LENGTHS`] that fits. A text is cut at each place into pieces
//! of the lengths in use; each is looked up by its hash. So a text costs its
//! length times the lengths in use, however many literals there are, and
//! literals come and go without anything being rebuilt.

use rillbase_query::bson::ValueRef;

use crate::entry::{Hashes, Probe, mixed};
use crate::literal::{Literal, folded};

/// Lengths of pieces in bytes.
const LENGTHS: [usize; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];

/// How many pieces of each length wait at a node.
#[derive(Debug, Default)]
pub(crate) struct Grams {
    /// Those at the beginning of the text.
    first: [u32; LENGTHS.len()],
    /// Those anywhere.
    anywhere: [u32; LENGTHS.len()],
}

/// The piece by which a literal is found: its last one, because common parts of literals are
/// usually at the front.
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
    /// The number of pieces of a class that wait.
    pub(crate) fn counter(&mut self, class: u8, anchored: bool) -> Option<&mut u32> {
        let counters = if anchored {
            &mut self.first
        } else {
            &mut self.anywhere
        };
        counters.get_mut(usize::from(class))
    }

    /// Whether none wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.first
            .iter()
            .chain(&self.anywhere)
            .all(|count| *count == 0)
    }

    /// Tells `visit` the pieces of a text that may wait; `buffer` is overwritten.
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
