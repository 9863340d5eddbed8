//! Files that exist only in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, Inode};
use super::{AppendFile, LockGuard, RandomRead, SegmentFile, Vfs};
use crate::error::{Error, Result};

/// An in-memory file system. Clones share it; it ends with the last of them.
///
/// Nothing is ever lost, so syncs do nothing.
#[derive(Debug, Clone)]
pub struct MemoryVfs {
    disk: Arc<Mutex<Disk>>,
}

impl Default for MemoryVfs {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryVfs {
    /// An empty file system.
    pub fn new() -> Self {
        Self {
            disk: Arc::new(Mutex::new(Disk::new(false))),
        }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Vfs for MemoryVfs {
    fn open_read(&self, path: &Path) -> Result<Box<dyn RandomRead>> {
        let inode = self.disk().open(path);
        let inode = inode.map_err(|error| Error::io("open", path, error))?;
        Ok(Box::new(MemoryFile::new(inode, path)))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let inode = self.disk().open_or_create(path);
        let inode = inode.map_err(|error| Error::io("create", path, error))?;
        inode.truncate();
        Ok(Box::new(MemoryFile::new(inode, path)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let inode = self.disk().open(path);
        let inode = inode.map_err(|error| Error::io("open", path, error))?;
        Ok(Box::new(MemoryFile::new(inode, path)))
    }

    fn open_log(&self, path: &Path) -> Result<Box<dyn SegmentFile>> {
        let inode = self.disk().open_or_create(path);
        let inode = inode.map_err(|error| Error::io("open", path, error))?;
        Ok(Box::new(MemoryFile::new(inode, path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let renamed = self.disk().rename(from, to);
        renamed.map_err(|error| Error::io("rename", from, error))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.disk().remove(path);
        removed.map_err(|error| Error::io("remove", path, error))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let removed = self.disk().remove_dir(path);
        removed.map_err(|error| Error::io("remove", path, error))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let names = self.disk().list(dir);
        names.map_err(|error| Error::io("list", dir, error))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.disk().exists(path))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let created = self.disk().create_dir_all(dir);
        created.map_err(|error| Error::io("create", dir, error))
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let names = self.disk().list(dir);
        names
            .map(drop)
            .map_err(|error| Error::io("sync", dir, error))
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()> {
        let linked = self.disk().hard_link(existing, link);
        linked.map_err(|error| Error::io("link", existing, error))
    }

    fn free_bytes(&self, _dir: &Path) -> Result<u64> {
        Ok(u64::MAX)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        let inode = self.disk().open_or_create(path);
        let inode = inode.map_err(|error| Error::io("open", path, error))?;
        MemoryLock::take(inode, path)
    }
}

#[derive(Debug)]
struct MemoryFile {
    inode: Arc<Inode>,
    path: PathBuf,
}

impl MemoryFile {
    fn new(inode: Arc<Inode>, path: &Path) -> Self {
        let path = path.to_owned();
        Self { inode, path }
    }
}

impl RandomRead for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        Ok(self.inode.read_at(offset, buffer))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.inode.len())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl AppendFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.inode.append(bytes);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.inode.cut(size);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.inode.len()
    }
}

impl SegmentFile for MemoryFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inode.write_at(offset, bytes);
        Ok(())
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.inode.cut(size);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// The lock of an inode, released when dropped.
#[derive(Debug)]
pub(super) struct MemoryLock(Arc<Inode>);

impl MemoryLock {
    pub(super) fn take(inode: Arc<Inode>, path: &Path) -> Result<Box<dyn LockGuard>> {
        if inode.lock() {
            return Ok(Box::new(Self(inode)));
        }
        Err(Error::Locked {
            path: path.to_owned(),
        })
    }
}

impl LockGuard for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.0.unlock();
    }
}
