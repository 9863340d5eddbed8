//! Verifying all checksums.

use std::path::Path;
use std::sync::Arc;

use super::{Db, DbCore, Keyspace, description, recovery};
use crate::cache::BlockCache;
use crate::error::{Error, Result};
use crate::table::reader::TableReader;
use crate::version::table_cache;
use crate::vfs::Vfs;
use crate::wal;

/// The contents of a verified database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Tables, all of whose blocks were read.
    pub tables: u64,
    /// Their entries.
    pub entries: u64,
    /// Their size in bytes.
    pub table_bytes: u64,
    /// The log; `None` if the database is open.
    pub log: Option<wal::LogReport>,
}

/// Verifies a database that is not open, without changing it. `progress` is called with the bytes
/// that were checked, and with the total.
pub fn verify(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<DatabaseReport> {
    let _lock = recovery::lock(&**vfs, dir)?;
    let description =
        description::describe(&**vfs, dir)?.ok_or_else(|| Error::InvalidArgument {
            what: format!("{} contains no database", dir.display()),
        })?;
    let total = description.files().map(|(_, meta)| meta.size).sum();
    let blocks = Arc::new(BlockCache::new(0, 0));
    let mut verified = DatabaseReport::default();
    for (number, meta) in description.files() {
        let path = dir.join(table_cache::name_of(number));
        let table = TableReader::open(vfs.open_read(&path)?, number, &blocks)?;
        verified.count(&table, meta.size, &mut |done| progress(done, total))?;
    }
    verified.log = Some(wal::verify(&**vfs, &description::log_dir(dir))?);
    Ok(verified)
}

impl DatabaseReport {
    fn count(
        &mut self,
        table: &Arc<TableReader>,
        size: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let before = self.table_bytes;
        let mut done = before;
        self.entries += table.verify(&mut |bytes| {
            done += bytes;
            progress(done);
        })?;
        self.tables += 1;
        self.table_bytes = before + size;
        progress(self.table_bytes);
        Ok(())
    }
}

impl DbCore {
    /// Reads every table of the open database, bypassing the cache.
    pub(crate) fn verify_tables(
        &self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<DatabaseReport> {
        let keyspaces = self.all_keyspaces();
        let views: Vec<_> = keyspaces.iter().map(Keyspace::view).collect();
        let total = views.iter().map(|view| view.version.size()).sum();
        let mut verified = DatabaseReport::default();
        for file in views.iter().flat_map(|view| view.version.files()) {
            let table = self.tables.table(file)?;
            verified.count(&table, file.meta.size, &mut |done| progress(done, total))?;
        }
        Ok(verified)
    }
}

impl Db {
    /// Reads and verifies every table. `progress` is called with the bytes that were checked, and
    /// with the total.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<DatabaseReport> {
        self.core.verify_tables(progress)
    }
}
