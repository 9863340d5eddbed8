//! Direct I/O for tables.
//!
//! The engine has its own cache, so the system need not cache tables too, and large compactions do
//! not evict what others read. Only tables use direct I/O; the log and the manifest are small, and
//! read once. `O_DIRECT` requires offsets, lengths and memory to be multiples of a block:
//!
//! - A read fetches all blocks that it touches into its own buffer, and copies out the requested
//!   bytes.
//! - Appends are buffered. Whole blocks are written directly; the rest, less than a block, is
//!   written through the system's cache by each sync, and again when its block is complete.
//!
//! If the file system or the system does not support it, files are used as by [`RealVfs`];
//! [`DirectVfs::fell_back`] reports that.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{AppendFile, LockGuard, RandomRead, RealVfs, SegmentFile, Vfs};
use crate::coding::to_usize;
use crate::error::{Error, Result};

/// A multiple of the block size of all common file systems.
const BLOCK_BYTES: usize = 4096;
/// How much is buffered before it is written.
const GATHERED_BYTES: usize = 1 << 20;
/// The names of tables end like this.
const TABLE: &str = "table";

/// The operating system's file system, with direct I/O for tables.
#[derive(Debug, Default)]
pub struct DirectVfs {
    real: RealVfs,
    fell_back: Arc<AtomicBool>,
}

impl DirectVfs {
    /// Tries direct I/O for each table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether direct I/O failed for some table, which then used the system's cache.
    pub fn fell_back(&self) -> bool {
        self.fell_back.load(Ordering::Relaxed)
    }

    /// The file of a table for direct I/O; `None` if it is not a table, or direct I/O is not
    /// allowed.
    fn open_direct(&self, path: &Path, options: &mut OpenOptions) -> Result<Option<File>> {
        if path.extension().is_none_or(|kind| kind != TABLE) {
            return Ok(None);
        }
        match open_past_cache(path, options) {
            Ok(file) => Ok(Some(file)),
            Err(error) if is_refusal(&error) => {
                self.fell_back.store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(Error::io("open", path, error)),
        }
    }
}

#[cfg(target_os = "linux")]
fn open_past_cache(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    options.custom_flags(direct).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_past_cache(_: &Path, _: &mut OpenOptions) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether an error means that direct I/O is not allowed here.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}

impl Vfs for DirectVfs {
    fn open_read(&self, path: &Path) -> Result<Box<dyn RandomRead>> {
        let plain = self.real.open_read(path)?;
        let direct = self.open_direct(path, OpenOptions::new().read(true))?;
        Ok(match direct {
            None => plain,
            Some(direct) => Box::new(DirectRead {
                direct,
                plain,
                refused: AtomicBool::new(false),
                fell_back: Arc::clone(&self.fell_back),
            }),
        })
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let plain = self.real.create(path)?;
        let Some(direct) = self.open_direct(path, OpenOptions::new().write(true))? else {
            return Ok(plain);
        };
        let rest = OpenOptions::new().write(true).open(path);
        Ok(Box::new(DirectAppend {
            direct: Some(direct),
            plain: rest.map_err(|error| Error::io("open", path, error))?,
            path: path.to_owned(),
            gathered: AlignedBuffer::new(),
            written: 0,
            fell_back: Arc::clone(&self.fell_back),
        }))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.real.open_append(path)
    }

    fn open_log(&self, path: &Path) -> Result<Box<dyn SegmentFile>> {
        self.real.open_log(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.real.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.real.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.real.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.real.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.real.exists(path)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.real.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.real.sync_dir(dir)
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()> {
        self.real.hard_link(existing, link)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.real.free_bytes(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        self.real.lock(path)
    }
}

/// Memory that is aligned to the block size.
#[derive(Debug)]
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length.saturating_add(BLOCK_BYTES)];
        let start = bytes.as_ptr().align_offset(BLOCK_BYTES);
        Self { bytes, start }
    }

    fn slice(&self, from: usize, to: usize) -> &[u8] {
        let range = self.start + from..self.start + to;
        self.bytes.get(range).unwrap_or_default()
    }

