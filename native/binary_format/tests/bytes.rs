//! Values round-trip, and hostile bytes are rejected.
#![allow(missing_docs, reason = "a test")]

use proptest::prelude::*;
use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadError, varint_at, varint_length};

/// Reads random kinds of values until the bytes are rejected or all read.
fn read_all(bytes: &[u8], kinds: &[u8]) {
    let mut reader = ByteReader::new(bytes);
    for kind in kinds {
        let before = reader.rest().len();
        let read = match kind % 13 {
            0 => reader.byte().map(drop),
            1 => reader.flag().map(drop),
            2 => reader.u16_be().map(drop),
            3 => reader.u32_le().map(drop),
            4 => reader.u64_be().map(drop),
            5 => reader.varint().map(drop),
            6 => reader.signed().map(drop),
            7 => reader.signed_64().map(drop),
            8 => reader.count().map(|count| assert!(count <= before)),
            9 => reader.slice().map(drop),
            10 => reader.slice_16().and_then(|_| reader.slice_32()).map(drop),
            11 => reader.text().map(drop),
            _ => reader.list_32(1, ByteReader::slice).map(drop),
        };
        let offset = reader.offset();
        assert_eq!(offset + reader.rest().len(), bytes.len());
        if let Err(error) = read {
            assert_eq!(error.offset, offset, "{error}");
            return;
        }
    }
}

#[test]
fn bytes_on_disk_are_those_of_the_format() {
    let mut out = Vec::new();
    out.put_varint(300);
    out.put_signed(-65);
    out.put_slice(b"ab");
    out.put_slice_16(b"c");
    out.put_slice_32(b"d");
    out.put_u32_be(1);
    out.put_u32_le(1);
    out.put_f64_le(1.0);
    let expected = [
        &[0xac, 0x02][..],
        &[0x81, 0x01],
        &[2, b'a', b'b'],
        &[0, 1, b'c'],
        &[0, 0, 0, 1, b'd'],
        &[0, 0, 0, 1],
        &[1, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn an_error_names_what_was_expected_and_where() {
    let mut reader = ByteReader::new(&[1, 5, 2]);
    assert!(reader.flag().unwrap());
    let error = reader.slice().unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a count that the bytes can hold at byte 2"
    );
    assert_eq!(
        ByteReader::new(b"x").finish(),
        Err(ReadError {
            expected: "the end",
            offset: 0
        })
    );
}

#[test]
fn a_varint_that_does_not_end_or_fit_is_refused() {
    assert_eq!(varint_at(&[0x80], 0), None);
    assert_eq!(varint_at(&[0xff; 11], 0), None);
    let mut too_large = [0x80; 10];
    too_large[9] = 2;
    assert_eq!(varint_at(&too_large, 0), None);
    assert!(ByteReader::new(&[0xff; 20]).signed().is_err());
}

proptest! {
    #[test]
    fn numbers_and_slices_are_read_as_they_were_written(
        number in any::<u64>(),
        shift in 0_u32..128,
        signed in any::<i128>(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut out = Vec::new();
        out.put_varint(number >> (shift % 64));
        prop_assert_eq!(out.len(), varint_length(number >> (shift % 64)));
        out.put_signed(signed >> shift);
        out.put_slice(&bytes);
        out.put_slice_16(&bytes);
        out.put_slice_32(&bytes);
        let mut reader = ByteReader::new(&out);
        prop_assert_eq!(reader.varint(), Ok(number >> (shift % 64)));
        prop_assert_eq!(reader.signed(), Ok(signed >> shift));
        prop_assert_eq!(reader.slice(), Ok(&bytes[..]));
        prop_assert_eq!(reader.slice_16(), Ok(&bytes[..]));
        prop_assert_eq!(reader.slice_32(), Ok(&bytes[..]));
        prop_assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        kinds in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        read_all(&bytes, &kinds);
    }
}
