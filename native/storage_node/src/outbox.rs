//! What a connection is sent without having asked, until its thread takes it.
//!
//! Any thread puts in, only the connection's own takes out. A connection that does not read what it
//! is sent is given up: its bytes are not kept for it.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Called when something has come; the connection's thread looks then.
pub(crate) trait Wake: Debug + Send + Sync {
    fn wake(&self);
}

/// What came for a connection.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) bytes: Vec<u8>,
    /// Something that the connection waits for may have come.
    pub(crate) is_called: bool,
    /// The reply that the connection waits for is among the bytes.
    pub(crate) is_answered: bool,
    /// The connection is not to be kept.
    pub(crate) is_given_up: bool,
}

#[derive(Debug, Default)]
struct OutboxState {
    mail: Mail,
    /// The connection was told, and has not looked since.
    is_woken: bool,
}

/// Bytes for a connection.
#[derive(Debug)]
pub(crate) struct ConnectionOutbox {
    state: Mutex<OutboxState>,
    wake: Box<dyn Wake>,
    /// More bytes than this are not kept.
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

    /// Adds what was not asked for. Returns whether it is kept.
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

    /// The reply that the connection waits for.
    pub(crate) fn answer(&self, bytes: &[u8]) {
        self.change(|mail| {
            mail.bytes.extend_from_slice(bytes);
            mail.is_answered = true;
        });
    }

    /// What the connection waits for may have come.
    pub(crate) fn call(&self) {
        self.change(|mail| mail.is_called = true);
    }

    /// The connection is not to be kept.
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

    /// So many bytes wait to be sent.
    pub(crate) fn set_unsent(&self, bytes: usize) {
        self.unsent.store(bytes as u64, Ordering::Relaxed);
    }
}