    fn slice_mut(&mut self, from: usize, to: usize) -> &mut [u8] {
        let range = self.start + from..self.start + to;
        self.bytes.get_mut(range).unwrap_or_default()
    }
}

#[derive(Debug)]
struct DirectRead {
    direct: File,
    plain: Box<dyn RandomRead>,
    /// Some file systems reject direct I/O only when reading.
    refused: AtomicBool,
    fell_back: Arc<AtomicBool>,
}

impl DirectRead {
    /// Reads whole blocks from `start`; returns how many bytes, fewer than requested at the end of
    /// the file.
    fn read_blocks(&self, start: u64, blocks: &mut Aligned, length: usize) -> io::Result<usize> {
        let mut filled = 0;
        while filled < length {
            let rest = blocks.slice_mut(filled, length);
            match self
                .direct
                .read_at(rest, start.saturating_add(filled as u64))
            {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if !filled.is_multiple_of(BLOCK_BYTES) {
                break;
            }
        }
        Ok(filled)
    }
}

impl RandomRead for DirectRead {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self.refused.load(Ordering::Relaxed) {
            return self.plain.read_at(offset, buffer);
        }
        let before = to_usize(offset % BLOCK_BYTES as u64);
        let start = offset - before as u64;
        let length = (before + buffer.len()).next_multiple_of(BLOCK_BYTES);
        let mut blocks = Aligned::new(length);
        let filled = match self.read_blocks(start, &mut blocks, length) {
            Ok(filled) => filled,
            Err(error) if is_refusal(&error) => {
                self.refused.store(true, Ordering::Relaxed);
                self.fell_back.store(true, Ordering::Relaxed);
                return self.plain.read_at(offset, buffer);
            }
            Err(error) => return Err(Error::io_at("read", self.path(), offset, error)),
        };
        let read = filled.saturating_sub(before).min(buffer.len());
        if let Some(target) = buffer.get_mut(..read) {
            target.copy_from_slice(blocks.slice(before, before + read));
        }
        Ok(read)
    }

    fn len(&self) -> Result<u64> {
        self.plain.len()
    }

    fn path(&self) -> &Path {
        self.plain.path()
    }
}

/// Appended bytes that are not written directly yet.
#[derive(Debug)]
struct AlignedBuffer {
    memory: Aligned,
    length: usize,
}

impl AlignedBuffer {
    fn new() -> Self {
        Self {
            memory: Aligned::new(GATHERED_BYTES),
            length: 0,
        }
    }

    /// Takes as many bytes as fit; returns the rest.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let count = bytes.len().min(GATHERED_BYTES - self.length);
        let (taken, rest) = bytes.split_at(count);
        self.memory
            .slice_mut(self.length, self.length + count)
            .copy_from_slice(taken);
        self.length += count;
        rest
    }

    /// Removes written blocks: the rest moves to the front.
    fn drop_front(&mut self, count: usize) {
        let from = self.memory.start + count;
        let to = self.memory.start + self.length;
        self.memory.bytes.copy_within(from..to, self.memory.start);
        self.length -= count;
    }
}

#[derive(Debug)]
struct DirectAppend {
    /// `None` once it was rejected.
    direct: Option<File>,
    plain: File,
    path: PathBuf,
    gathered: AlignedBuffer,
    /// Bytes of whole blocks that are in the file; the buffer follows them.
    written: u64,
    fell_back: Arc<AtomicBool>,
}

impl DirectAppend {
    /// Writes the whole blocks of the buffer.
    fn write_blocks(&mut self) -> Result<()> {
        let count = self.gathered.length - self.gathered.length % BLOCK_BYTES;
        if count == 0 {
            return Ok(());
        }
        let blocks = self.gathered.memory.slice(0, count);
        let mut done = Err(io::ErrorKind::Unsupported.into());
        if let Some(direct) = &self.direct {
            done = direct.write_all_at(blocks, self.written);
        }
        if done.as_ref().is_err_and(is_refusal) {
            self.direct = None;
            self.fell_back.store(true, Ordering::Relaxed);
            done = self.plain.write_all_at(blocks, self.written);
        }
        done.map_err(|error| Error::io_at("write", &self.path, self.written, error))?;
        self.gathered.drop_front(count);
        self.written += count as u64;
        Ok(())
    }
}

impl AppendFile for DirectAppend {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = self.gathered.take(bytes);
        while self.gathered.length == GATHERED_BYTES {
            self.write_blocks()?;
            rest = self.gathered.take(rest);
        }
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        let failed = |error| Error::io_at("truncate", &self.path, size, error);
        let kept = size.checked_sub(self.written);
        let kept = kept.filter(|kept| *kept <= self.gathered.length as u64);
        // Whole blocks are no longer in memory.
        let kept = kept.ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
        self.plain.set_len(self.written).map_err(failed)?;
        self.gathered.length = usize::try_from(kept).unwrap_or(0);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.write_blocks()?;
        let rest = self.gathered.memory.slice(0, self.gathered.length);
        let written = self.plain.write_all_at(rest, self.written);
        written.map_err(|error| Error::io_at("write", &self.path, self.written, error))?;
        let synced = self.plain.sync_data();
        synced.map_err(|error| Error::io("sync", &self.path, error))
    }

    fn len(&self) -> u64 {
        self.written + self.gathered.length as u64
    }
}
