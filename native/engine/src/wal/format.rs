//! The bytes of segments and records. `docs/formats/wal.md` explains them with an example.
//!
//! All integers are little-endian. A *position* counts the log's bytes since it began, headers
//! included; an *offset* counts within one file.

use crate::checksum::agree;

/// Size of a segment's header in bytes.
pub(super) const SEGMENT_HEADER_BYTES: usize = 72;
/// Size of a record's header in bytes.
pub(super) const RECORD_HEADER_BYTES: usize = 24;
/// Records begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;
/// The most bytes a record may carry: the length has 28 bits.
pub const MAX_BODY_BYTES: usize = (1 << 28) - 1;
/// Size of an encoded reference to a block.
pub(super) const REFERENCE_BYTES: usize = 24;

const SEGMENT_MAGIC: [u8; 4] = *b"RBWL";
const VERSION: u32 = 1;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes of the caller.
    Data,
    /// Bytes of the caller that refer to blocks.
    Referring,
    /// Records from this index on are dropped.
    Truncate,
    /// Records below an index are dropped, and segments below a number are not needed.
    Floor,
    /// The log was closed with everything synced.
    Close,
}

impl Kind {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Data => 1,
            Self::Referring => 2,
            Self::Truncate => 3,
            Self::Floor => 4,
            Self::Close => 5,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Data,
            Self::Referring,
            Self::Truncate,
            Self::Floor,
            Self::Close,
        ];
        all.into_iter().find(|kind| kind.number() == number)
    }
}

/// The first bytes of a segment; durable before its first record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// The segment's own number, which its name repeats.
    pub(super) number: u64,
    /// The segment before this one; 0 if it is the first ever.
    pub(super) previous: u64,
    /// The position of this segment's first byte, which is where the one before ends.
    pub(super) base: u64,
    /// The index that its first record gets.
    pub(super) first_index: u64,
    /// What the log began at when the segment was made.
    pub(super) floor: Floor,
    /// The position known to be synced when the segment was made.
    pub(super) synced: u64,
}

/// Where the log begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Floor {
    /// Records below this index are dropped.
    pub(super) index: u64,
    /// Segments below this number are not needed.
    pub(super) segment: u64,
}

/// Why a segment's header was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderFault {
    /// It is sound, and of a version that this code does not know.
    Version(u32),
    /// It was never written whole, or belongs to another segment, or is damaged.
    Unsound,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        bytes.extend_from_slice(&SEGMENT_MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        for field in [
            self.number,
            self.previous,
            self.base,
            self.first_index,
            self.floor.index,
            self.floor.segment,
            self.synced,
        ] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8], number: u64) -> Result<Self, HeaderFault> {
        Self::read(bytes)
            .ok_or(HeaderFault::Unsound)
            .and_then(|(version, header)| match version {
                VERSION if header.number == number => Ok(header),
                VERSION => Err(HeaderFault::Unsound),
                other => Err(HeaderFault::Version(other)),
            })
    }

    fn read(bytes: &[u8]) -> Option<(u32, Self)> {
        let covered = bytes.get(..SEGMENT_HEADER_BYTES - 4)?;
        let sound = bytes.starts_with(&SEGMENT_MAGIC)
            && agree(
                u32_at(bytes, SEGMENT_HEADER_BYTES - 4)?,
                crc32c::crc32c(covered),
            );
        if !sound {
            return None;
        }
        let header = Self {
            number: u64_at(bytes, 8)?,
            previous: u64_at(bytes, 16)?,
            base: u64_at(bytes, 24)?,
            first_index: u64_at(bytes, 32)?,
            floor: Floor {
                index: u64_at(bytes, 40)?,
                segment: u64_at(bytes, 48)?,
            },
            synced: u64_at(bytes, 56)?,
        };
        Some((u32_at(bytes, 4)?, header))
    }
}

/// What stands before a record's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// The number of its [`Kind`].
    pub(super) kind: u8,
    /// Size of the body in bytes, without padding.
    pub(super) length: usize,
    /// The record's index; of a `Truncate`, the first index that is dropped.
    pub(super) index: u64,
    /// The position known to be synced when it was written.
    pub(super) synced: u64,
    /// CRC32C of the body with its padding.
    pub(super) body_checksum: u32,
}

