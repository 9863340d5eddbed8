//! Opening a database for tests of one keyspace.

use std::sync::Arc;

use rillbase_engine::vfs::Vfs;
use rillbase_engine::{Clock, Db, DbOptions, Keyspace, KeyspaceOptions, ManualClock};

/// A database with one keyspace, without background threads.
pub(crate) fn open_entries(
    vfs: &Arc<dyn Vfs>,
    clock: &Arc<ManualClock>,
    database: DbOptions,
    options: KeyspaceOptions,
) -> (Db, Keyspace) {
    let database = DbOptions {
        vfs: Arc::clone(vfs),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        background_threads: 0,
        ..database
    };
    let db = Db::open("/db", database.keyspace("entries", options)).unwrap();
    let entries = db.keyspace("entries").unwrap();
    (db, entries)
}
