//! The only way to files.
//!
//! Everything that the engine keeps goes through a [`Vfs`], so that tests can put a file system
//! under it which forgets, tears and fails as real ones do ([`FaultVfs`]), or none at all
//! ([`MemoryVfs`]). [`RealVfs`] is the operating system's, [`DirectVfs`] the same past its cache.
//!
//! What implementations promise, and callers may rely on:
//!
//! - What [`AppendFile::sync`] or [`SegmentFile::sync`] returned `Ok` for survives a loss of power. If
//!   a sync fails the unsynced bytes may be gone although a later sync succeeds: never retry.
//! - A name made, renamed or removed survives only once [`Vfs::sync_dir`] of its directory has
//!   returned. Until then each such change may or may not have happened after a crash, in any
//!   order. A rename is one change: never both names lost.
//! - Handles stay valid after their name was renamed or removed.

mod direct;
mod disk;
mod fault;
mod memory;
mod random;
mod real;

use std::fmt::Debug;
use std::path::Path;

use crate::error::{Error, Result};

pub use direct::DirectVfs;
pub use fault::{Fault, FaultVfs};
pub use memory::MemoryVfs;
pub use random::SeededRandom;
pub use real::RealVfs;

/// A file system. Paths are absolute, or relative to the process's working directory.
pub trait Vfs: Debug + Send + Sync {
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> Result<Box<dyn RandomRead>>;

    /// Makes a file, empty, for appending; one of that name is emptied.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Opens an existing file for appending at its end.
    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Opens a file for reading and writing anywhere; makes it if there is none.
    fn open_log(&self, path: &Path) -> Result<Box<dyn SegmentFile>>;

    /// Gives a file another name, replacing a file of that name.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// The names in a directory, sorted. Names that are not UTF-8 are not ours and left out.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Whether a file or directory of that name exists.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Makes a directory and those above it that are missing.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Gives a file a second name; fails if that name is taken.
    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()>;

    /// The bytes that may still be written to the file system of `dir`.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;

    /// Takes an exclusive lock, or fails at once with [`Error::Locked`]. Dropping the guard, or the
    /// end of the process, gives it back. The lock file stays.
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>>;
}

/// Makes a directory and those above it that are missing, durably.
///
/// A directory with something in it was made durable before that was put there. An empty one may be
/// the work of a process that ended before it could; so may those above that hold nothing else.
pub fn make_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.create_dir_all(dir)?;
    let mut others = vfs.list(dir)?.len();
    let mut above = dir.ancestors().skip(1);
    while others == 0 {
        let Some(parent) = above.next() else {
            break;
        };
        let here = parent.as_os_str().is_empty();
        let parent = if here { Path::new(".") } else { parent };
        vfs.sync_dir(parent)?;
        others = vfs.list(parent)?.len().saturating_sub(1);
    }
    Ok(())
}

/// A file that can be read anywhere, by many threads at once.
pub trait RandomRead: Debug + Send + Sync {
    /// Reads into `buffer` from `offset` and returns how many bytes: fewer than asked only where
    /// the file ends.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// The size in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The path that the file was opened by, for error messages.
    fn path(&self) -> &Path;

    /// Fills `buffer` from `offset`; a file that ends before is damaged.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let read = self.read_at(offset, buffer)?;
        if read == buffer.len() {
            return Ok(());
        }
        Err(Error::corruption(
            self.path(),
            offset.saturating_add(read as u64),
            format!(
                "the file ends within {} bytes that belong here",
                buffer.len()
            ),
        ))
    }
}

/// A file that grows at its end, by one writer.
pub trait AppendFile: Debug + Send {
    /// Adds all of `bytes` at the end. After an error the end is not known: truncate the file to
    /// what it had before, or give it up.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Cuts the file, as after an append that found no room. Needs no room itself.
    fn truncate(&mut self, size: u64) -> Result<()>;

    /// Makes all that was appended durable.
    fn sync(&mut self) -> Result<()>;

    /// The size in bytes, with all that was appended.
    fn len(&self) -> u64;

    /// Whether nothing was appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A file that is written in place: a preallocated segment of a log. One thread may sync while
/// another writes; bytes whose `write_at` returned before `sync` was called are durable after it.
pub trait SegmentFile: RandomRead {
    /// Writes all of `bytes` at `offset`, which is at most the file's size.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Cuts the file. Needs no room.
    fn truncate(&self, size: u64) -> Result<()>;

    /// Makes all that was written durable.
    fn sync(&self) -> Result<()>;
}

/// Holds a lock until it is dropped.
pub trait LockGuard: Debug + Send + Sync {}
