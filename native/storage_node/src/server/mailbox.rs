//! What other threads send to a worker: connections, and signals about outboxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::Waker;
use mio::net::TcpStream;
use parking_lot::Mutex;

use super::connection::ClientConnection;
use crate::outbox::Wake;

/// A connection passed to a worker.
#[derive(Debug)]
pub(super) enum IncomingConnection {
    Accepted(TcpStream),
    /// From another worker.
    Moved(Box<ClientConnection>),
}

/// A worker's mailbox.
#[derive(Debug)]
pub(crate) struct Mailbox {
    waker: Waker,
    arrivals: Mutex<Vec<IncomingConnection>>,
    called: Mutex<Vec<usize>>,
    sweeps: AtomicBool,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Arc<Self> {
        Arc::new(Self {
            waker,
            arrivals: Mutex::default(),
            called: Mutex::default(),
            sweeps: AtomicBool::new(false),
        })
    }

    /// Wakes the worker. Failure means that the worker has ended.
    pub(crate) fn wake(&self) {
        let _ = self.waker.wake();
    }

    pub(super) fn give(&self, arrival: IncomingConnection) {
        self.arrivals.lock().push(arrival);
        self.wake();
    }

    /// Requests that connections that may not stay are closed.
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

    pub(super) fn take_arrivals(&self) -> Vec<IncomingConnection> {
        std::mem::take(&mut *self.arrivals.lock())
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
pub(super) struct WorkerBell(Mutex<(Arc<Mailbox>, usize)>);

impl WorkerBell {
    pub(super) fn new(mailbox: Arc<Mailbox>, token: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new((mailbox, token))))
    }

    /// Signals this worker from now on. Earlier signals may have gone to the previous one, so the
    /// new one looks at once.
    pub(super) fn attach(&self, mailbox: Arc<Mailbox>, token: usize) {
        *self.0.lock() = (mailbox, token);
    }
}

impl Wake for Arc<WorkerBell> {
    fn wake(&self) {
        let place = self.0.lock();
        let (mailbox, token) = &*place;
        mailbox.call(*token);
    }
}
