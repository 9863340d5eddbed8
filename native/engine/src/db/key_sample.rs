//! Evenly spaced keys of a range, by the ends of the partitions of tables, which open tables have
//! in memory: no data is read.

use std::sync::Arc;

use super::{Db, Keyspace};
use crate::error::Result;
use crate::table::reader::TableReader;
use crate::version::file::TableFile;

impl Db {
    /// At most this many keys from `low` up to `high`, ascending, with about equally many blocks of
    /// tables between them. They need not be keys of entries. Memtables are not counted.
    pub fn sample_keys(
        &self,
        keyspace: &Keyspace,
        (low, high): (&[u8], &[u8]),
        at_most: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let view = keyspace.view();
        let overlaps = |file: &&Arc<TableFile>| {
            !file.meta.largest.is_before(low) && file.meta.smallest.as_slice() < high
        };
        let files = view.version.files().filter(overlaps);
        let tables: Vec<Arc<TableReader>> = files
            .map(|file| self.core.tables.table(file))
            .collect::<Result<_>>()?;
        let keys = tables.iter().flat_map(|table| table.partition_keys());
        let mut keys: Vec<&[u8]> = keys.filter(|key| (low..high).contains(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        let chosen = evenly_chosen(&keys, at_most as u64);
        Ok(chosen.into_iter().map(<[u8]>::to_vec).collect())
    }
}

/// At most this many of some sorted keys, which divide them into parts of about equal size. None is
/// chosen twice.
pub(super) fn evenly_chosen<K: Clone + PartialEq>(keys: &[K], count: u64) -> Vec<K> {
    // All are chosen if there are no more.
    let parts = count.min(keys.len() as u64) + 1;
    let mut chosen: Vec<K> = Vec::new();
    for number in 1..parts {
        let at = keys.len() as u64 * number / parts;
        let key = usize::try_from(at).ok().and_then(|at| keys.get(at));
        chosen.extend(key.filter(|key| chosen.last() != Some(key)).cloned());
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_keys_divide_all_keys_into_equal_parts() {
        let keys: Vec<u32> = (0..12).collect();
        assert_eq!(evenly_chosen(&keys, 0), []);
        assert_eq!(evenly_chosen(&keys, 1), [6]);
        assert_eq!(evenly_chosen(&keys, 3), [3, 6, 9]);
        assert_eq!(evenly_chosen(&keys, 4), [2, 4, 7, 9]);
        assert_eq!(evenly_chosen(&keys, 12), keys);
    }

    #[test]
    fn few_keys_are_chosen_once_each() {
        assert_eq!(evenly_chosen(&[1, 2, 3], 100), [1, 2, 3]);
        assert_eq!(evenly_chosen(&[7], 3), [7]);
        assert_eq!(evenly_chosen::<u32>(&[], 3), []);
    }
}
