//! The manifest: a log of edits, and a file that names the current one.
//!
//! ```text
//! manifest := magic{8 bytes} version{u32} record*
//! record   := checksum{u32} length{u32} kind{u8} body
//! kind     := 1 edits | 2 mark, without a body
//! ```
//!
//! The checksum is CRC32C over the record's offset and everything after the checksum. A record of
//! edits is durable before anything relies on it; then a mark is written, which is not synced. So a
//! damaged record with a valid mark or record after it was durable once, and its damage is an
//! error; one at the very end was never relied on and is truncated.
//!
//! Each opening writes a new manifest with the current state, and then switches to it by renaming
//! `CURRENT.new` to `CURRENT`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rillbase_binary_format::u32_at;

use crate::checksum::agree;
use crate::coding::{to_u32, to_usize};
use crate::error::{Error, Result};
use crate::version::edit::Edit;
use crate::vfs::{AppendFile, Vfs};

const MAGIC: &[u8; 8] = b"rillbman";
/// The format that is written, and the newest that can be read.
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 12;
const RECORD_HEADER_BYTES: usize = 9;
const EDITS: u8 = 1;
const MARK: u8 = 2;
/// The maximum length of a record; a larger length is damage.
const MAX_BYTES: usize = 1 << 28;

const CURRENT: &str = "CURRENT";
const CURRENT_NEW: &str = "CURRENT.new";

/// The name of a manifest.
pub(crate) fn name_of(number: u64) -> String {
    format!("MANIFEST-{number:06}")
}

/// The number in a manifest's name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("MANIFEST-")?.parse().ok()
}

/// The manifest that is written.
#[derive(Debug)]
pub(crate) struct Manifest {
    file: Box<dyn AppendFile>,
}

impl Manifest {
    /// Writes a manifest that starts with `edits`, and switches to it.
    pub(crate) fn create(
        vfs: &Arc<dyn Vfs>,
        dir: &Path,
        number: u64,
        edits: &[Edit],
    ) -> Result<Self> {
        let name = name_of(number);
        let mut file = vfs.create(&dir.join(&name))?;
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&VERSION.to_le_bytes());
        file.append(&header)?;
        let mut manifest = Self { file };
        manifest.append(edits)?;
        let fresh = dir.join(CURRENT_NEW);
        let mut current = vfs.create(&fresh)?;
        current.append(format!("{name}\n").as_bytes())?;
        current.sync()?;
        drop(current);
        vfs.sync_dir(dir)?;
        vfs.rename(&fresh, &dir.join(CURRENT))?;
        vfs.sync_dir(dir)?;
        Ok(manifest)
    }

    /// Appends edits durably. Without space the manifest stays as it was; after another error it
    /// must be abandoned.
    pub(crate) fn append(&mut self, edits: &[Edit]) -> Result<()> {
        let mut body = Vec::new();
        for edit in edits {
            edit.encode(&mut body);
        }
        self.append_whole(EDITS, &body)?;
        self.file.sync()?;
        match self.append_whole(MARK, &[]) {
            // The edits are durable, and the next record does not need the mark.
            Err(error) if error.is_full() => Ok(()),
            marked => marked,
        }
    }

    /// Appends a complete record or, without space, nothing of it.
    fn append_whole(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        let before = self.file.len();
        let appended = self.file.append(&record(before, kind, body));
        if appended.as_ref().is_err_and(Error::is_full) {
            self.file.truncate(before)?;
        }
        appended
    }
}

fn record(offset: u64, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&to_u32(body.len()).to_le_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(body);
    let checksum = checksum(offset, bytes.get(4..).unwrap_or_default());
    if let Some(slot) = bytes.first_chunk_mut::<4>() {
        *slot = checksum.to_le_bytes();
    }
    bytes
}

fn checksum(offset: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&offset.to_le_bytes()), bytes)
}

/// The name of the current manifest; `None` in a directory without a database.
pub(crate) fn current(vfs: &dyn Vfs, dir: &Path) -> Result<Option<PathBuf>> {
    let path = dir.join(CURRENT);
    if !vfs.exists(&path)? {
        return Ok(None);
    }
    let bytes = read_all(vfs, &path)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    match text.strip_suffix('\n') {
        Some(name) if number_of(name).is_some() => Ok(Some(dir.join(name))),
        _ => Err(Error::corruption(&path, 0, "it does not name a manifest")),
    }
}

