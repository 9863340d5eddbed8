//! A disk with slow syncs, for the engine only: group commit pays off only where a sync costs more
//! than waking the threads that wait for it.

use std::path::Path;
use std::time::Duration;

use rillbase_engine::Result;
use rillbase_engine::vfs::{AppendFile, LockGuard, RandomRead, RealVfs, SegmentFile, Vfs};

/// The operating system's file system with delayed syncs.
#[derive(Debug)]
pub(crate) struct SlowVfs {
    /// The additional time of each sync.
    pub(crate) by: Duration,
}

#[derive(Debug)]
struct Slow<F: ?Sized> {
    by: Duration,
    file: Box<F>,
}

impl SlowVfs {
    fn slow<F: ?Sized>(&self, file: Box<F>) -> Slow<F> {
        Slow { by: self.by, file }
    }
}

impl AppendFile for Slow<dyn AppendFile> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.file.truncate(size)
    }

    fn sync(&mut self) -> Result<()> {
        std::thread::sleep(self.by);
        self.file.sync()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl RandomRead for Slow<dyn SegmentFile> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

impl SegmentFile for Slow<dyn SegmentFile> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.file.truncate(size)
    }

    fn sync(&self) -> Result<()> {
        std::thread::sleep(self.by);
        self.file.sync()
    }
}

impl Vfs for SlowVfs {
    fn open_read(&self, path: &Path) -> Result<Box<dyn RandomRead>> {
        RealVfs.open_read(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(self.slow(RealVfs.create(path)?)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(self.slow(RealVfs.open_append(path)?)))
    }

    fn open_log(&self, path: &Path) -> Result<Box<dyn SegmentFile>> {
        Ok(Box::new(self.slow(RealVfs.open_log(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        RealVfs.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        RealVfs.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        RealVfs.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        RealVfs.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        RealVfs.exists(path)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        RealVfs.free_bytes(dir)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        RealVfs.create_dir_all(dir)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        std::thread::sleep(self.by);
        RealVfs.sync_dir(dir)
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()> {
        RealVfs.hard_link(existing, link)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        RealVfs.lock(path)
    }
}
