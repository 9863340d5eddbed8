//! The event loop of a thread.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use socket2::{SockRef, TcpKeepalive};

use super::connection::{ClientConnection, Overdue};
use super::duty::ThreadDuty;
use super::mailbox::{IncomingConnection, Mailbox, WorkerBell};
use crate::in_flight::InFlightShare;
use crate::log;
use crate::node::NodeCore;
use crate::outbox::ConnectionOutbox;
use crate::session::CommandSession;

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
/// The first token of connections.
const FIRST: usize = 2;
/// How many connections beyond the limit are accepted while unauthenticated ones are evicted.
const MAX_BEYOND_LIMIT: usize = 64;
/// TCP keepalive: idle time, interval and number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(15), 4);
/// How long accepting pauses when the system has no resources for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long sending the last bytes may take when the node stops.
const FINAL_SEND_TIMEOUT: Duration = Duration::from_secs(1);
const SCRATCH_BYTES: usize = 64 << 10;

/// Accepts connections and distributes them.
#[derive(Debug)]
struct Acceptor {
    listener: TcpListener,
    mailboxes: Vec<Arc<Mailbox>>,
    next: usize,
    /// When to try again.
    paused_until: Option<Instant>,
}

/// A worker thread and its connections.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) node: Arc<NodeCore>,
    pub(super) duty: ThreadDuty,
    pub(super) poll: Poll,
    mailbox: Arc<Mailbox>,
    acceptor: Option<Acceptor>,
    pub(super) connections: HashMap<usize, ClientConnection>,
    next_token: usize,
    /// Connections with pending work.
    pub(super) ready: BTreeSet<usize>,
    pub(super) deadlines: BTreeSet<(Instant, usize)>,
    /// Connections whose reading was postponed, and until when.
    pub(super) postponed: BTreeSet<(Instant, usize)>,
    pub(super) scratch: Vec<u8>,
}

