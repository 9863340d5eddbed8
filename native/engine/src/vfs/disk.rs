//! A simulated disk: what programs see, and what would survive a power loss.
//!
//! Both states are kept. Writes and name changes apply to the current state at once and are queued;
//! a sync moves them to the durable state. A crash decides randomly about each queued one, and the
//! durable state becomes the current one.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::random::SeededRandom;

/// Real disks write this many bytes atomically; more only by luck.
const SECTOR_BYTES: usize = 512;

/// What a name refers to.
#[derive(Debug, Clone)]
enum DirectoryEntry {
    Directory,
    File(Arc<Inode>),
}

/// A name change that no sync of its directory has made durable yet.
#[derive(Debug)]
struct DirectoryChange {
    /// The directory whose sync makes it durable.
    dir: PathBuf,
    kind: ChangeKind,
}

#[derive(Debug)]
enum ChangeKind {
    Add(PathBuf, DirectoryEntry),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

/// The names, current and durable.
#[derive(Debug)]
pub(super) struct Disk {
    names: BTreeMap<PathBuf, DirectoryEntry>,
    durable: BTreeMap<PathBuf, DirectoryEntry>,
    pending: Vec<DirectoryChange>,
    /// Whether crashes are expected; otherwise only the current state is kept.
    durability: bool,
}

impl Disk {
    pub(super) fn new(durability: bool) -> Self {
        Self {
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            durability,
        }
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<Arc<Inode>> {
        match self.names.get(path) {
            Some(DirectoryEntry::File(inode)) => Ok(Arc::clone(inode)),
            Some(DirectoryEntry::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Opens or creates a file.
    pub(super) fn open_or_create(&mut self, path: &Path) -> io::Result<Arc<Inode>> {
        match self.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            entry => return entry,
        }
        self.parent_exists(path)?;
        let inode = Arc::new(Inode::new(self.durability));
        self.add(path, DirectoryEntry::File(Arc::clone(&inode)));
        Ok(inode)
    }

    fn parent_exists(&self, path: &Path) -> io::Result<()> {
        let parent = parent(path);
        let top = parent.parent().is_none();
        match self.names.get(&parent) {
            Some(DirectoryEntry::Directory) => Ok(()),
            None if top => Ok(()),
            Some(DirectoryEntry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn add(&mut self, path: &Path, entry: DirectoryEntry) {
        self.names.insert(path.to_owned(), entry.clone());
        self.changed(parent(path), ChangeKind::Add(path.to_owned(), entry));
    }

    fn changed(&mut self, dir: PathBuf, kind: ChangeKind) {
        if self.durability {
            self.pending.push(DirectoryChange { dir, kind });
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.open(from)?;
        self.parent_exists(to)?;
        let kind = ChangeKind::Rename(from.to_owned(), to.to_owned());
        apply(&mut self.names, &kind);
        self.changed(parent(to), kind);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.open(path)?;
        self.names.remove(path);
        self.changed(parent(path), ChangeKind::Remove(path.to_owned()));
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        if !self.list(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.names.remove(path);
        self.changed(parent(path), ChangeKind::Remove(path.to_owned()));
        Ok(())
    }

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        match self.names.get(dir) {
            Some(DirectoryEntry::Directory) => {}
            Some(DirectoryEntry::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
            None if dir.parent().is_none() => {}
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        let inside = self.names.keys().filter(|path| path.parent() == Some(dir));
        let names = inside.filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
        Ok(names.collect())
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.names.contains_key(path)
    }

    pub(super) fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        let mut missing: Vec<&Path> = dir.ancestors().filter(|path| !top(path)).collect();
        missing.reverse();
        for path in missing {
            match self.names.get(path) {
                Some(DirectoryEntry::Directory) => {}
                Some(DirectoryEntry::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => self.add(path, DirectoryEntry::Directory),
            }
        }
        Ok(())
    }

    pub(super) fn hard_link(&mut self, existing: &Path, link: &Path) -> io::Result<()> {
        let inode = self.open(existing)?;
        if self.exists(link) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.parent_exists(link)?;
        self.add(link, DirectoryEntry::File(inode));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let (of_dir, others) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|change| change.dir == dir);
        self.pending = others;
        let of_dir: Vec<DirectoryChange> = of_dir;
        for change in &of_dir {
            apply(&mut self.durable, &change.kind);
        }
    }

    pub(super) fn unlock_all(&self) {
        for entry in self.names.values() {
            if let DirectoryEntry::File(inode) = entry {
                inode.unlock();
            }
        }
    }

    /// The names of all files, as programs see them.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let is_file = |(path, entry): (&PathBuf, &DirectoryEntry)| match entry {
            DirectoryEntry::File(_) => Some(path.clone()),
            DirectoryEntry::Directory => None,
        };
        self.names.iter().filter_map(is_file).collect()
    }

    /// Simulates a power loss. Queued name changes happen or not, in any order; queued writes are
    /// lost, torn or reordered. Open handles keep using removed files.
    pub(super) fn crash(&mut self, random: &mut SeededRandom) {
        let mut waiting: Vec<DirectoryChange> = std::mem::take(&mut self.pending);
        if random.one_in(2) {
            shuffle(&mut waiting, random);
        }
        waiting.retain(|_| random.one_in(2));
        for change in &waiting {
            apply(&mut self.durable, &change.kind);
        }
        let mut survivors: BTreeMap<*const Inode, Arc<Inode>> = BTreeMap::new();
        let mut left = BTreeMap::new();
        for (path, entry) in &self.durable {
            if !reachable(&self.durable, path) {
                continue;
            }
            let entry = match entry {
                DirectoryEntry::Directory => DirectoryEntry::Directory,
                DirectoryEntry::File(inode) => DirectoryEntry::File(Arc::clone(
                    survivors
                        .entry(Arc::as_ptr(inode))
                        .or_insert_with(|| Arc::new(inode.after_crash(random))),
                )),
            };
            left.insert(path.clone(), entry);
        }
        self.names.clone_from(&left);
        self.durable = left;
    }
}

fn top(path: &Path) -> bool {
    path.parent().is_none()
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

/// Whether all directories above a name exist.
fn reachable(names: &BTreeMap<PathBuf, DirectoryEntry>, path: &Path) -> bool {
    path.ancestors()
        .skip(1)
        .filter(|above| !top(above))
        .all(|above| names.contains_key(above))
}

fn apply(names: &mut BTreeMap<PathBuf, DirectoryEntry>, change: &ChangeKind) {
    match change {
        ChangeKind::Add(path, entry) => {
            names.insert(path.clone(), entry.clone());
        }
        ChangeKind::Remove(path) => {
            names.remove(path);
        }
        ChangeKind::Rename(from, to) => {
            if let Some(entry) = names.remove(from) {
                names.insert(to.clone(), entry);
            }
        }
    }
}

fn shuffle<T>(list: &mut [T], random: &mut SeededRandom) {
    for end in (1..list.len()).rev() {
        list.swap(end, random.up_to(end));
    }
}

/// The contents of a file, independent of its names.
#[derive(Debug)]
pub(super) struct Inode {
    content: RwLock<InodeContent>,
    locked: AtomicBool,
}

#[derive(Debug, Default)]
struct InodeContent {
    current: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<UnsyncedWrite>,
    durability: bool,
}

#[derive(Debug)]
struct UnsyncedWrite {
    offset: usize,
    bytes: Vec<u8>,
    /// The file ends at the offset.
    cuts: bool,
}

impl UnsyncedWrite {
    /// Applies it, or only its first bytes.
    fn apply(&self, content: &mut Vec<u8>, length: usize) {
        if self.cuts {
            content.truncate(self.offset);
        } else {
            put(
                content,
                self.offset,
                self.bytes.get(..length).unwrap_or(&[]),
            );
        }
    }
}

impl Inode {
    fn new(durability: bool) -> Self {
        Self {
            content: RwLock::new(InodeContent {
                durability,
                ..InodeContent::default()
            }),
            locked: AtomicBool::new(false),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, InodeContent> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, InodeContent> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> u64 {
        self.read().current.len() as u64
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let content = self.read();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let Some(rest) = content.current.get(start..) else {
            return 0;
        };
        let length = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), rest.get(..length)) {
            to.copy_from_slice(from);
        }
        length
    }

    pub(super) fn write_at(&self, offset: u64, bytes: &[u8]) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut content = self.write();
        put(&mut content.current, offset, bytes);
        if content.durability {
            let bytes = bytes.to_vec();
            content.pending.push(UnsyncedWrite {
                offset,
                bytes,
                cuts: false,
            });
        }
    }

    /// Truncates the file. Until a sync a crash may undo it.
    pub(super) fn cut(&self, size: u64) {
        let offset = usize::try_from(size).unwrap_or(usize::MAX);
        let mut content = self.write();
        content.current.truncate(offset);
        if content.durability {
            content.pending.push(UnsyncedWrite {
                offset,
                bytes: Vec::new(),
                cuts: true,
            });
        }
    }

    pub(super) fn append(&self, bytes: &[u8]) {
        let end = self.len();
        self.write_at(end, bytes);
    }

    /// Empties the file, durably: programs only empty files that they are about to create.
    pub(super) fn truncate(&self) {
        let mut content = self.write();
        content.current.clear();
        content.durable.clear();
        content.pending.clear();
    }

    pub(super) fn sync(&self) {
        let content = &mut *self.write();
        for write in content.pending.drain(..) {
            write.apply(&mut content.durable, write.bytes.len());
        }
    }

    /// Behaves as kernels do after a failed sync: the bytes stay visible and count as clean, but
    /// may never reach the disk.
    pub(super) fn fail_sync(&self, random: &mut SeededRandom) {
        let content = &mut *self.write();
        let lost = std::mem::take(&mut content.pending);
        settle(&mut content.durable, &lost, random);
    }

    /// Changes bytes as a failing disk does: both current and durable.
    pub(super) fn damage(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let content = &mut *self.write();
        change(&mut content.current);
        content.durable.clone_from(&content.current);
        content.pending.clear();
    }

    pub(super) fn lock(&self) -> bool {
        !self.locked.swap(true, Ordering::AcqRel)
    }

    pub(super) fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }

    fn after_crash(&self, random: &mut SeededRandom) -> Self {
        let content = self.read();
        let mut left = content.durable.clone();
        settle(&mut left, &content.pending, random);
        let after = Self::new(content.durability);
        {
            let mut fresh = after.write();
            fresh.durable.clone_from(&left);
            fresh.current = left;
        }
        after
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, new: &[u8]) {
    let end = offset.saturating_add(new.len());
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    if let Some(target) = bytes.get_mut(offset..end) {
        target.copy_from_slice(new);
    }
}

/// Decides which of the queued writes reached the disk: none, the first ones with the last of them
/// torn at any byte, or any sectors.
fn settle(durable: &mut Vec<u8>, waiting: &[UnsyncedWrite], random: &mut SeededRandom) {
    match random.below(3) {
        0 => {}
        1 => {
            let kept = random.up_to(waiting.len());
            for write in waiting.iter().take(kept) {
                write.apply(durable, write.bytes.len());
            }
            if let Some(torn) = waiting.get(kept) {
                let length = random.up_to(torn.bytes.len());
                if !torn.cuts {
                    torn.apply(durable, length);
                }
            }
        }
        _ => {
            for write in waiting {
                if write.cuts && random.one_in(2) {
                    write.apply(durable, 0);
                }
                let mut offset = write.offset;
                for sector in write.bytes.chunks(SECTOR_BYTES) {
                    if random.one_in(2) {
                        put(durable, offset, sector);
                    }
                    offset += sector.len();
                }
            }
        }
    }
}
