//! Open tables, bounded in bytes.
//!
//! An open table is referenced by its [`TableFile`], so that a lookup finds it without a search.
//! The cache only tracks which are open, and closes some that were not used recently when they
//! exceed the budget.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::cache::BlockCache;
use crate::error::Result;
use crate::table::reader::TableReader;
use crate::version::file::TableFile;
use crate::vfs::Vfs;

/// Opens tables and closes them again.
#[derive(Debug)]
pub(crate) struct TableCache {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    blocks: Arc<BlockCache>,
    budget: usize,
    /// Identifies tables in the block cache. File numbers would not do, because a bulk-loaded
    /// keyspace could reuse one.
    next: AtomicU64,
    open: Mutex<OpenTables>,
}

#[derive(Debug, Default)]
struct OpenTables {
    files: VecDeque<(Weak<TableFile>, usize)>,
    bytes: usize,
}

/// The name of a table's file.
pub(crate) fn name_of(number: u64) -> String {
    format!("{number:06}.table")
}

/// The number in the name of a table's file.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".table")?.parse().ok()
}

impl TableCache {
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        blocks: Arc<BlockCache>,
        budget: usize,
    ) -> Self {
        Self {
            vfs,
            dir: dir.to_owned(),
            blocks,
            budget,
            next: AtomicU64::new(1),
            open: Mutex::default(),
        }
    }

    pub(crate) fn path_of(&self, number: u64) -> PathBuf {
        self.dir.join(name_of(number))
    }

    /// The open table of a file.
    #[inline]
    pub(crate) fn table(&self, file: &Arc<TableFile>) -> Result<Arc<TableReader>> {
        self.with(file, |table| Ok(Arc::clone(table)))
    }

    /// Reads from the open table of a file. Unlike [`TableCache::table`] this writes nothing
    /// shared, so that readers do not contend for cache lines.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        file: &Arc<TableFile>,
        read: impl FnOnce(&Arc<TableReader>) -> Result<T>,
    ) -> Result<T> {
        if let Some(table) = file.handle.load().as_ref() {
            if !file.used.load(Ordering::Relaxed) {
                file.used.store(true, Ordering::Relaxed);
            }
            return read(table);
        }
        read(&self.open(file)?)
    }

    fn open(&self, file: &Arc<TableFile>) -> Result<Arc<TableReader>> {
        let opening = file.opening.lock();
        if let Some(table) = file.handle.load_full() {
            return Ok(table);
        }
        let reader = self.vfs.open_read(file.path())?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let table = TableReader::open(reader, number, &self.blocks)?;
        file.handle.store(Some(Arc::clone(&table)));
        drop(opening);
        let memory = table.memory();
        let mut open = self.open.lock();
        open.bytes += memory;
        open.files.push_back((Arc::downgrade(file), memory));
        let closed = close_some(&mut open, self.budget);
        drop(open);
        for file in closed {
            // Current users keep the table; the next reader opens it again.
            file.handle.store(None);
        }
        Ok(table)
    }

    /// Bytes of open tables.
    pub(crate) fn bytes(&self) -> usize {
        self.open.lock().bytes
    }
}

/// Chooses tables to close, with a second chance for those that were used.
fn close_some(open: &mut OpenTables, budget: usize) -> Vec<Arc<TableFile>> {
    let mut closed = Vec::new();
    let mut attempts = 2 * open.files.len();
    while open.bytes > budget && open.files.len() > 1 && attempts > 0 {
        attempts -= 1;
        let Some((weak, memory)) = open.files.pop_front() else {
            break;
        };
        match weak.upgrade() {
            Some(file) if file.used.swap(false, Ordering::Relaxed) => {
                open.files.push_back((weak, memory));
            }
            Some(file) => {
                open.bytes -= memory;
                closed.push(file);
            }
            None => open.bytes -= memory,
        }
    }
    closed
}
