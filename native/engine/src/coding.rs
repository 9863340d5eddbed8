//! Encoding of numbers, without panics on truncated input.
//!
//! Integers of fixed width are little-endian; varints are LEB128, at most ten bytes.

/// A length or offset that is known to fit; values beyond `usize` saturate and are then rejected by
/// the following bounds check.
pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A count or offset within one block or batch, whose size is checked to be below 4 GiB.
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// How many bytes a varint takes.
pub(crate) fn varint_length(number: u64) -> usize {
    let bits = (u64::BITS - number.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}

/// Appends a length as a varint, then the bytes.
pub(crate) fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a varint at `at`, and returns the offset after it.
#[inline]
pub(crate) fn varint_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    let mut number = u64::from(first & 0x7f);
    for position in 1..10 {
        let byte = *bytes.get(at + position)?;
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            return Some((number, at + position + 1));
        }
    }
    None
}

/// Reads four bytes at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(raw.try_into().ok()?))
}

/// Reads eight bytes at `at`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(raw.try_into().ok()?))
}

/// Reads values from the front of bytes. `None` means that they are truncated or malformed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The number of bytes read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let (number, next) = varint_at(self.bytes, self.at)?;
        self.at = next;
        Some(number)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let number = u32_at(self.bytes, self.at)?;
        self.at += 4;
        Some(number)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let number = u64_at(self.bytes, self.at)?;
        self.at += 8;
        Some(number)
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// A varint length and that many bytes.
    pub(crate) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = to_usize(self.varint()?);
        self.take(length)
    }
}

/// How many leading bytes two strings share.
#[inline]
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let mut shared = 0;
    let wide = left.chunks_exact(8).zip(right.chunks_exact(8));
    for (l, r) in wide {
        if l != r {
            break;
        }
        shared += 8;
    }
    let rest = left.iter().skip(shared).zip(right.iter().skip(shared));
    shared + rest.take_while(|(l, r)| l == r).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!(varint_at(&out, 0), Some((number, out.len())));
        }
    }

    #[test]
    fn a_varint_cut_short_or_without_an_end_is_refused() {
        assert_eq!(varint_at(&[0x80], 0), None);
        assert_eq!(varint_at(&[0xff; 11], 0), None);
        assert_eq!(ByteReader::new(&[5, 1, 2]).slice(), None);
    }

    #[test]
    fn the_common_prefix_counts_to_the_first_difference() {
        assert_eq!(common_prefix(b"0123456789ab", b"0123456789xb"), 10);
        assert_eq!(common_prefix(b"abc", b"abc"), 3);
        assert_eq!(common_prefix(b"", b"abc"), 0);
    }
}
