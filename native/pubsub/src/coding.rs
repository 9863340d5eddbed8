//! Encoding of numbers and slices.

/// Appends a number in as few bytes as it needs, seven bits each, the lowest first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Appends a length, then the bytes.
pub(crate) fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads encoded values; `None` at the first malformed one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordReader<'a>(pub(crate) &'a [u8]);

impl<'a> RecordReader<'a> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (slice, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(slice)
    }

    pub(crate) fn double(&mut self) -> Option<f64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(f64::from_le_bytes(*head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_cut_ones_do_not() {
        for number in [0, 1, 127, 128, 1 << 40, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            assert_eq!(RecordReader(&bytes).varint(), Some(number));
            bytes.pop();
            assert_eq!(RecordReader(&bytes).varint(), None);
        }
        assert_eq!(RecordReader(&[0xff; 11]).varint(), None);
    }
}
