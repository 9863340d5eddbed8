//! Merges: how many documents and bytes a collection has, and its version floors.

use rillbase_binary_format::{ByteReader, ByteWriter as _};
use rillbase_engine::Merge;

/// Adds pairs of signed numbers: documents and bytes.
#[derive(Debug)]
pub(crate) struct PairSum;

/// The operand of a change of a collection's size.
pub(crate) fn encode_pair((documents, bytes): (i64, i64)) -> Vec<u8> {
    let mut out = Vec::with_capacity(12);
    out.put_signed(i128::from(documents));
    out.put_signed(i128::from(bytes));
    out
}

/// The documents and bytes of an operand or value.
pub(crate) fn decode_pair(bytes: &[u8]) -> (i64, i64) {
    let mut reader = ByteReader::new(bytes);
    let mut number = || reader.signed_64().unwrap_or(0);
    (number(), number())
}

impl Merge for PairSum {
    fn name(&self) -> &'static str {
        "collection-counts"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        let all = below.into_iter().chain(operands.iter().copied());
        let sum = all.map(decode_pair).fold((0_i64, 0_i64), |sum, one| {
            (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
        });
        encode_pair(sum)
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }

    fn is_value_alone(&self) -> bool {
        true
    }
}

/// The greatest of some numbers.
#[derive(Debug)]
pub(crate) struct Greatest;

impl Merge for Greatest {
    fn name(&self) -> &'static str {
        "collection-floors"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        // Numbers are big-endian and of one length, so that they compare as bytes.
        let all = below.into_iter().chain(operands.iter().copied());
        all.max().unwrap_or_default().to_vec()
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }

    fn is_value_alone(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_may_fall_below_zero_in_between() {
        let operands = [(3, 300), (-5, -400), (2, i64::MAX)].map(encode_pair);
        let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
        let sum = PairSum.full(b"", None, &operands);
        assert_eq!(decode_pair(&sum), (0, i64::MAX - 100));
        let part = PairSum.partial(b"", &operands[..2]).unwrap();
        assert_eq!(decode_pair(&part), (-2, -100));
    }
}