impl RecordHeader {
    /// Reads a header that stands at `position` in segment `segment`, if there is a sound one.
    pub(super) fn decode(bytes: &[u8], segment: u64, position: u64) -> Option<Self> {
        let covered = bytes.get(4..RECORD_HEADER_BYTES)?;
        let kind_and_length = u32_at(bytes, 8)?;
        let kind = u8::try_from(kind_and_length >> 28).ok()?;
        // Zeros, the usual end of a log, are told apart without a checksum.
        if kind == 0 || !agree(u32_at(bytes, 0)?, header_checksum(segment, covered)) {
            return None;
        }
        let distance = u32_at(bytes, 12)?;
        Some(Self {
            kind,
            length: usize::try_from(kind_and_length & 0x0FFF_FFFF).ok()?,
            index: u64_at(bytes, 16)?,
            synced: match distance {
                u32::MAX => 0,
                known => position.saturating_sub(u64::from(known)),
            },
            body_checksum: u32_at(bytes, 4)?,
        })
    }

    /// The whole record's size in bytes.
    pub(super) fn record_bytes(&self) -> usize {
        record_bytes(self.length)
    }
}

/// The size of a record with a body of `length` bytes.
pub(super) fn record_bytes(length: usize) -> usize {
    (RECORD_HEADER_BYTES + length).next_multiple_of(ALIGNMENT)
}

fn header_checksum(segment: u64, covered: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&segment.to_le_bytes()), covered)
}

/// Where a record goes and what is known there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) position: u64,
    pub(super) synced: u64,
}

/// Appends a record to `out`. The body, in parts, has at most [`MAX_BODY_BYTES`].
pub(super) fn encode_record(
    out: &mut Vec<u8>,
    place: Place,
    kind: Kind,
    index: u64,
    body: &[&[u8]],
) {
    let start = out.len();
    let length: usize = body.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
    for part in body {
        out.extend_from_slice(part);
    }
    out.resize(start + record_bytes(length), 0);
    let body_checksum = crc32c::crc32c(out.get(start + RECORD_HEADER_BYTES..).unwrap_or(&[]));
    let distance = u32::try_from(place.position.saturating_sub(place.synced)).unwrap_or(u32::MAX);
    let kind_and_length =
        u32::from(kind.number()) << 28 | u32::try_from(length).unwrap_or(0x0FFF_FFFF);

    let mut header = Vec::with_capacity(RECORD_HEADER_BYTES);
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&body_checksum.to_le_bytes());
    header.extend_from_slice(&kind_and_length.to_le_bytes());
    header.extend_from_slice(&distance.to_le_bytes());
    header.extend_from_slice(&index.to_le_bytes());
    let checksum = header_checksum(place.segment, header.get(4..).unwrap_or(&[]));
    if let Some(field) = header.get_mut(..4) {
        field.copy_from_slice(&checksum.to_le_bytes());
    }
    if let Some(hole) = out.get_mut(start..start + RECORD_HEADER_BYTES) {
        hole.copy_from_slice(&header);
    }
}

/// Where a block is, and what it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockReference {
    /// The number of the block file.
    pub file: u64,
    /// The offset of the block's first byte in it.
    pub offset: u64,
    /// The block's size in bytes.
    pub length: u32,
    /// CRC32C of the block.
    pub checksum: u32,
}

/// What stands before the caller's bytes in a referring record.
pub(super) fn encode_references(references: &[BlockReference]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + references.len() * REFERENCE_BYTES);
    let count = u32::try_from(references.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&count.to_le_bytes());
    for reference in references {
        bytes.extend_from_slice(&reference.file.to_le_bytes());
        bytes.extend_from_slice(&reference.offset.to_le_bytes());
        bytes.extend_from_slice(&reference.length.to_le_bytes());
        bytes.extend_from_slice(&reference.checksum.to_le_bytes());
    }
    bytes
}

/// The references of a referring record and where the caller's bytes begin.
pub(super) fn decode_references(body: &[u8]) -> Option<(Vec<BlockReference>, usize)> {
    let count = usize::try_from(u32_at(body, 0)?).ok()?;
    let end = count.checked_mul(REFERENCE_BYTES)?.checked_add(4)?;
    let encoded = body.get(4..end)?;
    let mut references = Vec::with_capacity(count);
    for bytes in encoded.chunks_exact(REFERENCE_BYTES) {
        references.push(BlockReference {
            file: u64_at(bytes, 0)?,
            offset: u64_at(bytes, 8)?,
            length: u32_at(bytes, 16)?,
            checksum: u32_at(bytes, 20)?,
        });
    }
    Some((references, end))
}

/// The body of a `Floor` record.
pub(super) fn encode_floor(floor: Floor) -> Vec<u8> {
    [floor.index.to_le_bytes(), floor.segment.to_le_bytes()].concat()
}

pub(super) fn decode_floor(body: &[u8]) -> Option<Floor> {
    let floor = Floor {
        index: u64_at(body, 0)?,
        segment: u64_at(body, 8)?,
    };
    (body.len() == 16).then_some(floor)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}
