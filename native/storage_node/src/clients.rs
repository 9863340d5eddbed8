//! The connected clients.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// What other clients may see of a connection.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
    /// Whether it has authenticated.
    pub(crate) is_known: AtomicBool,
    pub(crate) since: Instant,
    /// The name that it set.
    pub(crate) name: Mutex<String>,
    /// Its namespace; `None` for the admin and unauthenticated connections.
    pub(crate) namespace: Mutex<Option<String>>,
    pub(crate) commands: AtomicU64,
    /// A client has requested to close it.
    pub(crate) is_killed: AtomicBool,
}

impl ClientInfo {
    pub(crate) fn line(&self) -> String {
        format!(
            "id={} addr={} name={} user={} age={} tot-cmds={}",
            self.id,
            self.address,
            self.name.lock(),
            self.namespace.lock().as_deref().unwrap_or_default(),
            self.since.elapsed().as_secs(),
            self.commands.load(Ordering::Relaxed),
        )
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct ClientTable {
    next: AtomicU64,
    known: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

impl ClientTable {
    pub(crate) fn enter(&self, address: SocketAddr) -> Arc<ClientInfo> {
        let client = Arc::new(ClientInfo {
            id: self.next.fetch_add(1, Ordering::Relaxed) + 1,
            address,
            is_known: AtomicBool::new(false),
            since: Instant::now(),
            name: Mutex::default(),
            namespace: Mutex::default(),
            commands: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
        });
        *self.by_address.lock().entry(address.ip()).or_default() += 1;
        self.known.lock().insert(client.id, Arc::clone(&client));
        client
    }

    pub(crate) fn leave(&self, id: u64) {
        let Some(client) = self.known.lock().remove(&id) else {
            return;
        };
        let mut by_address = self.by_address.lock();
        if let Entry::Occupied(mut entry) = by_address.entry(client.address.ip()) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    /// The number of connections from an address.
    pub(crate) fn count_from(&self, address: IpAddr) -> usize {
        let by_address = self.by_address.lock();
        by_address.get(&address).copied().unwrap_or(0)
    }

    /// Requests the end of the oldest unauthenticated connection. Returns whether there was one.
    pub(crate) fn evict_stranger(&self) -> bool {
        let known = self.known.lock();
        let is_stranger = |client: &&Arc<ClientInfo>| {
            let relaxed = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
            !relaxed(&client.is_known) && !relaxed(&client.is_killed)
        };
        let oldest = known.values().find(is_stranger);
        oldest.is_some_and(|client| !client.is_killed.swap(true, Ordering::Relaxed))
    }

    pub(crate) fn count(&self) -> usize {
        self.known.lock().len()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.known.lock().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<ClientInfo>> {
        self.known.lock().values().cloned().collect()
    }
}
