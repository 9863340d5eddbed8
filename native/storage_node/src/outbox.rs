//! Pushes and deferred replies for a connection, until its thread takes them.
//!
//! Any thread adds; only the connection's own thread removes. A connection that does not read is
//! closed rather than buffered without limit.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Called when something has arrived; the connection's thread then takes it.
pub(crate) trait Wake: Debug + Send + Sync {
    fn wake(&self);
}

/// What has arrived for a connection.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) bytes: Vec<u8>,
    /// The event that the connection waits for may have occurred.
    pub(crate) is_called: bool,
    /// The bytes include the reply that the connection waits for.
    pub(crate) is_answered: bool,
    /// The connection must be closed.
    pub(crate) is_given_up: bool,
}

#[derive(Debug, Default)]
struct OutboxState {
    mail: Mail,
    /// The connection was woken, and has not looked since.
    is_woken: bool,
}

/// Bytes for a connection.
#[derive(Debug)]
pub(crate) struct ConnectionOutbox {
    state: Mutex<OutboxState>,
    wake: Box<dyn Wake>,
    /// The maximum number of bytes kept.
    limit: usize,
    /// How many bytes the connection has taken and not sent yet.
    unsent: AtomicU64,
}

impl ConnectionOutbox {
    pub(crate) fn new(wake: Box<dyn Wake>, limit: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            wake,
            limit,
            unsent: AtomicU64::new(0),
        })
    }

    fn change(&self, change: impl FnOnce(&mut Mail)) {
        let mut state = self.state.lock();
        change(&mut state.mail);
        let tell = !std::mem::replace(&mut state.is_woken, true);
        drop(state);
        if tell {
            self.wake.wake();
        }
    }

    /// Adds a push. Returns whether it was kept.
    pub(crate) fn push(&self, bytes: &[u8]) -> bool {
        let unsent = usize::try_from(self.unsent.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let mut kept = false;
        self.change(|mail| {
            let sum = mail.bytes.len().saturating_add(unsent);
            if mail.is_given_up || sum.saturating_add(bytes.len()) > self.limit {
                mail.is_given_up = true;
                mail.bytes = Vec::new();
            } else {
                mail.bytes.extend_from_slice(bytes);
                kept = true;
            }
        });
        kept
    }

    /// Adds the reply that the connection waits for.
    pub(crate) fn answer(&self, bytes: &[u8]) {
        self.change(|mail| {
            mail.bytes.extend_from_slice(bytes);
            mail.is_answered = true;
        });
    }

    /// Signals that the event the connection waits for may have occurred.
    pub(crate) fn call(&self) {
        self.change(|mail| mail.is_called = true);
    }

    /// Marks the connection to be closed.
    pub(crate) fn give_up(&self) {
        self.change(|mail| mail.is_given_up = true);
    }

    pub(crate) fn take(&self) -> Mail {
        let mut state = self.state.lock();
        state.is_woken = false;
        let is_given_up = state.mail.is_given_up;
        let kept = Mail {
            is_given_up,
            ..Mail::default()
        };
        std::mem::replace(&mut state.mail, kept)
    }

    /// Sets how many bytes wait to be sent.
    pub(crate) fn set_unsent(&self, bytes: usize) {
        self.unsent.store(bytes as u64, Ordering::Relaxed);
    }
}
