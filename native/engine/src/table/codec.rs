//! How blocks are compressed.
//!
//! A context of zstd has a hundred kilobytes or more of tables, which take longer to create than a
//! block takes to read. So each thread that needs one keeps it.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

use rillbase_binary_format::u32_at;

/// How blocks of a level are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// Fast, for data that is rewritten soon.
    Lz4,
    /// Small, for data that stays; with its level, 1 to 19.
    Zstd(i32),
}

/// Codecs of bodies.
pub(super) const PLAIN: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;
/// The maximum size of a block: a larger size is damage, and is not allocated.
const MAX_BYTES: usize = 1 << 30;

thread_local! {
    /// With the level that it was created for.
    static PACKER: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The compressed block and its codec, if that saves at least an eighth.
pub(super) fn compress(block: &[u8], compression: Compression) -> Option<(u8, Vec<u8>)> {
    let (codec, packed) = match compression {
        Compression::None => return None,
        Compression::Lz4 => (LZ4, lz4_flex::block::compress(block)),
        Compression::Zstd(level) => (ZSTD, pack(block, level)?),
    };
    (packed.len() + 4 < block.len() - block.len() / 8).then_some((codec, packed))
}

/// The block in a body, which starts with its size, or an error.
pub(super) fn decompress(codec: u8, body: &[u8]) -> Result<Vec<u8>, &'static str> {
    let size = u32_at(body, 0).ok_or("a compressed block is too short")? as usize;
    if size > MAX_BYTES {
        return Err("a compressed block claims an impossible size");
    }
    let packed = body.get(4..).unwrap_or_default();
    match codec {
        LZ4 => lz4_flex::block::decompress(packed, size).map_err(|_| "LZ4 is malformed"),
        ZSTD => unpack(packed, size).ok_or("zstd is malformed"),
        _ => Err("unknown codec"),
    }
}

fn pack(block: &[u8], level: i32) -> Option<Vec<u8>> {
    PACKER.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(of, _)| *of != level) {
            *kept = Some((level, Compressor::new(level).ok()?));
        }
        kept.as_mut()?.1.compress(block).ok()
    })
}

fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    UNPACKER.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Some(Decompressor::new().ok()?);
        }
        kept.as_mut()?.decompress(packed, size).ok()
    })
}
