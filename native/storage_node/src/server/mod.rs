//! Connections, served by a few threads.
//!
//! Each thread has its own connections and an event loop over them (`worker.rs`). In one turn it
//! reads what has arrived, starts the commands, and commits all writes that they request together
//! (`turn.rs`): one group of writes, and one sync, spans connections. The engine's own groups span
//! the threads. Connections with long queries are served by threads that do not write (`moves.rs`).
//! A connection (`connection.rs`) replies in the order of its requests, is read only as fast as it
//! reads replies, and keeps no more in memory than its limits allow.

mod connection;
mod duty;
mod http;
mod mailbox;
mod moves;
mod turn;
mod worker;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use duty::ThreadDuty;
use mailbox::Mailbox;
use worker::Worker;

use crate::health::WriteAvailability;
use crate::node::{NodeCore, NodeFailure};

/// The interval between checks for what has expired.
const TICK: Duration = Duration::from_millis(200);

/// Connections are checked for missed deadlines once per this many ticks.
const SWEEP_TICKS: u32 = 5;

/// The interval at which watches are notified of changes.
const WATCH_TICK: Duration = Duration::from_millis(100);
/// How long stopping waits for chores. One that waits for changes ends at once; others, such as a
/// check of all tables, may take longer.
const CHORE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long building an aggregate pauses after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// A running server of a node.
#[derive(Debug)]
pub struct NodeServer {
    node: Arc<NodeCore>,
    address: SocketAddr,
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl NodeServer {
    /// Serves a node at an address, and metrics at another if given.
    pub fn start(
        node: NodeCore,
        address: SocketAddr,
        metrics: Option<SocketAddr>,
    ) -> Result<Self, NodeFailure> {
        let node = Arc::new(node);
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let metrics = metrics.map(TcpListener::bind).transpose()?;

        let threads = node.options.threads.max(1);
        let asked = (0..threads.div_ceil(2)).map(|_| Worker::new(&node, ThreadDuty::Querying));
        let asked: Vec<Worker> = asked.collect::<io::Result<_>>()?;
        let asked_boxes: Vec<_> = asked.iter().map(Worker::mailbox).collect();
        let writing = (0..threads).map(|_| {
            let duty = ThreadDuty::Writing(asked_boxes.clone());
            Worker::new(&node, duty)
        });
        let mut writing: Vec<Worker> = writing.collect::<io::Result<_>>()?;
        let writing_boxes: Vec<_> = writing.iter().map(Worker::mailbox).collect();
        if let Some(first) = writing.first_mut() {
            first.listen(listener, writing_boxes.clone())?;
        }
        let mut server = Self {
            node,
            address,
            mailboxes: [writing_boxes, asked_boxes].concat(),
            threads: Vec::new(),
        };
        for (kind, workers) in [("worker", writing), ("asked", asked)] {
            for (number, worker) in workers.into_iter().enumerate() {
                server.spawn(&format!("{kind}-{number}"), move || worker.run())?;
            }
        }
        if let Some(listener) = metrics {
            let node = Arc::clone(&server.node);
            server.spawn("metrics", move || http::serve(&node, &listener))?;
        }
        let node = Arc::clone(&server.node);
        server.spawn("aggregates", move || {
            maintain_aggregates(&node);
            Ok(())
        })?;
        let (node, mailboxes) = (Arc::clone(&server.node), server.mailboxes.clone());
        server.spawn("clock", move || {
            watch(&node, &mailboxes);
            Ok(())
        })?;
        Ok(server)
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let builder = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(builder.spawn(work)?);
        Ok(())
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a function that requests its end.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let (node, mailboxes) = (Arc::clone(&self.node), self.mailboxes.clone());
        move || {
            node.is_stopping.store(true, Ordering::Release);
            mailboxes.iter().for_each(|mailbox| mailbox.wake());
        }
    }

    /// Returns after a requested stop: all pending requests are answered, and all writes are
    /// durable.
    pub fn wait(self) -> Result<(), NodeFailure> {
        let mut failed = None;
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failed = Some(NodeFailure::from(error)),
                Err(_) => failed = Some(NodeFailure::from(io::Error::other("a thread panicked"))),
            }
            // The other threads stop too if one failed.
            self.node.is_stopping.store(true, Ordering::Release);
            self.mailboxes.iter().for_each(|mailbox| mailbox.wake());
        }
        let closed = match NodeCore::unshared(self.node, CHORE_TIMEOUT) {
            Ok(node) => node.close(),
            // A chore is still running.
            Err(shared) => Ok(shared.db.sync()?),
        };
        failed.map_or(closed, Err)
    }
}

/// Notifies watches of changes, and builds generations, until the node stops.
fn maintain_aggregates(node: &NodeCore) {
    while !node.is_stopping() {
        node.notify_watches();
        match node.aggregates.fill() {
            // There is more to do: pause only for watches.
            Ok(true) => {}
            Ok(false) => std::thread::sleep(WATCH_TICK),
            Err(error) => {
                crate::log::warning(&format!("an aggregate cannot be built: {error}"));
                std::thread::sleep(RETRY);
            }
        }
    }
}

/// Logs the node's state.
fn log_health(node: &NodeCore, health: WriteAvailability) {
    match health {
        WriteAvailability::Available => {
            crate::log::info("the disk has space again: writes are accepted");
        }
        WriteAvailability::Full => {
            let why = node.db.why_full().unwrap_or_default();
            crate::log::warning(&format!(
                "the disk is full: writes are rejected until space is freed, reads continue: {why}"
            ));
        }
        WriteAvailability::Failed => {
            let why = node.db.why_poisoned().unwrap_or_default();
            crate::log::warning(&format!("the node stops: {why}"));
        }
    }
}

/// Checks for what has expired and the node's health, until it stops.
fn watch(node: &NodeCore, mailboxes: &[Arc<Mailbox>]) {
    let mut health = WriteAvailability::Available;
    let mut ticks = 0_u32;
    while !node.is_stopping() {
        std::thread::sleep(TICK);
        node.tick();
        let current = node.health();
        if current != std::mem::replace(&mut health, current) {
            log_health(node, current);
        }
        if current == WriteAvailability::Failed {
            // After a restart, acknowledged writes are found.
            node.is_stopping.store(true, Ordering::Release);
        }
        ticks = ticks.wrapping_add(1);
        let is_due = ticks.is_multiple_of(SWEEP_TICKS);
        if node.has_revoked.swap(false, Ordering::AcqRel) || is_due {
            mailboxes.iter().for_each(|mailbox| mailbox.sweep());
        }
    }
    mailboxes.iter().for_each(|mailbox| mailbox.wake());
}
