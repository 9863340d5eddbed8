//! A file system that fails as real ones do, determined by a seed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, Inode};
use super::memory::MemoryLock;
use super::random::SeededRandom;
use super::{AppendFile, LockGuard, RandomRead, SegmentFile, Vfs};
use crate::error::{Error, Result};

/// What happens at an I/O site instead of the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with EIO, once. A write may have been applied in part; a sync loses what
    /// it should have saved, and later syncs do not report it.
    Error,
    /// The disk is full: this operation, if it needs space, and all later ones that do fail with
    /// ENOSPC, until [`FaultVfs::clear`].
    NoSpace,
    /// Power is lost during the operation: everything fails until [`FaultVfs::crash`].
    Stop,
}

/// The effect of an operation on the disk, which determines how it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskEffect {
    Reads,
    Needs,
    Syncs,
    Removes,
}

#[derive(Debug)]
struct FaultState {
    disk: Disk,
    random: SeededRandom,
    /// I/O operations so far.
    sites: u64,
    /// Syncs of files among them.
    syncs: u64,
    /// Faults at future sites.
    plan: BTreeMap<u64, Fault>,
    full: bool,
    free: u64,
    stopped: bool,
    /// The number of crashes; earlier handles are invalid.
    boot: u64,
}

/// An in-memory file system that loses, tears, rejects and reorders. Clones share it.
///
/// Each I/O operation is a site, counted from 0. A test runs its work once to count the sites, and
/// then again with a fault at each of them in turn.
#[derive(Debug, Clone)]
pub struct FaultVfs {
    state: Arc<Mutex<FaultState>>,
}

impl FaultVfs {
    /// An empty file system whose choices follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(FaultState {
                disk: Disk::new(true),
                random: SeededRandom::new(seed),
                sites: 0,
                syncs: 0,
                plan: BTreeMap::new(),
                full: false,
                free: u64::MAX,
                stopped: false,
                boot: 0,
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many I/O operations there have been.
    pub fn sites(&self) -> u64 {
        self.state().sites
    }

    /// How many of them were syncs, of files or of directories.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Injects `fault` at the I/O operation with this number.
    pub fn fail_at(&self, site: u64, fault: Fault) {
        self.state().plan.insert(site, fault);
    }

    /// Fills the disk: operations that need space fail until [`FaultVfs::clear`].
    pub fn fill_up(&self) {
        self.state().full = true;
    }

    /// Sets what `free_bytes` reports. Writes do not change it.
    pub fn report_free(&self, bytes: u64) {
        self.state().free = bytes;
    }

    /// Removes planned faults and makes space again.
    pub fn clear(&self) {
        let mut state = self.state();
        state.plan.clear();
        state.full = false;
    }

    /// Whether power was lost.
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Loses power if it is not lost yet, randomly loses what was not synced, and restarts. Open
    /// handles stay invalid, locks are released, no fault is planned.
    pub fn crash(&self) {
        let mut guard = self.state();
        let state = &mut *guard;
        state.disk.crash(&mut state.random);
        state.plan.clear();
        state.full = false;
        state.stopped = false;
        state.boot += 1;
    }

    /// Ends the process but not the machine: nothing is lost, but open handles stay invalid, locks
    /// are released, no fault is planned.
    pub fn kill(&self) {
        let mut state = self.state();
        state.disk.unlock_all();
        state.plan.clear();
        state.full = false;
        state.stopped = false;
        state.boot += 1;
    }

    /// All files, with their sizes.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state();
        let files = state.disk.files().into_iter();
        let sized = files.map(|path| {
            let size = state.disk.open(&path).map_or(0, |inode| inode.len());
            (path, size)
        });
        sized.collect()
    }

    /// Changes a file's bytes directly, as failing disks do.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let inode = self.state().disk.open(path);
        inode
            .map_err(|error| Error::io("open", path, error))?
            .damage(change);
        Ok(())
    }

    /// Applies an operation to the disk, unless a fault is due.
    fn site<T>(
        &self,
        operation: &'static str,
        path: &Path,
        effect: DiskEffect,
        act: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> Result<T> {
        let mut state = self.state();
        state
            .arrive(effect)
            .and_then(|()| act(&mut state.disk))
            .map_err(|error| Error::io(operation, path, error))
    }

    fn handle(&self, inode: Arc<Inode>, path: &Path) -> FaultFile {
        FaultFile {
            inode,
            path: path.to_owned(),
            boot: self.state().boot,
            vfs: self.clone(),
        }
    }
}

