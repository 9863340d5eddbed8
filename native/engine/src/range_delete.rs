//! Range deletes, split into fragments that do not overlap.
//!
//! A lookup finds its fragment by binary search and in it the newest delete that its snapshot sees.
//! The fragments of a table are computed at once; a memtable adds its deletes one by one.

use crate::key::Sequence;

/// All keys from `start` up to `end`, exclusive, were deleted at `sequence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeDelete {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    pub(crate) sequence: Sequence,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fragment {
    start: Vec<u8>,
    end: Vec<u8>,
    /// Descending.
    sequences: Vec<Sequence>,
}

impl Fragment {
    fn new(start: &[u8], end: &[u8], sequences: &[Sequence]) -> Self {
        Self {
            start: start.to_vec(),
            end: end.to_vec(),
            sequences: sequences.to_vec(),
        }
    }

    fn with(mut self, sequence: Sequence) -> Self {
        let position = self.sequences.partition_point(|&newer| newer > sequence);
        if self.sequences.get(position) != Some(&sequence) {
            self.sequences.insert(position, sequence);
        }
        self
    }
}

/// Range deletes, for checking whether they cover a key.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeDeletes {
    /// Ordered by key, not overlapping.
    fragments: Vec<Fragment>,
}

impl RangeDeletes {
    pub(crate) fn new<'a>(deletes: impl IntoIterator<Item = &'a RangeDelete>) -> Self {
        let mut ordered: Vec<&RangeDelete> = deletes
            .into_iter()
            .filter(|delete| delete.start < delete.end)
            .collect();
        ordered.sort_by(|left, right| left.start.cmp(&right.start));
        let mut bounds: Vec<&[u8]> = ordered
            .iter()
            .flat_map(|delete| [delete.start.as_slice(), delete.end.as_slice()])
            .collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut fragments = Vec::new();
        // Deletes that started at or before the current fragment and have not ended.
        let mut open: Vec<&RangeDelete> = Vec::new();
        let mut coming = ordered.into_iter().peekable();
        for pair in bounds.windows(2) {
            let (Some(&start), Some(&end)) = (pair.first(), pair.last()) else {
                continue;
            };
            open.retain(|delete| delete.end.as_slice() > start);
            while let Some(delete) = coming.next_if(|delete| delete.start.as_slice() <= start) {
                open.push(delete);
            }
            if open.is_empty() {
                continue;
            }
            let mut sequences: Vec<Sequence> = open.iter().map(|delete| delete.sequence).collect();
            sequences.sort_unstable_by(|left, right| right.cmp(left));
            sequences.dedup();
            fragments.push(Fragment {
                start: start.to_vec(),
                end: end.to_vec(),
                sequences,
            });
        }
        Self { fragments }
    }

    /// Adds one delete: splits the fragments that it overlaps, and fills the gaps.
    pub(crate) fn add(&mut self, delete: &RangeDelete) {
        let (mut from, end) = (delete.start.as_slice(), delete.end.as_slice());
        if from >= end {
            return;
        }
        let fragments = &self.fragments;
        let first = fragments.partition_point(|fragment| fragment.end.as_slice() <= from);
        let behind = fragments.partition_point(|fragment| fragment.start.as_slice() < end);
        let mut cut: Vec<Fragment> = Vec::new();
        for old in fragments.get(first..behind).unwrap_or_default() {
            let (old_start, old_end) = (old.start.as_slice(), old.end.as_slice());
            if old_start < from {
                cut.push(Fragment::new(old_start, from, &old.sequences));
            } else if from < old_start {
                cut.push(Fragment::new(from, old_start, &[delete.sequence]));
                from = old_start;
            }
            let both = old_end.min(end);
            cut.push(Fragment::new(from, both, &old.sequences).with(delete.sequence));
            if end < old_end {
                cut.push(Fragment::new(end, old_end, &old.sequences));
            }
            from = both;
        }
        if from < end {
            cut.push(Fragment::new(from, end, &[delete.sequence]));
        }
        self.fragments.splice(first..behind.max(first), cut);
    }

    /// Those at or before a sequence.
    pub(crate) fn up_to(&self, sequence: Sequence) -> Self {
        let fragments = self.fragments.iter().map(|fragment| {
            let kept = fragment.sequences.iter().copied();
            let kept: Vec<Sequence> = kept.filter(|own| *own <= sequence).collect();
            Fragment::new(&fragment.start, &fragment.end, &kept)
        });
        Self {
            fragments: fragments
                .filter(|fragment| !fragment.sequences.is_empty())
                .collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The newest delete at or before `snapshot` that covers `key`; 0 if there is none.
    pub(crate) fn covering(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        if self.fragments.is_empty() {
            return 0;
        }
        let behind = self
            .fragments
            .partition_point(|fragment| fragment.end.as_slice() <= key);
        let Some(fragment) = self.fragments.get(behind) else {
            return 0;
        };
        if fragment.start.as_slice() > key {
            return 0;
        }
        let seen = fragment
            .sequences
            .iter()
            .find(|&&sequence| sequence <= snapshot);
        seen.copied().unwrap_or(0)
    }

    /// Every fragment with every sequence, in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], &[Sequence])> {
        let fragments = self.fragments.iter();
        fragments.map(|f| (f.start.as_slice(), f.end.as_slice(), f.sequences.as_slice()))
    }

    /// The approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let fragments = self.fragments.iter();
        fragments
            .map(|f| f.start.len() + f.end.len() + 8 * f.sequences.len() + 72)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delete(start: &str, end: &str, sequence: Sequence) -> RangeDelete {
        RangeDelete {
            start: start.into(),
            end: end.into(),
            sequence,
        }
    }

    #[test]
    fn the_newest_visible_delete_that_covers_a_key_is_found() {
        let deletes = [
            delete("b", "f", 5),
            delete("d", "h", 9),
            delete("x", "y", 2),
        ];
        let ranges = RangeDeletes::new(&deletes);
        assert_eq!(ranges.covering(b"a", 100), 0);
        assert_eq!(ranges.covering(b"b", 100), 5);
        assert_eq!(ranges.covering(b"e", 100), 9);
        assert_eq!(ranges.covering(b"e", 8), 5);
        assert_eq!(ranges.covering(b"g", 8), 0);
        assert_eq!(ranges.covering(b"h", 100), 0);
        assert_eq!(ranges.covering(b"x", 100), 2);
    }

    proptest::proptest! {
        #[test]
        fn deletes_added_one_by_one_cover_what_they_cover_together(
            bounds in proptest::collection::vec((0..24_u8, 0..24_u8, 1..40_u64), 0..30),
        ) {
            let deletes: Vec<RangeDelete> = bounds
                .into_iter()
                .map(|(start, end, sequence)| RangeDelete {
                    start: vec![start],
                    end: vec![end],
                    sequence,
                })
                .collect();
            let together = RangeDeletes::new(&deletes);
            let mut one_by_one = RangeDeletes::default();
            for delete in &deletes {
                one_by_one.add(delete);
            }
            for key in 0..25_u8 {
                for snapshot in 0..41 {
                    assert_eq!(
                        one_by_one.covering(&[key], snapshot),
                        together.covering(&[key], snapshot)
                    );
                }
            }
            assert!(one_by_one.fragments.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }

    #[test]
    fn an_empty_range_deletes_nothing() {
        let ranges = RangeDeletes::new(&[delete("b", "b", 5), delete("d", "c", 5)]);
        assert!(ranges.is_empty());
    }
}
