//! The operating system's files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt as _, FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::owner::inherit;
use super::{AppendFile, LockGuard, RandomRead, SegmentFile, Vfs};
use crate::error::{Error, Result};

/// The modes of created files, whatever the process's umask: a database is private to its account.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;

/// The operating system's file system.
///
/// Files are synced with `fdatasync`, which includes the size but not the times; directories with
/// `fsync`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealVfs;

impl Vfs for RealVfs {
    fn open_read(&self, path: &Path) -> Result<Box<dyn RandomRead>> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Ok(Box::new(Positioned::new(file, path)))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(PRIVATE_FILE)
            .open(path)
            .map_err(|error| Error::io("create", path, error))?;
        inherit_owner(&file, path)?;
        Ok(Box::new(Appended::new(file, path, 0)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(|error| Error::io("open", path, error))?;
        let size = size_of(&file, path)?;
        Ok(Box::new(Appended::new(file, path, size)))
    }

    fn open_log(&self, path: &Path) -> Result<Box<dyn SegmentFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(PRIVATE_FILE)
            .open(path)
            .map_err(|error| Error::io("open", path, error))?;
        inherit_owner(&file, path)?;
        Ok(Box::new(Positioned::new(file, path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|error| Error::io("rename", from, error))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|error| Error::io("remove", path, error))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|error| Error::io("remove", path, error))
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let failed = |error| Error::io("list", dir, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed)? {
            if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists()
            .map_err(|error| Error::io("look up", path, error))
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let missing = dir
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let missing: Vec<_> = missing.collect();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE_DIRECTORY)
            .create(dir)
            .map_err(|error| Error::io("create", dir, error))?;
        for created in missing.into_iter().rev() {
            let handle = File::open(created).map_err(|error| Error::io("open", created, error))?;
            inherit_owner(&handle, created)?;
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        File::open(dir)
            .and_then(|handle| handle.sync_all())
            .map_err(|error| Error::io("sync", dir, error))
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()> {
        fs::hard_link(existing, link).map_err(|error| Error::io("link", existing, error))
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        let status = rustix::fs::statvfs(dir)
            .map_err(|error| Error::io("measure the free space of", dir, error.into()))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(PRIVATE_FILE)
            .open(path)
            .map_err(|error| Error::io("open", path, error))?;
        inherit_owner(&file, path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(Locked(file))),
            Err(TryLockError::WouldBlock) => Err(Error::Locked {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(Error::io("lock", path, error)),
        }
    }
}

fn inherit_owner(file: &File, path: &Path) -> Result<()> {
    inherit(file, path).map_err(|error| Error::io("change the owner of", path, error))
}

fn size_of(file: &File, path: &Path) -> Result<u64> {
    let metadata = file.metadata();
    metadata
        .map(|metadata| metadata.len())
        .map_err(|error| Error::io("look up", path, error))
}

#[derive(Debug)]
struct Positioned {
    file: File,
    path: PathBuf,
}

impl Positioned {
    fn new(file: File, path: &Path) -> Self {
        Self {
            file,
            path: path.to_owned(),
        }
    }
}

impl RandomRead for Positioned {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let position = offset.saturating_add(filled as u64);
            match self.file.read_at(rest, position) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io_at("read", &self.path, position, error)),
            }
        }
        Ok(filled)
    }

    fn len(&self) -> Result<u64> {
        size_of(&self.file, &self.path)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl SegmentFile for Positioned {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|error| Error::io_at("write", &self.path, offset, error))
    }

    fn truncate(&self, size: u64) -> Result<()> {
        let cut = self.file.set_len(size);
        cut.map_err(|error| Error::io_at("truncate", &self.path, size, error))
    }

    fn sync(&self) -> Result<()> {
        let synced = self.file.sync_data();
        synced.map_err(|error| Error::io("sync", &self.path, error))
    }
}

#[derive(Debug)]
struct Appended {
    file: File,
    path: PathBuf,
    size: u64,
}

impl Appended {
    fn new(file: File, path: &Path, size: u64) -> Self {
        Self {
            file,
            path: path.to_owned(),
            size,
        }
    }
}

impl AppendFile for Appended {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| Error::io_at("write", &self.path, self.size, error))?;
        self.size = self.size.saturating_add(bytes.len() as u64);
        Ok(())
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        let cut = self.file.set_len(size);
        let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(size)));
        cut.map_err(|error| Error::io_at("truncate", &self.path, size, error))?;
        self.size = size;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.file.sync_data();
        synced.map_err(|error| Error::io("sync", &self.path, error))
    }

    fn len(&self) -> u64 {
        self.size
    }
}

/// The lock belongs to the open file and ends with it.
#[derive(Debug)]
struct Locked(#[expect(dead_code, reason = "kept open for its lock")] File);

impl LockGuard for Locked {}
