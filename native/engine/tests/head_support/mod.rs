//! Head functions, and the reads of heads.

use rillbase_engine::{HeadFunction, KeyHead, Scan};

/// The first byte of a key is the length of its head, or 0 if the key is looked up whole.
#[derive(Debug)]
pub(crate) struct PrefixLength;

impl HeadFunction for PrefixLength {
    fn name(&self) -> &'static str {
        "prefix-length"
    }

    fn head_len(&self, key: &[u8]) -> usize {
        match key.first() {
            Some(&length) if length > 0 => usize::from(length),
            _ => key.len(),
        }
    }
}

/// The head of a key is its first half.
#[derive(Debug)]
pub(crate) struct FirstHalf;

impl HeadFunction for FirstHalf {
    fn name(&self) -> &'static str {
        "first-half"
    }

    fn head_len(&self, key: &[u8]) -> usize {
        key.len() / 2
    }
}

pub(crate) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The entries with one of these heads, from the position of a scan up to a key.
pub(crate) fn forward(
    scan: &mut Scan,
    head: &KeyHead,
    heads: &[&[u8]],
    end: Option<&[u8]>,
) -> Entries {
    let mut entries = Vec::new();
    while scan.is_valid() && end.is_none_or(|end| scan.key() < end) {
        if heads.contains(&head.of(scan.key())) {
            entries.push((scan.key().to_vec(), scan.value().to_vec()));
        }
        scan.advance().unwrap();
    }
    entries
}

/// The same from the last key of a scan, in the order of the keys.
pub(crate) fn backward(scan: &mut Scan, head: &KeyHead, of: &[u8]) -> Entries {
    let mut entries = Vec::new();
    scan.last().unwrap();
    while scan.is_valid() {
        if head.of(scan.key()) == of {
            entries.push((scan.key().to_vec(), scan.value().to_vec()));
        }
        scan.retreat().unwrap();
    }
    entries.reverse();
    entries
}
