//! Writing.

/// How many bytes a varint takes.
#[must_use]
pub const fn varint_length(number: u64) -> usize {
    let bits = u64::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Appends values to bytes.
pub trait ByteWriter {
    /// Where the bytes go.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Appends bytes as they are.
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.buffer().extend_from_slice(bytes);
    }

    /// Appends a big-endian `u16`.
    #[inline]
    fn put_u16_be(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    /// Appends a big-endian `u32`.
    #[inline]
    fn put_u32_be(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    /// Appends a little-endian `u32`.
    #[inline]
    fn put_u32_le(&mut self, number: u32) {
        self.put(&number.to_le_bytes());
    }

    /// Appends a big-endian `u64`.
    #[inline]
    fn put_u64_be(&mut self, number: u64) {
        self.put(&number.to_be_bytes());
    }

    /// Appends a little-endian `u64`.
    #[inline]
    fn put_u64_le(&mut self, number: u64) {
        self.put(&number.to_le_bytes());
    }

    /// Appends a big-endian `i64`.
    #[inline]
    fn put_i64_be(&mut self, number: i64) {
        self.put(&number.to_be_bytes());
    }

    /// Appends a little-endian `f64`.
    #[inline]
    fn put_f64_le(&mut self, number: f64) {
        self.put(&number.to_le_bytes());
    }

    /// Appends a varint.
    #[inline]
    fn put_varint(&mut self, mut number: u64) {
        let out = self.buffer();
        while number >= 0x80 {
            out.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        out.push((number & 0x7f) as u8);
    }

    /// Appends a signed varint.
    #[inline]
    fn put_signed(&mut self, number: i128) {
        let mut folded = ((number << 1) ^ (number >> 127)).cast_unsigned();
        let out = self.buffer();
        while folded >= 0x80 {
            out.push((folded & 0x7f) as u8 | 0x80);
            folded >>= 7;
        }
        out.push((folded & 0x7f) as u8);
    }

    /// Appends bytes after their length as a varint.
    #[inline]
    fn put_slice(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put(bytes);
    }

    /// Appends a flag that says whether there are bytes, and then the bytes after their length.
    fn put_optional_slice(&mut self, bytes: Option<&[u8]>) {
        self.buffer().push(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.put_slice(bytes);
        }
    }

    /// Appends bytes after their length as a big-endian `u16`; bytes beyond 65,535 are cut off.
    fn put_slice_16(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.put_u16_be(length);
        self.put(bytes.get(..length.into()).unwrap_or(bytes));
    }

    /// Appends bytes after their length as a big-endian `u32`. The caller bounds the length.
    fn put_slice_32(&mut self, bytes: &[u8]) {
        self.put_count_32(bytes.len());
        self.put(bytes);
    }

    /// Appends a count as a big-endian `u32`.
    fn put_count_32(&mut self, count: usize) {
        self.put_u32_be(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

impl ByteWriter for Vec<u8> {
    #[inline]
    fn buffer(&mut self) -> &mut Vec<u8> {
        self
    }
}
