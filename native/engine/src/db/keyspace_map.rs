//! The keyspaces of a database by their numbers and by their names.

use std::collections::{BTreeMap, HashMap};

use super::Keyspace;

/// All keyspaces that were not dropped.
#[derive(Debug, Default)]
pub(crate) struct KeyspaceMap {
    /// In the order of their creation.
    by_id: BTreeMap<u64, Keyspace>,
    ids: HashMap<String, u64>,
}

impl KeyspaceMap {
    pub(crate) fn get(&self, id: u64) -> Option<&Keyspace> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_named(&self, name: &str) -> Option<&Keyspace> {
        self.ids.get(name).and_then(|id| self.get(*id))
    }

    /// All of them, in the order of their creation.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Keyspace> {
        self.by_id.values()
    }

    pub(crate) fn insert(&mut self, keyspace: Keyspace) {
        self.ids.insert(keyspace.name().to_owned(), keyspace.id());
        self.by_id.insert(keyspace.id(), keyspace);
    }

    pub(crate) fn remove(&mut self, keyspace: &Keyspace) {
        self.ids.remove(keyspace.name());
        self.by_id.remove(&keyspace.id());
    }
}

impl FromIterator<Keyspace> for KeyspaceMap {
    fn from_iter<I: IntoIterator<Item = Keyspace>>(keyspaces: I) -> Self {
        let mut map = Self::default();
        keyspaces.into_iter().for_each(|one| map.insert(one));
        map
    }
}