impl Worker {
    pub(super) fn new(node: &Arc<NodeCore>, duty: ThreadDuty) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mailbox = Mailbox::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            node: Arc::clone(node),
            duty,
            poll,
            mailbox,
            acceptor: None,
            connections: HashMap::new(),
            next_token: FIRST,
            ready: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            postponed: BTreeSet::new(),
            scratch: vec![0; SCRATCH_BYTES],
        })
    }

    pub(super) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    /// Accepts connections, for all workers.
    pub(super) fn listen(
        &mut self,
        listener: std::net::TcpListener,
        mailboxes: Vec<Arc<Mailbox>>,
    ) -> io::Result<()> {
        let mut listener = TcpListener::from_std(listener);
        let registry = self.poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        self.acceptor = Some(Acceptor {
            listener,
            mailboxes,
            next: 0,
            paused_until: None,
        });
        Ok(())
    }

    /// Serves until the node stops.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while !self.node.is_stopping() {
            match self.poll.poll(&mut events, self.next_timeout()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.take(event);
            }
            self.accept_waiting();
            self.take_mail();
            self.take_deadlines();
            self.take_postponed();
            self.turn();
        }
        self.shut_down(&mut events)
    }

    /// The time until the next timer.
    fn next_timeout(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let paused = self
            .acceptor
            .as_ref()
            .and_then(|acceptor| acceptor.paused_until);
        let first = |set: &BTreeSet<(Instant, usize)>| set.first().map(|(at, _)| *at);
        let due = [paused, first(&self.deadlines), first(&self.postponed)];
        let next = due.into_iter().flatten().min()?;
        // Rounded up: the poll itself would round down and wake too early.
        Some(next.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
    }

    fn take(&mut self, event: &Event) {
        match event.token() {
            WAKER => {}
            LISTENER => self.pause_accepting(None),
            Token(token) => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.is_readable |= event.is_readable() || event.is_read_closed();
                    connection.has_hung_up |= event.is_read_closed();
                    self.ready.insert(token);
                }
            }
        }
    }

    fn pause_accepting(&mut self, by: Option<Duration>) {
        if let Some(acceptor) = &mut self.acceptor {
            acceptor.paused_until = Some(Instant::now() + by.unwrap_or_default());
        }
    }

    /// Accepts waiting connections.
    fn accept_waiting(&mut self) {
        let Some(acceptor) = &mut self.acceptor else {
            return;
        };
        if acceptor
            .paused_until
            .is_none_or(|until| until > Instant::now())
        {
            return;
        }
        loop {
            match acceptor.listener.accept() {
                Ok((stream, address)) => {
                    self.node.metrics.connections.add(1);
                    if !may_accept(&self.node, address.ip()) {
                        refuse(stream);
                        continue;
                    }
                    if let Some(mailbox) = acceptor.mailboxes.get(acceptor.next) {
                        mailbox.give(IncomingConnection::Accepted(stream));
                    }
                    acceptor.next = (acceptor.next + 1) % acceptor.mailboxes.len().max(1);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    acceptor.paused_until = None;
                    return;
                }
                Err(error) => {
                    log::warning(&format!("a connection cannot be accepted: {error}"));
                    evict_unauthenticated(&self.node);
                    acceptor.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn take_mail(&mut self) {
        for arrival in self.mailbox.take_arrivals() {
            let admitted = match arrival {
                IncomingConnection::Accepted(stream) => self.admit(stream),
                IncomingConnection::Moved(connection) => self.take_over(*connection),
            };
            if let Err(error) = admitted {
                log::warning(&format!("a connection cannot be served: {error}"));
            }
        }
        for token in self.mailbox.take_called() {
            if self.connections.contains_key(&token) {
                self.ready.insert(token);
            }
        }
        if self.mailbox.take_sweep() {
            self.sweep();
        }
    }

    /// Closes connections that may not stay or have missed a deadline.
    fn sweep(&mut self) {
        let now = Instant::now();
        let leaving = self.connections.iter().filter_map(|(token, one)| {
            let overdue = one.overdue(now);
            (overdue.is_some() || !one.may_stay()).then_some((*token, overdue))
        });
        let leaving: Vec<(usize, Option<Overdue>)> = leaving.collect();
        for (token, overdue) in leaving {
            let metrics = &self.node.metrics;
            match overdue {
                Some(Overdue::Stranger) => metrics.late_strangers.add(1),
                Some(Overdue::Request) => metrics.stalled_requests.add(1),
                Some(Overdue::Reader) => metrics.stalled_readers.add(1),
                None => {}
            }
            self.close(token);
        }
    }

    fn admit(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        let address = stream.peer_addr()?;
        let token = self.register(&mut stream)?;
        let bell = WorkerBell::new(self.mailbox(), token);
        let ring = Box::new(Arc::clone(&bell));
        let outbox = ConnectionOutbox::new(ring, self.node.options.output_bytes);
        let client = self.node.clients.enter(address);
        let session = CommandSession::new(client, outbox);
        let share = InFlightShare::new(&self.node.in_flight);
        self.connections
            .insert(token, ClientConnection::new(stream, session, bell, share));
        self.ready.insert(token);
        Ok(())
    }

    /// Registers a socket; returns the connection's token.
    pub(super) fn register(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let token = self.next_token;
        self.next_token += 1;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry.register(stream, Token(token), interest)?;
        Ok(token)
    }

    /// Handles expired deadlines.
    fn take_deadlines(&mut self) {
        let now = Instant::now();
        while let Some(&(at, token)) = self.deadlines.first() {
            if at > now {
                return;
            }
            self.deadlines.pop_first();
            let Some(connection) = self.connections.get_mut(&token) else {
                continue;
            };
            let waits_until = connection
                .waiting
                .as_ref()
                .and_then(|waiting| waiting.until);
            if waits_until.is_some_and(|until| until <= now) {
                connection.session.is_late = true;
                self.ready.insert(token);
            }
        }
    }

    /// Reads connections again that were postponed.
    fn take_postponed(&mut self) {
        let now = Instant::now();
        while let Some(&(at, token)) = self.postponed.first() {
            if at > now {
                return;
            }
            self.postponed.pop_first();
            if let Some(connection) = self.connections.get_mut(&token) {
                connection.is_readable = true;
                self.ready.insert(token);
            }
        }
    }

    /// Closes a connection at once.
    pub(super) fn close(&mut self, token: usize) {
        self.ready.remove(&token);
        if let Some(mut connection) = self.connections.remove(&token) {
            // Closing the socket also removes it from the poll.
            let _ = self.poll.registry().deregister(&mut connection.stream);
            self.end(connection);
        }
    }

    /// Releases a connection that is no longer served.
    pub(super) fn end(&self, mut connection: ClientConnection) {
        let known = (&*self.node.live, &self.node.watches);
        connection.session.leave(known);
        self.node.clients.leave(connection.session.client.id);
    }

    /// Sends pending replies, then closes all connections.
    fn shut_down(&mut self, events: &mut Events) -> io::Result<()> {
        self.acceptor = None;
        let until = Instant::now() + FINAL_SEND_TIMEOUT;
        loop {
            let mut unsent = false;
            for connection in self.connections.values_mut() {
                // Connections that fail here have already disconnected.
                unsent |= connection.send(&self.node).is_ok() && connection.unsent() > 0;
            }
            let left = until.saturating_duration_since(Instant::now());
            if !unsent || left.is_zero() {
                break;
            }
            match self.poll.poll(events, Some(left)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                polled => polled?,
            }
        }
        let tokens: Vec<usize> = self.connections.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.close(token));
        Ok(())
    }
}

/// Whether a connection from an address is accepted.
fn may_accept(node: &NodeCore, address: IpAddr) -> bool {
    let from_address = node.clients.count_from(address);
    if !address.is_loopback() && from_address >= node.options.clients_per_address {
        node.metrics.refused_from_address.add(1);
        return false;
    }
    let over = node.clients.count().checked_sub(node.options.clients);
    match over {
        None => true,
        Some(over) if over < MAX_BEYOND_LIMIT && evict_unauthenticated(node) => true,
        Some(_) => {
            node.metrics.refused_connections.add(1);
            false
        }
    }
}

/// Closes the connection that has been unauthenticated for the longest. Returns whether there was
/// one.
fn evict_unauthenticated(node: &NodeCore) -> bool {
    let has_evicted = node.clients.evict_stranger();
    if has_evicted {
        node.metrics.evicted_strangers.add(1);
        node.has_revoked.store(true, Ordering::Release);
    }
    has_evicted
}

/// Enables keepalive, so that the system notices clients that disappear.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let (idle, interval, retries) = KEEPALIVE;
    let keepalive = TcpKeepalive::new()
        .with_time(idle)
        .with_interval(interval)
        .with_retries(retries);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// Sends the reason for the rejection; whether it arrives does not matter.
fn refuse(mut stream: TcpStream) {
    use std::io::Write as _;
    let _ = stream.write(b"-ERR max number of clients reached\r\n");
}