impl FaultState {
    /// Counts an operation and checks whether it may happen.
    fn arrive(&mut self, effect: DiskEffect) -> io::Result<()> {
        if self.stopped {
            return Err(power_is_off());
        }
        let fault = self.plan.remove(&self.sites);
        self.sites += 1;
        self.syncs += u64::from(effect == DiskEffect::Syncs);
        match fault {
            Some(Fault::Stop) => {
                self.stopped = true;
                Err(power_is_off())
            }
            Some(Fault::Error) => Err(io::Error::from_raw_os_error(EIO)),
            Some(Fault::NoSpace) if effect != DiskEffect::Removes => {
                self.full = true;
                let code = if effect == DiskEffect::Reads {
                    EIO
                } else {
                    ENOSPC
                };
                Err(io::Error::from_raw_os_error(code))
            }
            _ if self.full && effect == DiskEffect::Needs => {
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            _ => Ok(()),
        }
    }
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn power_is_off() -> io::Error {
    io::Error::other("power is off")
}

impl Vfs for FaultVfs {
    fn open_read(&self, path: &Path) -> Result<Box<dyn RandomRead>> {
        let inode = self.site("open", path, DiskEffect::Reads, |disk| disk.open(path))?;
        Ok(Box::new(self.handle(inode, path)))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let create = |disk: &mut Disk| disk.open_or_create(path);
        let inode = self.site("create", path, DiskEffect::Needs, create)?;
        inode.truncate();
        Ok(Box::new(self.handle(inode, path)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let inode = self.site("open", path, DiskEffect::Reads, |disk| disk.open(path))?;
        Ok(Box::new(self.handle(inode, path)))
    }

    fn open_log(&self, path: &Path) -> Result<Box<dyn SegmentFile>> {
        let create = |disk: &mut Disk| disk.open_or_create(path);
        let inode = self.site("open", path, DiskEffect::Needs, create)?;
        Ok(Box::new(self.handle(inode, path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.site("rename", from, DiskEffect::Needs, |disk| {
            disk.rename(from, to)
        })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.site("remove", path, DiskEffect::Removes, |disk| {
            disk.remove(path)
        })
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let remove = |disk: &mut Disk| disk.remove_dir(path);
        self.site("remove", path, DiskEffect::Removes, remove)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.site("list", dir, DiskEffect::Reads, |disk| disk.list(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let look_up = |disk: &mut Disk| Ok(disk.exists(path));
        self.site("look up", path, DiskEffect::Reads, look_up)
    }

    fn create_dir_all(&self, dir: &Path) -> Result<()> {
        let create = |disk: &mut Disk| disk.create_dir_all(dir);
        self.site("create", dir, DiskEffect::Needs, create)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let sync = |disk: &mut Disk| {
            disk.list(dir)?;
            disk.sync_dir(dir);
            Ok(())
        };
        self.site("sync", dir, DiskEffect::Syncs, sync)
    }

    fn hard_link(&self, existing: &Path, link: &Path) -> Result<()> {
        let make = |disk: &mut Disk| disk.hard_link(existing, link);
        self.site("link", existing, DiskEffect::Needs, make)
    }

    fn free_bytes(&self, dir: &Path) -> Result<u64> {
        self.site("measure the free space of", dir, DiskEffect::Reads, |_| {
            Ok(())
        })?;
        let state = self.state();
        Ok(if state.full { 0 } else { state.free })
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        let create = |disk: &mut Disk| disk.open_or_create(path);
        let inode = self.site("lock", path, DiskEffect::Needs, create)?;
        MemoryLock::take(inode, path)
    }
}

#[derive(Debug)]
struct FaultFile {
    inode: Arc<Inode>,
    path: PathBuf,
    boot: u64,
    vfs: FaultVfs,
}

impl FaultFile {
    /// Counts an operation on the open file and checks whether it may happen; fails if power was
    /// lost before it started.
    fn arrive(
        &self,
        effect: DiskEffect,
    ) -> io::Result<(MutexGuard<'_, FaultState>, io::Result<()>)> {
        let mut state = self.vfs.state();
        if state.stopped || state.boot != self.boot {
            return Err(power_is_off());
        }
        let allowed = state.arrive(effect);
        Ok((state, allowed))
    }

    fn read(&self, operation: &'static str, offset: u64) -> Result<()> {
        let allowed = self
            .arrive(DiskEffect::Reads)
            .and_then(|(_, allowed)| allowed);
        allowed.map_err(|error| Error::io_at(operation, &self.path, offset, error))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let failed = |error| Error::io_at("write", &self.path, offset, error);
        let (mut state, allowed) = self.arrive(DiskEffect::Needs).map_err(failed)?;
        let part = match allowed {
            Ok(()) => bytes.len(),
            Err(_) => state.random.up_to(bytes.len()),
        };
        self.inode
            .write_at(offset, bytes.get(..part).unwrap_or(&[]));
        allowed.map_err(failed)
    }

    fn cut(&self, size: u64) -> Result<()> {
        let failed = |error| Error::io_at("truncate", &self.path, size, error);
        let (_state, allowed) = self.arrive(DiskEffect::Removes).map_err(failed)?;
        allowed.map_err(failed)?;
        self.inode.cut(size);
        Ok(())
    }

    fn sync_all(&self) -> Result<()> {
        let failed = |error| Error::io("sync", &self.path, error);
        let (mut state, allowed) = self.arrive(DiskEffect::Syncs).map_err(failed)?;
        match allowed {
            Ok(()) => self.inode.sync(),
            // The following crash decides about queued writes.
            Err(_) if state.stopped => {}
            Err(_) => self.inode.fail_sync(&mut state.random),
        }
        allowed.map_err(failed)
    }
}

impl RandomRead for FaultFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.read("read", offset)?;
        Ok(self.inode.read_at(offset, buffer))
    }

    fn len(&self) -> Result<u64> {
        self.read("look up", 0)?;
        Ok(self.inode.len())
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl AppendFile for FaultFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(self.inode.len(), bytes)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.cut(size)
    }

    fn sync(&mut self) -> Result<()> {
        self.sync_all()
    }

    fn len(&self) -> u64 {
        self.inode.len()
    }
}

impl SegmentFile for FaultFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(offset, bytes)
    }

    fn truncate(&self, size: u64) -> Result<()> {
        self.cut(size)
    }

    fn sync(&self) -> Result<()> {
        self.sync_all()
    }
}
