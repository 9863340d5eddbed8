//! The end of a table, which locates everything else.
//!
//! ```text
//! footer := top{2 × u64} properties{2 × u64} range_deletes{2 × u64}
//!           version{u32} checksum{u32} magic{8 bytes}
//! ```
//!
//! The checksum is CRC32C over everything before it.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use super::frame::Handle;
use crate::checksum::agree;

/// The size of every footer.
pub(crate) const FOOTER_BYTES: usize = 64;
/// The newest format. Version 3 has neither zones of partitions nor attribute maps. In version 2
/// filters may ignore the tails of keys; version 1 has no such filters. In both, entries never have
/// the shape of the previous one.
pub(crate) const VERSION: u32 = 4;
/// The first format whose partitions have zones.
pub(crate) const PARTITION_ZONES_VERSION: u32 = 4;
/// The first format whose entries have shapes.
pub(crate) const SHAPES_VERSION: u32 = 3;
const MAGIC: &[u8; 8] = b"rillbtab";

/// The locations of the parts of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) top: Handle,
    pub(crate) properties: Handle,
    /// Of length 0 if there are none.
    pub(crate) range_deletes: Handle,
    pub(crate) version: u32,
}

impl Footer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for handle in [self.top, self.properties, self.range_deletes] {
            out.put_u64_le(handle.offset);
            out.put_u64_le(handle.length);
        }
        out.put_u32_le(self.version);
        let checksum = crc32c::crc32c(&out);
        out.put_u32_le(checksum);
        out.extend_from_slice(MAGIC);
        out
    }

    /// Decodes the footer, or returns an error.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() != FOOTER_BYTES || !bytes.ends_with(MAGIC) {
            return Err("this is not the end of a table".into());
        }
        let summed = bytes.get(..FOOTER_BYTES - 12).unwrap_or_default();
        let mut reader = ByteReader::new(bytes);
        let read = (|| {
            let mut handle = || {
                Ok(Handle {
                    offset: reader.u64_le()?,
                    length: reader.u64_le()?,
                })
            };
            let footer = Self {
                top: handle()?,
                properties: handle()?,
                range_deletes: handle()?,
                version: reader.u32_le()?,
            };
            ReadResult::Ok((footer, reader.u32_le()?))
        })();
        let Ok((footer, checksum)) = read else {
            return Err("the footer is cut short".into());
        };
        if !agree(checksum, crc32c::crc32c(summed)) {
            return Err("the footer's checksum does not match".into());
        }
        if footer.version > VERSION {
            let version = footer.version;
            return Err(format!(
                "format {version} is newer than this program, which reads {VERSION}"
            ));
        }
        Ok(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_round_trips_and_flipped_bits_are_detected() {
        let handle = |offset| Handle { offset, length: 7 };
        let footer = Footer {
            top: handle(1),
            properties: handle(2),
            range_deletes: handle(3),
            version: VERSION,
        };
        let bytes = footer.encode();
        assert_eq!(Footer::decode(&bytes), Ok(footer));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Footer::decode(&flipped).is_err(), "bit {bit}");
        }
    }
}
