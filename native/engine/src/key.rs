//! Internal keys: the caller's key, newest entry first.
//!
//! Every entry has a tag, `sequence << 8 | kind`. Entries are ordered by key ascending, then by tag
//! descending, so that the first entry at or after `(key, Tag::seek(s))` is what a snapshot at
//! sequence `s` sees. Sequences are never reset: 2^56 of them outlast any disk.

use std::cmp::Ordering;

/// Numbers all writes of a database in order of visibility; 0 precedes the first.
pub type Sequence = u64;

/// Milliseconds since 1970.
pub type Millis = u64;

/// What an entry does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// The key is deleted.
    Delete = 0,
    /// The key has this value.
    Put = 1,
    /// An operand for the keyspace's [`Merge`](crate::Merge).
    Merge = 2,
    /// The key has this value until the time in the first eight bytes of the value.
    PutExpiring = 3,
    /// All keys from the key up to the value, exclusive, are deleted.
    RangeDelete = 4,
    /// The key is deleted; the value describes the deleted one, for zones.
    DeleteWith = 5,
}

impl EntryKind {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Delete),
            1 => Some(Self::Put),
            2 => Some(Self::Merge),
            3 => Some(Self::PutExpiring),
            4 => Some(Self::RangeDelete),
            5 => Some(Self::DeleteWith),
            _ => None,
        }
    }
}

/// Sequence and kind of an entry in one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag(pub(crate) u64);

impl Tag {
    /// After every entry of its key.
    pub(crate) const OLDEST: Self = Self(0);
    /// Before every entry of its key.
    pub(crate) const NEWEST: Self = Self(u64::MAX);

    pub(crate) fn new(sequence: Sequence, kind: EntryKind) -> Self {
        Self(sequence << 8 | kind as u64)
    }

    /// Before the newest entry that a snapshot at `sequence` sees.
    pub(crate) fn seek(sequence: Sequence) -> Self {
        Self(sequence << 8 | 0xff)
    }

    pub(crate) fn sequence(self) -> Sequence {
        self.0 >> 8
    }

    /// `None` for tags that only mark a position, and for invalid ones.
    pub(crate) fn kind(self) -> Option<EntryKind> {
        EntryKind::from_byte((self.0 & 0xff) as u8)
    }
}

/// The order of entries.
#[inline]
pub(crate) fn compare(left: (&[u8], Tag), right: (&[u8], Tag)) -> Ordering {
    left.0.cmp(right.0).then_with(|| right.1.cmp(&left.1))
}

/// The hash of a key, for filters and for the hash index of blocks.
#[inline]
pub(crate) fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The first eight bytes as a number with the same order, which compares without a cache miss.
#[inline]
pub(crate) fn prefix_number(key: &[u8]) -> u64 {
    if let Some(head) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let bytes = key.iter().chain(std::iter::repeat(&0)).take(8);
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The position of the first key that is not before a target, among ascending keys whose numbers
/// are compared first; `is_before` decides among those with the target's number.
pub(crate) fn position_by_number(
    numbers: &[u64],
    key: &[u8],
    is_before: impl Fn(usize) -> bool,
) -> usize {
    let number = prefix_number(key);
    let mut low = numbers.partition_point(|&other| other < number);
    let alike = numbers.get(low..).unwrap_or_default();
    let mut high = low + alike.partition_point(|&other| other == number);
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The value of an entry of a kind that may expire, and its expiry.
pub(crate) fn split_expiry(kind: EntryKind, value: &[u8]) -> Option<(Option<Millis>, &[u8])> {
    if kind != EntryKind::PutExpiring {
        return Some((None, value));
    }
    let (head, rest) = value.split_at_checked(EXPIRY_BYTES)?;
    Some((Some(u64::from_le_bytes(head.try_into().ok()?)), rest))
}

/// The size of the expiry in the value of an expiring put.
pub(crate) const EXPIRY_BYTES: usize = 8;

/// The shortest key that is at or after `left` and before `right`, where `left < right`.
pub(crate) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let shared = crate::coding::common_prefix(left, right);
    if let (Some(&low), Some(&high)) = (left.get(shared), right.get(shared))
        && low < u8::MAX
        && low + 1 < high
    {
        let mut short = left.get(..shared).unwrap_or(left).to_vec();
        short.push(low + 1);
        return short;
    }
    left.to_vec()
}

/// The smallest key that is greater than all keys with `prefix`; `None` if there is none.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix.get(..=kept)?.to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_entries_come_first() {
        let old = Tag::new(4, EntryKind::Put);
        let new = Tag::new(5, EntryKind::Delete);
        assert_eq!(compare((b"a", new), (b"a", old)), Ordering::Less);
        assert_eq!(compare((b"a", old), (b"b", new)), Ordering::Less);
        assert_eq!(
            compare((b"a", Tag::seek(4)), (b"a", new)),
            Ordering::Greater
        );
        assert_eq!(compare((b"a", Tag::seek(4)), (b"a", old)), Ordering::Less);
    }

    #[test]
    fn a_separator_is_short_and_lies_between() {
        assert_eq!(separator(b"abcdef", b"abzz"), b"abd");
        assert_eq!(separator(b"abc", b"abd"), b"abc");
        assert_eq!(separator(b"ab", b"abc"), b"ab");
    }

    #[test]
    fn the_end_of_a_prefix_is_behind_all_that_begin_with_it() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(&[1, 255]), Some(vec![2]));
        assert_eq!(prefix_end(&[255, 255]), None);
    }
}
