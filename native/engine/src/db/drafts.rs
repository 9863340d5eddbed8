//! Tables that are written and not in the manifest yet. If that fails for lack of space, they are
//! removed to free the space that others need.

use parking_lot::Mutex;

use super::DbCore;

/// The numbers of tables that a flush or compaction writes. If dropped without being kept, their
/// files are removed, unless the contents of the disk are unknown.
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

    /// Allocates the number of another table.
    pub(super) fn number(&self) -> u64 {
        let number = self.core.next_file();
        self.numbers.lock().push(number);
        number
    }

    /// Records that they are in the manifest.
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
            // A file that cannot be removed now is removed when the database is next opened.
            drop(self.core.vfs.remove(&self.core.tables.path_of(number)));
        }
    }
}
