//! Who is connected.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// What others may know of a connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) address: String,
    pub(crate) since: Instant,
    /// What it calls itself.
    pub(crate) name: Mutex<String>,
    /// The namespace that it is in, `None` for the admin and for strangers.
    pub(crate) namespace: Mutex<Option<String>>,
    pub(crate) commands: AtomicU64,
    /// Somebody asked for its end.
    pub(crate) is_killed: AtomicBool,
}

impl Client {
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
pub(crate) struct Clients {
    next: AtomicU64,
    known: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    pub(crate) fn enter(&self, address: String) -> Arc<Client> {
        let client = Arc::new(Client {
            id: self.next.fetch_add(1, Ordering::Relaxed) + 1,
            address,
            since: Instant::now(),
            name: Mutex::default(),
            namespace: Mutex::default(),
            commands: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
        });
        self.known.lock().insert(client.id, Arc::clone(&client));
        client
    }

    pub(crate) fn leave(&self, id: u64) {
        self.known.lock().remove(&id);
    }

    pub(crate) fn count(&self) -> usize {
        self.known.lock().len()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<Client>> {
        self.known.lock().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.known.lock().values().cloned().collect()
    }
}