pub(crate) fn read_all(vfs: &dyn Vfs, path: &Path) -> Result<Vec<u8>> {
    let file = vfs.open_read(path)?;
    let mut bytes = vec![0; to_usize(file.len()?)];
    file.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

/// All edits of a manifest, in order.
pub(crate) fn read(vfs: &dyn Vfs, path: &Path) -> Result<Vec<Edit>> {
    let bytes = read_all(vfs, path)?;
    if !bytes.starts_with(MAGIC) {
        return Err(Error::corruption(
            path,
            0,
            "it does not start like a manifest",
        ));
    }
    match u32_at(&bytes, MAGIC.len()) {
        Some(version) if (1..=VERSION).contains(&version) => {}
        version => {
            let detail = format!("its format {version:?} is not one that this program reads");
            return Err(Error::corruption(path, MAGIC.len() as u64, detail));
        }
    }
    let mut edits = Vec::new();
    let mut at = HEADER_BYTES;
    while at < bytes.len() {
        let Some((kind, body, next)) = record_at(&bytes, at) else {
            // A mark may be lost although the record after it, not synced either, is present.
            let next_offset = at + RECORD_HEADER_BYTES;
            if record_at(&bytes, next_offset).is_some_and(|(kind, ..)| kind == EDITS) {
                at = next_offset;
                continue;
            }
            if sound_after(&bytes, at) {
                return Err(Error::corruption(
                    path,
                    at as u64,
                    "a durable record is damaged",
                ));
            }
            break;
        };
        if kind == EDITS {
            let decoded = Edit::decode_all(body).map_err(|error| {
                Error::corruption(path, at as u64, format!("a record is malformed: {error}"))
            })?;
            edits.extend(decoded);
        }
        at = next;
    }
    if edits.is_empty() {
        return Err(Error::corruption(
            path,
            at as u64,
            "its first record is damaged",
        ));
    }
    Ok(edits)
}

/// Kind and body of the valid record at an offset, and its end.
fn record_at(bytes: &[u8], at: usize) -> Option<(u8, &[u8], usize)> {
    let stored = u32_at(bytes, at)?;
    let length = u32_at(bytes, at + 4)? as usize;
    if length > MAX_BYTES {
        return None;
    }
    let end = at + RECORD_HEADER_BYTES + length;
    let summed = bytes.get(at + 4..end)?;
    let kind = *bytes.get(at + 8)?;
    let body = bytes.get(at + RECORD_HEADER_BYTES..end)?;
    agree(stored, checksum(at as u64, summed)).then_some((kind, body, end))
}

/// Whether a valid record is anywhere after a damaged one, whose length cannot be trusted.
fn sound_after(bytes: &[u8], damaged: usize) -> bool {
    let last = bytes.len().saturating_sub(RECORD_HEADER_BYTES);
    (damaged + 1..=last).any(|at| {
        // Checksums are computed only for plausible lengths, or this would take quadratic time.
        let plausible = u32_at(bytes, at + 4)
            .is_some_and(|length| at + RECORD_HEADER_BYTES + length as usize <= bytes.len());
        let kind = bytes.get(at + 8).copied();
        plausible && matches!(kind, Some(EDITS | MARK)) && record_at(bytes, at).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::MemoryVfs;

    fn used(file: u64) -> Edit {
        Edit::Used {
            file,
            sequence: file * 10,
            time: 0,
        }
    }

    fn written() -> (Arc<dyn Vfs>, PathBuf, PathBuf) {
        let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
        let dir = PathBuf::from("/db");
        vfs.create_dir_all(&dir).unwrap();
        let mut manifest = Manifest::create(&vfs, &dir, 3, &[used(1)]).unwrap();
        manifest.append(&[used(2), used(3)]).unwrap();
        let path = current(&*vfs, &dir).unwrap().unwrap();
        (vfs, dir, path)
    }

    fn replace(vfs: &Arc<dyn Vfs>, path: &Path, bytes: &[u8]) {
        let mut file = vfs.create(path).unwrap();
        file.append(bytes).unwrap();
    }

    #[test]
    fn edits_are_read_back_from_the_manifest_in_force() {
        let (vfs, dir, path) = written();
        assert_eq!(path, dir.join("MANIFEST-000003"));
        assert_eq!(read(&*vfs, &path).unwrap(), [used(1), used(2), used(3)]);
    }

    #[test]
    fn every_flipped_bit_is_an_error_except_in_marks() {
        let (vfs, _, path) = written();
        let sound = read(&*vfs, &path).unwrap();
        let bytes = read_all(&*vfs, &path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            replace(&vfs, &path, &flipped);
            match read(&*vfs, &path) {
                Ok(edits) => assert_eq!(edits, sound, "bit {bit}"),
                Err(error) => assert_eq!(error.code(), "corruption", "bit {bit}"),
            }
        }
    }

    #[test]
    fn a_record_counts_although_the_mark_before_it_is_lost() {
        let (vfs, _, path) = written();
        let bytes = read_all(&*vfs, &path).unwrap();
        let (.., first_end) = record_at(&bytes, HEADER_BYTES).unwrap();
        let mut lost = bytes.clone();
        lost[first_end..first_end + RECORD_HEADER_BYTES].fill(0);
        replace(&vfs, &path, &lost[..bytes.len() - RECORD_HEADER_BYTES]);
        assert_eq!(read(&*vfs, &path).unwrap(), [used(1), used(2), used(3)]);
    }

    #[test]
    fn a_torn_last_record_is_cut() {
        let (vfs, _, path) = written();
        let bytes = read_all(&*vfs, &path).unwrap();
        let torn = bytes.len() - RECORD_HEADER_BYTES - 2;
        replace(&vfs, &path, &bytes[..torn]);
        assert_eq!(read(&*vfs, &path).unwrap(), [used(1)]);
    }
}
