//! Reading.

use std::fmt;

/// Bytes that are not what a format specifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadError {
    /// What was expected.
    pub expected: &'static str,
    /// How many bytes were read before.
    pub offset: usize,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}", self.expected, self.offset)
    }
}

impl std::error::Error for ReadError {}

/// The value read, or what was expected instead.
pub type ReadResult<T> = Result<T, ReadError>;

/// Reads a varint of at most 64 bits at `at`; also returns the offset after it.
#[inline]
#[must_use]
pub fn varint_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    let mut number = u64::from(first & 0x7f);
    for position in 1..10 {
        let byte = *bytes.get(at + position)?;
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            // The tenth byte has room for one bit.
            let fits = position < 9 || byte < 2;
            return fits.then_some((number, at + position + 1));
        }
    }
    None
}

/// Reads a little-endian `u32` at `at`.
#[inline]
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(raw.try_into().ok()?))
}

/// Reads a little-endian `u64` at `at`.
#[inline]
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(raw.try_into().ok()?))
}

/// Reads values from the front of bytes.
#[derive(Debug, Clone, Copy)]
pub struct ByteReader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> ByteReader<'a> {
    /// A reader of all the bytes.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
        }
    }

    /// How many bytes were read.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.length - self.rest.len()
    }

    /// The bytes that were not read yet.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes were read.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The error for bytes that are not what was expected.
    #[must_use]
    pub const fn error(&self, expected: &'static str) -> ReadError {
        ReadError {
            expected,
            offset: self.offset(),
        }
    }

    /// The decoded value, or an error if the bytes were not what was expected.
    #[inline]
    pub fn check<T>(&self, decoded: Option<T>, expected: &'static str) -> ReadResult<T> {
        decoded.ok_or_else(|| self.error(expected))
    }

    /// Checks that no bytes are left.
    pub fn finish(self) -> ReadResult<()> {
        self.check(self.is_empty().then_some(()), "the end")
    }

    /// The next `length` bytes.
    #[inline]
    pub fn take(&mut self, length: usize) -> ReadResult<&'a [u8]> {
        let split = self.rest.split_at_checked(length);
        let (taken, rest) = self.check(split, "more bytes")?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> ReadResult<[u8; N]> {
        let split = self.rest.split_first_chunk();
        let (taken, rest) = self.check(split, "more bytes")?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self) -> ReadResult<u8> {
        let (first, rest) = self.check(self.rest.split_first(), "a byte")?;
        self.rest = rest;
        Ok(*first)
    }

    /// A byte that is 0 or 1.
    pub fn flag(&mut self) -> ReadResult<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.error("a flag of 0 or 1")),
        }
    }

    /// A big-endian `u16`.
    #[inline]
    pub fn u16_be(&mut self) -> ReadResult<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A big-endian `u32`.
    #[inline]
    pub fn u32_be(&mut self) -> ReadResult<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A little-endian `u32`.
    #[inline]
    pub fn u32_le(&mut self) -> ReadResult<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A big-endian `u64`.
    #[inline]
    pub fn u64_be(&mut self) -> ReadResult<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A little-endian `u64`.
    #[inline]
    pub fn u64_le(&mut self) -> ReadResult<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A big-endian `i64`.
    #[inline]
    pub fn i64_be(&mut self) -> ReadResult<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A little-endian `f64`.
    #[inline]
    pub fn f64_le(&mut self) -> ReadResult<f64> {
        self.array().map(f64::from_le_bytes)
    }

    /// A varint of at most 64 bits.
    #[inline]
    pub fn varint(&mut self) -> ReadResult<u64> {
        let (number, length) = self.check(varint_at(self.rest, 0), "a varint")?;
        self.rest = self.rest.get(length..).unwrap_or_default();
        Ok(number)
    }

    /// A signed varint of at most 128 bits.
    #[inline]
    pub fn signed(&mut self) -> ReadResult<i128> {
        let mut folded = 0;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift == 126 && bits > 3 {
                break;
            }
            folded |= bits << shift;
            if byte < 0x80 {
                return Ok((folded >> 1).cast_signed() ^ -((folded & 1).cast_signed()));
            }
        }
        Err(self.error("a signed varint of 128 bits"))
    }

    /// A signed varint of at most 64 bits.
    #[inline]
    pub fn signed_64(&mut self) -> ReadResult<i64> {
        let number = self.signed()?.try_into().ok();
        self.check(number, "a signed varint of 64 bits")
    }

    /// A count of items, as a varint. Each item takes at least one byte.
    #[inline]
    pub fn count(&mut self) -> ReadResult<usize> {
        let count = usize::try_from(self.varint()?).ok();
        let fitting = count.filter(|count| *count <= self.rest.len());
        self.check(fitting, "a count that the bytes can hold")
    }

    /// Items, preceded by their count as a varint.
    pub fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> ReadResult<T>,
    ) -> ReadResult<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }

    /// A value, preceded by a flag that says whether it is there.
    pub fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> ReadResult<T>,
    ) -> ReadResult<Option<T>> {
        self.flag()?.then(|| read(self)).transpose()
    }

    /// Bytes, preceded by their length as a varint.
    #[inline]
    pub fn slice(&mut self) -> ReadResult<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    /// Bytes, preceded by their length as a big-endian `u16`.
    pub fn slice_16(&mut self) -> ReadResult<&'a [u8]> {
        let length = self.u16_be()?;
        self.take(length.into())
    }

    /// Bytes, preceded by their length as a big-endian `u32`.
    pub fn slice_32(&mut self) -> ReadResult<&'a [u8]> {
        let length = self.u32_be()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A slice of text.
    pub fn text(&mut self) -> ReadResult<&'a str> {
        let text = std::str::from_utf8(self.slice()?).ok();
        self.check(text, "UTF-8")
    }

    /// Items of at least `least` bytes each, preceded by their count as a big-endian `u32`.
    pub fn list_32<T>(
        &mut self,
        least: usize,
        mut item: impl FnMut(&mut Self) -> ReadResult<T>,
    ) -> ReadResult<Vec<T>> {
        let count = usize::try_from(self.u32_be()?).unwrap_or(usize::MAX);
        if count.saturating_mul(least) > self.rest.len() {
            return Err(self.error("a count that the bytes can hold"));
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }
}
