//! Encoding of numbers, without panics on truncated input.
//!
//! Varints are LEB128; signed numbers are folded first (0, −1, 1, −2, …), so that small ones are
//! short whatever their sign.

/// Appends a varint of up to 128 bits.
pub(crate) fn put_wide(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

pub(crate) fn put_varint(out: &mut Vec<u8>, number: u64) {
    put_wide(out, u128::from(number));
}

/// Appends a signed number.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i128) {
    put_wide(out, ((number << 1) ^ (number >> 127)).cast_unsigned());
}

/// Appends a length, then the bytes.
pub(crate) fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads values from the front of bytes. `None` means that they are truncated or malformed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueReader<'a>(pub(crate) &'a [u8]);

impl<'a> ValueReader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn wide(&mut self) -> Option<u128> {
        let mut number = 0;
        for shift in (0..19).map(|place| place * 7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        u64::try_from(self.wide()?).ok()
    }

    /// A count or length, which cannot exceed the remaining bytes.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    pub(crate) fn signed(&mut self) -> Option<i128> {
        let folded = self.wide()?;
        Some((folded >> 1).cast_signed() ^ -((folded & 1).cast_signed()))
    }

    pub(crate) fn signed_64(&mut self) -> Option<i64> {
        i64::try_from(self.signed()?).ok()
    }

    pub(crate) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_were() {
        let numbers = [
            0,
            1,
            -1,
            63,
            -64,
            i128::from(i64::MIN),
            i128::MAX,
            i128::MIN,
        ];
        let mut bytes = Vec::new();
        for number in numbers {
            put_signed(&mut bytes, number);
        }
        let mut reader = ValueReader(&bytes);
        for number in numbers {
            assert_eq!(reader.signed(), Some(number));
        }
        assert!(reader.is_empty());
        assert_eq!(ValueReader(&[0x80]).varint(), None);
        assert_eq!(ValueReader(&[5, 1]).slice(), None);
    }
}
