//! The only access to files.
//!
//! The engine accesses all its files through a [`Vfs`], so that tests can use a file system that
//! loses, tears and fails as real ones do ([`FaultVfs`]), or none at all ([`MemoryVfs`]).
//! [`RealVfs`] is the operating system's, [`DirectVfs`] the same without its cache.
//!
//! What implementations guarantee:
//!
//! - Data for which [`AppendFile::sync`] or [`SegmentFile::sync`] returned `Ok` survives a power
//!   loss. If a sync fails, the unsynced bytes may be lost although a later sync succeeds: never
//!   retry.
//! - A name that was created, changed or removed survives only once [`Vfs::sync_dir`] of its
//!   directory has returned. Until then each such change may or may not have happened after a
//!   crash, in any order. A rename is one change: both names are never lost.
//! - Handles stay valid after their name was changed or removed.

mod direct;
mod disk;
mod fault;
mod memory;
mod owner;
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

    /// Creates an empty file for appending; an existing one is emptied.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Opens an existing file for appending at its end.
    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Opens or creates a file for reading and writing anywhere.
    fn open_log(&self, path: &Path) -> Result<Box<dyn SegmentFile>>;

    /// Renames a file, replacing a file with the new name.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// The names in a directory, sorted. Names that are not UTF-8 are not ours and are omitted.
    fn list(&self, dir: &Path) -> Result<Vec<String>>;

    /// Whether a file or directory with that name exists.
    fn exists(&self, path: &Path) -> Result<bool>;

    /// Creates a directory and its missing parents.
    fn create_dir_all(&self, dir: &Path) -> Result<()>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Creates a hard link; fails if that name exists.
    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()>;

    /// The bytes that may still be written to the file system of `dir`.
    fn free_bytes(&self, dir: &Path) -> Result<u64>;

    /// Takes an exclusive lock, or fails at once with [`Error::Locked`]. It is released when the
    /// guard is dropped or the process ends. The lock file stays.
    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>>;
}

/// Creates a directory and its missing parents, durably.
///
/// A directory that is not empty was made durable before its first entry was created. An empty one
/// may have been left by a process that ended before that; so may its parents that contain nothing
/// else.
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

/// A file with concurrent random reads.
pub trait RandomRead: Debug + Send + Sync {
    /// Reads into `buffer` from `offset` and returns how many bytes: fewer than requested only at
    /// the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// The size in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The path with which the file was opened, for error messages.
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

/// An append-only file with one writer.
pub trait AppendFile: Debug + Send {
    /// Appends all of `bytes`. After an error the end is unknown: truncate the file to its previous
    /// size, or abandon it.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Truncates the file, as after an append that lacked space. Needs no space itself.
    fn truncate(&mut self, size: u64) -> Result<()>;

    /// Makes all appended bytes durable.
    fn sync(&mut self) -> Result<()>;

    /// The size in bytes, including all appended bytes.
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

    /// Truncates the file. Needs no space.
    fn truncate(&self, size: u64) -> Result<()>;

    /// Makes all written bytes durable.
    fn sync(&self) -> Result<()>;
}

/// Holds a lock until it is dropped.
pub trait LockGuard: Debug + Send + Sync {}
