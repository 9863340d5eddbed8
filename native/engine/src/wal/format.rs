//! The bytes of segments and of the contents of some records; `record` has those of records
//! themselves. `docs/formats/wal.md` explains them with an example.
//!
//! All integers are little-endian. A *position* counts the log's bytes since its start, headers
//! included; an *offset* counts within one file.

use rillbase_binary_format::{ByteWriter as _, u32_at, u64_at};

use crate::checksum::agree;

/// The size of a segment's header in bytes.
pub(super) const SEGMENT_HEADER_BYTES: usize = 72;
/// The maximum size of a record's body: the length has 28 bits.
pub const MAX_BODY_BYTES: usize = (1 << 28) - 1;
/// Size of an encoded reference to a block.
pub(super) const REFERENCE_BYTES: usize = 24;

const SEGMENT_MAGIC: [u8; 4] = *b"RBWL";

/// The format of records. Segments of both versions may be in one log; new ones have the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalVersion {
    /// Until 2026: each record has its index, and starts at a multiple of eight.
    One,
    /// Indexes are counted, and records follow without gaps.
    Two,
}

impl WalVersion {
    /// What is written.
    pub const NEWEST: Self = Self::Two;
    pub(super) const ALL: [Self; 2] = [Self::One, Self::Two];

    fn number(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.number() == number)
    }
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// Bytes of the caller.
    Data,
    /// Bytes of the caller that refer to blocks.
    Referring,
    /// Drops records from this index on.
    Truncate,
    /// Drops records below an index and releases segments below a number.
    Floor,
    /// The log was closed with everything synced.
    Close,
}

impl RecordKind {
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
    /// The format of its records.
    pub(super) version: WalVersion,
    /// The segment's own number, which its name repeats.
    pub(super) number: u64,
    /// The segment before this one; 0 if it is the first ever.
    pub(super) previous: u64,
    /// The position of this segment's first byte, where the previous one ends.
    pub(super) base: u64,
    /// The index that its first record gets.
    pub(super) first_index: u64,
    /// The start of the log when the segment was created.
    pub(super) floor: Floor,
    /// The position known to be synced when the segment was created.
    pub(super) synced: u64,
}

/// The start of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Floor {
    /// Records below this index are dropped.
    pub(super) index: u64,
    /// Segments below this number are not needed.
    pub(super) segment: u64,
}

/// Why a segment's header was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderFault {
    /// It is valid, and has an unknown version.
    Version(u32),
    /// It was never completely written, or belongs to another segment, or is damaged.
    Unsound,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        bytes.extend_from_slice(&SEGMENT_MAGIC);
        bytes.extend_from_slice(&self.version.number().to_le_bytes());
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
        let version = Self::sound_version(bytes).ok_or(HeaderFault::Unsound)?;
        let version = WalVersion::from_number(version).ok_or(HeaderFault::Version(version))?;
        Self::read(bytes, version)
            .filter(|header| header.number == number)
            .ok_or(HeaderFault::Unsound)
    }

    /// The version of a header with a valid checksum.
    fn sound_version(bytes: &[u8]) -> Option<u32> {
        let covered = bytes.get(..SEGMENT_HEADER_BYTES - 4)?;
        let sound = bytes.starts_with(&SEGMENT_MAGIC)
            && agree(
                u32_at(bytes, SEGMENT_HEADER_BYTES - 4)?,
                crc32c::crc32c(covered),
            );
        sound.then(|| u32_at(bytes, 4)).flatten()
    }

    fn read(bytes: &[u8], version: WalVersion) -> Option<Self> {
        Some(Self {
            version,
            number: u64_at(bytes, 8)?,
            previous: u64_at(bytes, 16)?,
            base: u64_at(bytes, 24)?,
            first_index: u64_at(bytes, 32)?,
            floor: Floor {
                index: u64_at(bytes, 40)?,
                segment: u64_at(bytes, 48)?,
            },
            synced: u64_at(bytes, 56)?,
        })
    }

    /// What is needed to read its records.
    pub(super) fn identity(&self) -> SegmentIdentity {
        SegmentIdentity {
            version: self.version,
            segment: self.number,
            base: self.base,
        }
    }
}

/// The segment of records, which their encoding depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentIdentity {
    pub(super) version: WalVersion,
    /// Its number.
    pub(super) segment: u64,
    /// The position of its first byte.
    pub(super) base: u64,
}

/// The location of a block, and its checksum.
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

/// Encodes the references that precede the caller's bytes in a referring record.
pub(super) fn encode_references(references: &[BlockReference]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + references.len() * REFERENCE_BYTES);
    let count = u32::try_from(references.len()).unwrap_or(u32::MAX);
    bytes.put_u32_le(count);
    for reference in references {
        bytes.put_u64_le(reference.file);
        bytes.put_u64_le(reference.offset);
        bytes.put_u32_le(reference.length);
        bytes.put_u32_le(reference.checksum);
    }
    bytes
}

/// Decodes the references of a referring record; also returns where the caller's bytes start.
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

/// The body of a `Truncate` record.
pub(super) fn encode_index(index: u64) -> [u8; 8] {
    index.to_le_bytes()
}

pub(super) fn decode_index(body: &[u8]) -> Option<u64> {
    (body.len() == 8).then(|| u64_at(body, 0)).flatten()
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
