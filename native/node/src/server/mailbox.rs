//! What other threads have for a worker: connections, and word of outboxes that are not empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::Waker;
use mio::net::TcpStream;
use parking_lot::Mutex;

use crate::outbox::Wake;

/// A worker's mailbox.
#[derive(Debug)]
pub(crate) struct Mailbox {
    waker: Waker,
    connections: Mutex<Vec<TcpStream>>,
    called: Mutex<Vec<usize>>,
    sweeps: AtomicBool,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self {
            waker,
            connections: Mutex::default(),
            called: Mutex::default(),
            sweeps: AtomicBool::new(false),
        })
    }

    /// The worker looks. That it cannot be woken means that it has ended.
    pub(crate) fn wake(&self) {
        let _ = self.waker.wake();
    }

    pub(crate) fn give(&self, connection: TcpStream) {
        self.connections.lock().push(connection);
        self.wake();
    }

    /// Connections that may not stay are to be closed.
    pub(crate) fn sweep(&self) {
        self.sweeps.store(true, Ordering::Release);
        self.wake();
    }

    fn call(&self, token: usize) {
        let mut called = self.called.lock();
        called.push(token);
        let is_first = called.len() == 1;
        drop(called);
        if is_first {
            self.wake();
        }
    }

    pub(crate) fn take_connections(&self) -> Vec<TcpStream> {
        std::mem::take(&mut *self.connections.lock())
    }

    pub(crate) fn take_called(&self) -> Vec<usize> {
        std::mem::take(&mut *self.called.lock())
    }

    pub(crate) fn take_sweep(&self) -> bool {
        self.sweeps.swap(false, Ordering::AcqRel)
    }
}

/// Wakes a worker for one of its connections.
#[derive(Debug)]
pub(crate) struct Bell {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) token: usize,
}

impl Wake for Bell {
    fn wake(&self) {
        self.mailbox.call(self.token);
    }
}
