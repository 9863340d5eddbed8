//! Files of blocks that records refer to.
//!
//! A block is written once, at the end of the current block file. The log syncs block files before
//! the records that refer to them, so that the references of a durable record are valid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_binary_format::{ByteWriter as _, u32_at, u64_at};

use super::format::BlockReference;
use super::segment::numbered;
use crate::checksum::agree;
use crate::error::{Error, Result};
use crate::vfs::{SegmentFile, Vfs};

const SUFFIX: &str = ".blk";
const MAGIC: [u8; 4] = *b"RBBL";
const VERSION: u32 = 1;
/// The size of a block file's header in bytes.
const FILE_HEADER_BYTES: u64 = 24;
/// The size of the header before each block in bytes.
const BLOCK_HEADER_BYTES: u64 = 8;
/// The alignment of blocks.
const ALIGNMENT: usize = 8;

/// The name of a block file; names sort like numbers.
pub(super) fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}{SUFFIX}"))
}

/// The numbers of the block files in a directory, in order.
pub(super) fn numbers_in(vfs: &dyn Vfs, dir: &Path) -> Result<Vec<u64>> {
    let names = vfs.list(dir)?;
    let numbers = names.iter().filter_map(|name| numbered(name, SUFFIX));
    Ok(numbers.collect())
}

