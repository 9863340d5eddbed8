//! The node embedded in a process: the same commands as over a connection, one call each.
//!
//! A [`Speaker`] corresponds to a connection of the server: it authenticates, follows
//! subscriptions, and is polled for pushes. Calls of one speaker run one after the other; those of
//! several run concurrently.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};

use crate::command::CommandStep;
use crate::node::{NodeCore, NodeFailure};
use crate::options::NodeOptions;
use crate::outbox::{ConnectionOutbox, Mail, Wake};
use crate::resp::ReplyWriter;
use crate::session::CommandSession;

/// The interval between checks for what has expired.
const TICK: Duration = Duration::from_millis(100);

/// A storage node that serves only its own process.
#[derive(Debug)]
pub struct Embedded {
    /// `None` once it is closed. Calls lock it for reading.
    node: RwLock<Option<Arc<NodeCore>>>,
}

impl Embedded {
    /// Opens or creates a node. Its data has been recovered when this returns.
    pub fn open(options: NodeOptions) -> Result<Arc<Self>, NodeFailure> {
        let node = Arc::new(NodeCore::open(options)?);
        Ok(Arc::new(Self {
            node: RwLock::new(Some(node)),
        }))
    }

    /// A client that issues commands, unauthenticated at first; `None` if the node is closed.
    pub fn speaker(self: &Arc<Self>) -> Option<Speaker> {
        let held = self.node.read();
        let node = held.as_ref()?;
        let bell = Arc::new(SpeakerBell::default());
        let ring = Box::new(BellWake(Arc::clone(&bell)));
        let outbox = ConnectionOutbox::new(ring, node.options.output_bytes);
        let mut session =
            CommandSession::new(node.clients.enter(([127, 0, 0, 1], 0).into()), outbox);
        session.version = 3;
        Some(Speaker {
            embedded: Arc::clone(self),
            session,
            bell,
            pushed: Vec::new(),
        })
    }

    /// Closes it: pending calls are answered, all writes are durable, and later calls fail.
    pub fn close(&self) -> Result<(), NodeFailure> {
        if let Some(node) = &*self.node.read() {
            node.is_stopping.store(true, Ordering::Release);
        }
        let Some(node) = self.node.write().take() else {
            return Ok(());
        };
        match Arc::try_unwrap(node) {
            Ok(node) => node.close(),
            Err(shared) => Ok(shared.db.sync()?),
        }
    }
}

/// Signals that something has arrived for a speaker.
#[derive(Debug, Default)]
struct SpeakerBell {
    has_rung: Mutex<bool>,
    rings: Condvar,
}

impl SpeakerBell {
    /// Waits for a signal, or until a time.
    fn wait(&self, until: Instant) {
        let mut has_rung = self.has_rung.lock();
        if !*has_rung {
            self.rings.wait_until(&mut has_rung, until);
        }
        *has_rung = false;
    }
}

#[derive(Debug)]
struct BellWake(Arc<SpeakerBell>);

impl Wake for BellWake {
    fn wake(&self) {
        *self.0.has_rung.lock() = true;
        self.0.rings.notify_one();
    }
}

/// A client within the process.
#[derive(Debug)]
pub struct Speaker {
    embedded: Arc<Embedded>,
    session: CommandSession,
    bell: Arc<SpeakerBell>,
    pushed: Vec<u8>,
}

impl Speaker {
    /// Executes a command, and returns its reply as bytes of the protocol; `None` if the node is
    /// closed.
    pub fn execute(&mut self, words: &[&[u8]]) -> Option<Vec<u8>> {
        let embedded = Arc::clone(&self.embedded);
        let held = embedded.node.read();
        let node = held.as_ref()?;
        node.tick();
        let mut out = Vec::new();
        if node.is_stopping() {
            ReplyWriter::new(&mut out, self.session.version)
                .error("STOPPED", "the node is stopping");
            return Some(out);
        }
        match node.begin(&mut self.session, words, &mut out) {
            CommandStep::Done | CommandStep::Close => {}
            CommandStep::Wait(until) => self.wait(node, words, until, &mut out),
            CommandStep::Chore(chore) => out = chore(node),
            CommandStep::Write(write) => {
                if let Some(outcome) = node.commit(&[&write]).pop() {
                    node.finish(&mut self.session, (&write, outcome), &mut out);
                }
            }
        }
        Some(out)
    }

    /// What was pushed since the last call, as bytes of the protocol. `None` if the node is closed,
    /// or if more was pushed than is kept; subscriptions must then be resumed by a new speaker.
    pub fn pushed(&mut self) -> Option<Vec<u8>> {
        let embedded = Arc::clone(&self.embedded);
        let held = embedded.node.read();
        held.as_ref()?.tick();
        let mail = self.take();
        (!mail.is_given_up).then(|| std::mem::take(&mut self.pushed))
    }

    /// Takes the mail; pushes are kept.
    fn take(&mut self) -> Mail {
        let mut mail = self.session.outbox.take();
        self.pushed.append(&mut mail.bytes);
        mail
    }

    /// Repeats a waiting command whenever something has arrived.
    fn wait(
        &mut self,
        node: &Arc<NodeCore>,
        words: &[&[u8]],
        until: Option<Instant>,
        out: &mut Vec<u8>,
    ) {
        loop {
            let now = Instant::now();
            let tick = now + TICK;
            self.bell.wait(until.map_or(tick, |until| until.min(tick)));
            node.tick();
            let is_called = self.take().is_called;
            let is_over = until.is_some_and(|until| until <= Instant::now());
            self.session.is_late = is_over || node.is_stopping();
            if (is_called || self.session.is_late)
                && !matches!(
                    node.begin(&mut self.session, words, out),
                    CommandStep::Wait(_)
                )
            {
                return self.session.stop_waiting(&node.live);
            }
        }
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        if let Some(node) = &*self.embedded.node.read() {
            self.session.leave((&node.live, &node.watches));
            node.clients.leave(self.session.client.id);
        }
    }
}
