//! The encoding of a block in a file: compressed or not, with a checksum.
//!
//! ```text
//! frame := body codec{u8} checksum{u64}
//! body  := block                              codec 0
//!        | size{u32} lz4 | size{u32} zstd     codec 1, 2
//! ```
//!
//! The checksum is XXH3 over body and codec with the frame's offset as its seed, so that a block
//! read from a wrong offset is detected.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use super::codec::{self, PLAIN};
use crate::checksum::agree;
use crate::table::codec::Compression;

/// The size of a frame besides its body.
pub(crate) const FRAME_BYTES: usize = 9;

/// The location of a block: the offset of its frame and the length of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Handle {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.put_varint(self.offset);
        out.put_varint(self.length);
    }

    pub(crate) fn decode(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        Ok(Self {
            offset: reader.varint()?,
            length: reader.varint()?,
        })
    }
}

/// Appends the frame of `block` for `offset`, and returns its handle.
pub(crate) fn write(
    out: &mut Vec<u8>,
    offset: u64,
    block: &[u8],
    compression: Compression,
) -> Handle {
    let start = out.len();
    let codec = if let Some((codec, packed)) = codec::compress(block, compression) {
        out.extend_from_slice(&crate::coding::to_u32(block.len()).to_le_bytes());
        out.extend_from_slice(&packed);
        codec
    } else {
        out.extend_from_slice(block);
        PLAIN
    };
    out.push(codec);
    let summed = out.get(start..).unwrap_or_default();
    let length = (summed.len() - 1) as u64;
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(summed, offset);
    out.extend_from_slice(&checksum.to_le_bytes());
    Handle { offset, length }
}

/// The block in a frame, or an error.
pub(crate) fn read(mut frame: Vec<u8>, offset: u64) -> Result<Vec<u8>, &'static str> {
    let body_end = frame
        .len()
        .checked_sub(FRAME_BYTES)
        .ok_or("a frame is too short")?;
    let (summed, stored) = frame
        .split_at_checked(body_end + 1)
        .ok_or("a frame is too short")?;
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(summed, offset);
    if !agree(stored, &checksum.to_le_bytes()) {
        return Err("the checksum does not match");
    }
    let codec = frame.get(body_end).copied();
    frame.truncate(body_end);
    match codec {
        Some(PLAIN) => Ok(frame),
        Some(codec) => codec::decompress(codec, &frame),
        None => Err("a frame is too short"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_round_trip_through_frames_with_every_codec() {
        let block = b"the same again and the same again and ".repeat(20);
        // A thread keeps its compressor, which must not affect the next block.
        let zstd = [3, 19, 3].map(Compression::Zstd);
        for compression in zstd
            .into_iter()
            .chain([Compression::None, Compression::Lz4])
        {
            let mut out = vec![7; 5];
            let handle = write(&mut out, 5, &block, compression);
            assert_eq!(out.len() as u64, 5 + handle.length + FRAME_BYTES as u64);
            assert_eq!(read(out[5..].to_vec(), 5), Ok(block.clone()));
        }
    }

    #[test]
    fn every_flipped_bit_and_a_wrong_place_are_noticed() {
        let mut out = Vec::new();
        write(&mut out, 0, &b"some words ".repeat(9), Compression::Lz4);
        assert!(read(out.clone(), 4096).is_err());
        for bit in 0..out.len() * 8 {
            let mut flipped = out.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(flipped, 0).is_err(), "bit {bit}");
        }
    }
}