fn file_header(number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    bytes.extend_from_slice(&MAGIC);
    bytes.put_u32_le(VERSION);
    bytes.put_u64_le(number);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

/// Checks that a file is the block file with that number.
pub(super) fn check_header(vfs: &dyn Vfs, dir: &Path, number: u64) -> Result<()> {
    let path = path_of(dir, number);
    let mut bytes = [0; 24];
    vfs.open_read(&path)?.read_exact_at(0, &mut bytes)?;
    let version = u32_at(&bytes, 4).unwrap_or(0);
    let detail = if bytes == *file_header(number) {
        return Ok(());
    } else if u64_at(&bytes, 8) == Some(number) && bytes.starts_with(&MAGIC) && version > VERSION {
        format!("unknown format version {version}")
    } else {
        "the header is not that of this block file".to_owned()
    };
    Err(Error::corruption(&path, 0, detail))
}

/// Reads and verifies a block.
pub(super) fn read(vfs: &dyn Vfs, dir: &Path, reference: &BlockReference) -> Result<Vec<u8>> {
    let path = path_of(dir, reference.file);
    let missing = |error: Error| {
        if error.is_not_found() {
            return Error::corruption(&path, 0, "the block file is missing");
        }
        error
    };
    let file = vfs.open_read(&path).map_err(missing)?;
    let length = u64::from(reference.length);
    if reference.offset.saturating_add(length) > file.len()? {
        let detail = format!("the file ends before a block of {length} bytes does");
        return Err(Error::corruption(&path, reference.offset, detail));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(reference.offset, &mut bytes)?;
    if agree(reference.checksum, crc32c::crc32c(&bytes)) {
        return Ok(bytes);
    }
    let detail = format!("the checksum of a block of {length} bytes is wrong");
    Err(Error::corruption(&path, reference.offset, detail))
}

/// The block files of an open log.
#[derive(Debug)]
pub(super) struct Blocks {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// The size at which a file is full.
    file_bytes: u64,
    state: Mutex<BlockFiles>,
}

#[derive(Debug)]
struct BlockFiles {
    current: Option<CurrentBlockFile>,
    next_number: u64,
    /// Files with unsynced bytes.
    dirty: Vec<Arc<dyn SegmentFile>>,
    /// The highest index that refers to each file.
    last_use: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct CurrentBlockFile {
    number: u64,
    file: Arc<dyn SegmentFile>,
    end: u64,
}

impl Blocks {
    /// Opens the block files in `dir`: those in `last_use` are kept, others were never referred to.
    pub(super) fn open(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        file_bytes: u64,
        last_use: BTreeMap<u64, u64>,
    ) -> Result<Self> {
        let numbers = numbers_in(&*vfs, dir)?;
        for number in numbers
            .iter()
            .filter(|number| !last_use.contains_key(number))
        {
            vfs.remove(&path_of(dir, *number))?;
        }
        let used = last_use.keys().max().copied();
        let highest = numbers.last().copied().max(used).unwrap_or(0);
        let state = BlockFiles {
            current: None,
            next_number: highest.saturating_add(1),
            dirty: Vec::new(),
            last_use,
        };
        Ok(Self {
            vfs,
            dir: dir.to_owned(),
            file_bytes,
            state: Mutex::new(state),
        })
    }

    /// Writes a block. It is durable when a record that refers to it is.
    pub(super) fn append(&self, block: &[u8]) -> Result<BlockReference> {
        let Ok(length) = u32::try_from(block.len()) else {
            let what = format!("a block of {} bytes is too large", block.len());
            return Err(Error::InvalidArgument { what });
        };
        let mut state = self.state.lock();
        let full = |current: &CurrentBlockFile| current.end >= self.file_bytes;
        if state.current.as_ref().is_none_or(full) {
            self.begin_file(&mut state)?;
        }
        let BlockFiles {
            current: Some(current),
            dirty,
            ..
        } = &mut *state
        else {
            return Err(Error::corruption(&self.dir, 0, "there is no block file"));
        };
        let checksum = crc32c::crc32c(block);
        let mut bytes = Vec::with_capacity(block.len() + 16);
        bytes.put_u32_le(length);
        bytes.put_u32_le(checksum);
        bytes.extend_from_slice(block);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        current.file.write_at(current.end, &bytes)?;
        if !dirty.iter().any(|file| Arc::ptr_eq(file, &current.file)) {
            dirty.push(Arc::clone(&current.file));
        }
        let reference = BlockReference {
            file: current.number,
            offset: current.end + BLOCK_HEADER_BYTES,
            length,
            checksum,
        };
        current.end = current.end.saturating_add(bytes.len() as u64);
        Ok(reference)
    }

    fn begin_file(&self, state: &mut BlockFiles) -> Result<()> {
        let number = state.next_number;
        let path = path_of(&self.dir, number);
        state.next_number = number.saturating_add(1);
        let file: Arc<dyn SegmentFile> = self.vfs.open_log(&path)?.into();
        file.write_at(0, &file_header(number))?;
        file.sync()?;
        self.vfs.sync_dir(&self.dir)?;
        state.current = Some(CurrentBlockFile {
            number,
            file,
            end: FILE_HEADER_BYTES,
        });
        Ok(())
    }

    /// Records that a record refers to blocks.
    pub(super) fn refer(&self, index: u64, references: &[BlockReference]) {
        let mut state = self.state.lock();
        for reference in references {
            let last = state.last_use.entry(reference.file).or_insert(index);
            *last = index.max(*last);
        }
    }

    /// Makes all previously appended blocks durable.
    pub(super) fn sync(&self) -> Result<()> {
        let dirty = std::mem::take(&mut self.state.lock().dirty);
        dirty.iter().try_for_each(|file| file.sync())
    }

    /// Removes the files that only records below an index refer to.
    pub(super) fn drop_before(&self, index: u64) -> Result<()> {
        let mut state = self.state.lock();
        let current = state.current.as_ref().map(|current| current.number);
        let unused = |(number, last): (&u64, &u64)| {
            (*last < index && Some(*number) != current).then_some(*number)
        };
        let unused: Vec<u64> = state.last_use.iter().filter_map(unused).collect();
        for number in unused {
            self.vfs.remove(&path_of(&self.dir, number))?;
            state.last_use.remove(&number);
        }
        Ok(())
    }

    /// The files that records refer to, each with whether it may still grow.
    pub(super) fn in_use(&self) -> Vec<(u64, bool)> {
        let state = self.state.lock();
        let current = state.current.as_ref().map(|current| current.number);
        let numbers = state.last_use.keys();
        numbers
            .map(|number| (*number, Some(*number) == current))
            .collect()
    }
}
