//! The heads of keys: the prefixes that the filters of tables contain.
//!
//! A scan within one head skips the tables whose filters exclude it. A table records which head
//! function its filters were built with. If the keyspace has another one by now, the filters are
//! used where the recorded one can still be evaluated, and otherwise exclude nothing.

use std::fmt::Debug;
use std::sync::Arc;

use crate::key::hash;

/// Determines the heads of keys. Must always return the same for the same key: filters are stored.
pub trait HeadFunction: Debug + Send + Sync {
    /// A stable name, stored in tables. A function that returns other heads needs another name.
    fn name(&self) -> &'static str;

    /// The length of the key's head. Keys may have heads of different lengths; for a key that is
    /// looked up whole this is the length of the key, as is any greater number.
    fn head_len(&self, key: &[u8]) -> usize;
}

/// The part of a key that filters contain.
#[derive(Debug, Clone, Default)]
pub enum KeyHead {
    /// The whole key. Filters exclude keys, but no scans.
    #[default]
    Whole,
    /// All but a tail of this many bytes, or the whole key if it is shorter: for keys that end with
    /// the time or the sequence of their write. Lookups should be scans, as memtables have no
    /// filters then.
    FixedTail(usize),
    /// A prefix whose length depends on the key.
    Function(Arc<dyn HeadFunction>),
}

impl KeyHead {
    /// The head of a key.
    #[inline]
    pub fn of<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let length = match self {
            Self::Whole => return key,
            Self::FixedTail(bytes) => key.len().checked_sub(*bytes),
            Self::Function(function) => Some(function.head_len(key)),
        };
        length.and_then(|length| key.get(..length)).unwrap_or(key)
    }

    /// Whether the head of every key is the key.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole | Self::FixedTail(0))
    }

    /// The length of the tail of every key; 0 if there is none, or if it depends on the key.
    pub(crate) fn tail_bytes(&self) -> usize {
        match self {
            Self::FixedTail(bytes) => *bytes,
            Self::Whole | Self::Function(_) => 0,
        }
    }

    /// The name of the function, if there is one.
    pub(crate) fn function_name(&self) -> Option<&'static str> {
        match self {
            Self::Function(function) => Some(function.name()),
            Self::Whole | Self::FixedTail(_) => None,
        }
    }
}

/// A key that is looked up, with the hashes that filters contain if it is present.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedKey<'a> {
    pub(crate) key: &'a [u8],
    /// Of the whole key.
    pub(crate) hash: u64,
    head: &'a KeyHead,
    /// Of the head by the keyspace's function, if it has one; otherwise of the whole key.
    function_hash: u64,
}

impl<'a> HashedKey<'a> {
    #[inline]
    pub(crate) fn new(key: &'a [u8], head: &'a KeyHead) -> Self {
        let whole = hash(key);
        let function_hash = match head {
            KeyHead::Function(_) => match head.of(key) {
                prefix if prefix.len() == key.len() => whole,
                prefix => hash(prefix),
            },
            KeyHead::Whole | KeyHead::FixedTail(_) => whole,
        };
        Self {
            key,
            hash: whole,
            head,
            function_hash,
        }
    }
}

/// Which heads the filters of a table contain, as the table records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordedHead {
    Whole,
    FixedTail(usize),
    /// By the function with this name.
    Function(String),
}

impl RecordedHead {
    pub(crate) fn new(tail_bytes: usize, function_name: Option<&str>) -> Self {
        match (function_name, tail_bytes) {
            (Some(name), _) => Self::Function(name.to_owned()),
            (None, 0) => Self::Whole,
            (None, bytes) => Self::FixedTail(bytes),
        }
    }

    /// Whether the keyspace's heads are those of the table.
    pub(crate) fn is_by(&self, head: &KeyHead) -> bool {
        match self {
            Self::Whole => head.is_whole(),
            Self::FixedTail(bytes) => head.tail_bytes() == *bytes,
            Self::Function(name) => head.function_name() == Some(name),
        }
    }

    /// The hash that the filters contain if the key is present; `None` if that is unknown, because
    /// the keyspace does not have the table's function.
    #[inline]
    pub(crate) fn filter_hash(&self, key: &HashedKey<'_>) -> Option<u64> {
        match self {
            Self::Whole => Some(key.hash),
            Self::FixedTail(bytes) => Some(hash(KeyHead::FixedTail(*bytes).of(key.key))),
            Self::Function(_) => self.is_by(key.head).then_some(key.function_hash),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first byte of a key is the length of its head.
    #[derive(Debug)]
    struct LengthFirst;

    impl HeadFunction for LengthFirst {
        fn name(&self) -> &'static str {
            "length-first"
        }

        fn head_len(&self, key: &[u8]) -> usize {
            key.first().map_or(0, |&length| usize::from(length))
        }
    }

    #[test]
    fn a_head_is_a_prefix_of_its_key_whatever_the_function_returns() {
        let function = KeyHead::Function(Arc::new(LengthFirst));
        assert_eq!(function.of(b"\x03abc"), b"\x03ab");
        assert_eq!(function.of(b"\x04abc"), b"\x04abc");
        assert_eq!(function.of(b"\x99abc"), b"\x99abc");
        assert_eq!(function.of(b""), b"");
        assert_eq!(KeyHead::FixedTail(3).of(b"abcd"), b"a");
        assert_eq!(KeyHead::FixedTail(5).of(b"abcd"), b"abcd");
        assert_eq!(KeyHead::Whole.of(b"abcd"), b"abcd");
    }

    #[test]
    fn filters_are_used_exactly_if_their_heads_can_be_determined() {
        let function = KeyHead::Function(Arc::new(LengthFirst));
        let key = b"\x03abc";
        let named = RecordedHead::new(0, Some("length-first"));
        let by_function = HashedKey::new(key, &function);
        let by_tail = HashedKey::new(key, &KeyHead::FixedTail(2));
        assert_eq!(named.filter_hash(&by_function), Some(hash(b"\x03ab")));
        assert_eq!(named.filter_hash(&by_tail), None);
        assert_eq!(
            RecordedHead::new(0, Some("other")).filter_hash(&by_function),
            None
        );
        for lookup in [by_function, by_tail] {
            let tail = RecordedHead::new(1, None).filter_hash(&lookup);
            assert_eq!(tail, Some(hash(b"\x03ab")));
            let whole = RecordedHead::new(0, None).filter_hash(&lookup);
            assert_eq!(whole, Some(hash(key)));
        }
        assert!(named.is_by(&function) && !named.is_by(&KeyHead::FixedTail(1)));
        assert!(RecordedHead::FixedTail(1).is_by(&KeyHead::FixedTail(1)));
        assert!(!RecordedHead::FixedTail(1).is_by(&function));
        assert!(!RecordedHead::Whole.is_by(&function));
        assert!(RecordedHead::Whole.is_by(&KeyHead::FixedTail(0)));
    }
}
