//! Tables that are written and not in the manifest yet. Where that fails for lack of room, they are
//! removed: they take the room that others need.

use parking_lot::Mutex;

use super::DbCore;

/// The numbers of tables that a flush or compaction writes. Dropped without being kept, their files
/// are removed, unless what the disk holds is not known any more.
#[derive(Debug)]
pub(super) struct Drafts<'a> {
    core: &'a DbCore,
    numbers: Mutex<Vec<u64>>,
}

impl<'a> Drafts<'a> {
    pub(super) fn new(core: &'a DbCore) -> Self {
        Self {
            core,
            numbers: Mutex::default(),
        }
    }

    /// The number of another table.
    pub(super) fn number(&self) -> u64 {
        let number = self.core.next_file();
        self.numbers.lock().push(number);
        number
    }

    /// They are in the manifest.
    pub(super) fn keep(&self) {
        self.numbers.lock().clear();
    }
}

impl Drop for Drafts<'_> {
    fn drop(&mut self) {
        if self.core.check().is_err() {
            return;
        }
        for number in self.numbers.get_mut().drain(..) {
            // One that stays is removed when the database is opened the next time.
            drop(self.core.vfs.remove(&self.core.tables.path_of(number)));
        }
    }
}
