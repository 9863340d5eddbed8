//! The encoding of a record, in both versions. Only the newest is written.

use rillbase_binary_format::{ByteWriter as _, u32_at, u64_at, varint_at};

use super::format::{MAX_BODY_BYTES, RecordKind, SegmentIdentity, WalVersion};
use crate::checksum::agree;
use crate::coding::to_usize;

/// The maximum size of a record's header.
pub(super) const MAX_HEADER_BYTES: usize = 24;
/// The size of a record's header in version 1.
const HEADER_BYTES_1: usize = 24;
/// The alignment of records in version 1.
const ALIGNMENT_1: usize = 8;
/// The number of low bits for the kind, beside the length.
const KIND_BITS: u32 = 3;

/// The header before a record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// The number of its [`RecordKind`].
    pub(super) kind: u8,
    /// Its own size in bytes.
    pub(super) bytes: usize,
    /// The size of the body in bytes, and of the padding after it.
    pub(super) length: usize,
    pub(super) padding: usize,
    /// The record's index, present only in version 1; for a `Truncate`, the first index that is
    /// dropped.
    pub(super) index: Option<u64>,
    /// The position known to be synced when it was written.
    pub(super) synced: u64,
    /// CRC32C of the body with its padding.
    pub(super) body_checksum: u32,
}

impl RecordHeader {
    /// Reads the header at `offset`, if it is valid.
    pub(super) fn decode(bytes: &[u8], identity: SegmentIdentity, offset: u64) -> Option<Self> {
        match identity.version {
            WalVersion::One => Self::decode_1(bytes, identity, offset),
            WalVersion::Two => Self::decode_2(bytes, identity, offset),
        }
    }

    fn decode_1(bytes: &[u8], identity: SegmentIdentity, offset: u64) -> Option<Self> {
        let covered = bytes.get(4..HEADER_BYTES_1)?;
        let kind_and_length = u32_at(bytes, 8)?;
        let kind = u8::try_from(kind_and_length >> 28).ok()?;
        let checksum =
            || crc32c::crc32c_append(crc32c::crc32c(&identity.segment.to_le_bytes()), covered);
        // Zeros, the usual end of a log, are recognized without a checksum.
        if kind == 0 || !agree(u32_at(bytes, 0)?, checksum()) {
            return None;
        }
        let length = to_usize(u64::from(kind_and_length & 0x0FFF_FFFF));
        let size = HEADER_BYTES_1 + length;
        Some(Self {
            kind,
            bytes: HEADER_BYTES_1,
            length,
            padding: size.next_multiple_of(ALIGNMENT_1) - size,
            index: Some(u64_at(bytes, 16)?),
            synced: match u32_at(bytes, 12)? {
                u32::MAX => 0,
                distance => synced(identity, offset, u64::from(distance)),
            },
            body_checksum: u32_at(bytes, 4)?,
        })
    }

    fn decode_2(bytes: &[u8], identity: SegmentIdentity, offset: u64) -> Option<Self> {
        let (kind_and_length, at) = varint_at(bytes, 0)?;
        let kind = (kind_and_length & ((1 << KIND_BITS) - 1)) as u8;
        if kind == 0 {
            return None;
        }
        let (distance, at) = varint_at(bytes, at)?;
        let covered = bytes.get(..at + 4)?;
        let length = to_usize(kind_and_length >> KIND_BITS);
        let sound = agree(
            u32_at(bytes, at + 4)?,
            checksum_2(identity, offset, covered),
        );
        (sound && length <= MAX_BODY_BYTES).then_some(Self {
            kind,
            bytes: at + 8,
            length,
            padding: 0,
            index: None,
            synced: synced(identity, offset, distance),
            body_checksum: u32_at(bytes, at)?,
        })
    }

    /// The number of bytes covered by the body's checksum.
    pub(super) fn padded_bytes(&self) -> usize {
        self.length + self.padding
    }

    /// The size of the whole record in bytes.
    pub(super) fn record_bytes(&self) -> usize {
        self.bytes + self.padded_bytes()
    }
}

/// The alignment of records in bytes.
pub(super) fn alignment(version: WalVersion) -> usize {
    match version {
        WalVersion::One => ALIGNMENT_1,
        WalVersion::Two => 1,
    }
}

fn synced(identity: SegmentIdentity, offset: u64, distance: u64) -> u64 {
    identity
        .base
        .saturating_add(offset)
        .saturating_sub(distance)
}

/// Includes the header's location, so that neither remains of the file's earlier use as another
/// segment nor a copy elsewhere are accepted.
fn checksum_2(identity: SegmentIdentity, offset: u64, covered: &[u8]) -> u32 {
    let segment = crc32c::crc32c(&identity.segment.to_le_bytes());
    let seed = crc32c::crc32c_append(segment, &offset.to_le_bytes());
    crc32c::crc32c_append(seed, covered)
}

/// Appends a record for `offset` to `out`; `known` is the position known to be synced. The body, in
/// parts, has at most [`MAX_BODY_BYTES`].
pub(super) fn encode(
    out: &mut Vec<u8>,
    identity: SegmentIdentity,
    offset: u64,
    known: u64,
    kind: RecordKind,
    body: &[&[u8]],
) {
    let start = out.len();
    let length: usize = body.iter().map(|part| part.len()).sum();
    let checksum = body
        .iter()
        .fold(0, |sum, part| crc32c::crc32c_append(sum, part));
    let position = identity.base.saturating_add(offset);
    out.put_varint((length as u64) << KIND_BITS | u64::from(kind.number()));
    out.put_varint(position.saturating_sub(known));
    out.extend_from_slice(&checksum.to_le_bytes());
    let checksum = checksum_2(identity, offset, out.get(start..).unwrap_or_default());
    out.extend_from_slice(&checksum.to_le_bytes());
    for part in body {
        out.extend_from_slice(part);
    }
}

/// The maximum size of a record with a body of `length` bytes.
pub(super) fn most_bytes(length: usize) -> u64 {
    (MAX_HEADER_BYTES + length) as u64
}
