//! The event loop of a thread.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::connection::Connection;
use super::mailbox::{Arrival, Bell, Mailbox};
use super::moves::Duty;
use crate::log;
use crate::node::Node;
use crate::outbox::Outbox;
use crate::session::{Caller, Session};

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
/// Connections are numbered from here on.
const FIRST: usize = 2;
/// How long a stranger may take to say who it is.
const STRANGER_PATIENCE: Duration = Duration::from_secs(10);
/// How long accepting pauses when the system has no room for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long the last bytes may take to be sent when the node ends.
const LAST_WORDS: Duration = Duration::from_secs(1);
const SCRATCH_BYTES: usize = 64 << 10;

/// Accepts connections and hands them out.
#[derive(Debug)]
struct Door {
    listener: TcpListener,
    mailboxes: Vec<Arc<Mailbox>>,
    next: usize,
    /// When to try again.
    paused_until: Option<Instant>,
}

/// A thread's part of the connections.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) node: Arc<Node>,
    pub(super) duty: Duty,
    pub(super) poll: Poll,
    mailbox: Arc<Mailbox>,
    door: Option<Door>,
    pub(super) connections: HashMap<usize, Connection>,
    next_token: usize,
    /// Connections that have something to be done.
    pub(super) ready: BTreeSet<usize>,
    pub(super) deadlines: BTreeSet<(Instant, usize)>,
    pub(super) scratch: Vec<u8>,
}

impl Worker {
    pub(super) fn new(node: &Arc<Node>, duty: Duty) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mailbox = Mailbox::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            node: Arc::clone(node),
            duty,
            poll,
            mailbox,
            door: None,
            connections: HashMap::new(),
            next_token: FIRST,
            ready: BTreeSet::new(),
            deadlines: BTreeSet::new(),
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
        self.door = Some(Door {
            listener,
            mailboxes,
            next: 0,
            paused_until: None,
        });
        Ok(())
    }

    /// Serves until the node ends.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while !self.node.is_stopping() {
            match self.poll.poll(&mut events, self.patience()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                self.take(event);
            }
            self.open_door();
            self.take_mail();
            self.take_deadlines();
            self.turn();
        }
        self.part(&mut events)
    }

    /// How long nothing needs to be done by itself.
    fn patience(&self) -> Option<Duration> {
        if !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let paused = self.door.as_ref().and_then(|door| door.paused_until);
        let first = self.deadlines.first().map(|(at, _)| *at);
        let next = paused.into_iter().chain(first).min()?;
        // Rounded up: the poll's own rounding would have it too early.
        Some(next.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
    }

    fn take(&mut self, event: &Event) {
        match event.token() {
            WAKER => {}
            LISTENER => self.pause_door(None),
            Token(token) => {
                if let Some(connection) = self.connections.get_mut(&token) {
                    connection.is_readable |= event.is_readable() || event.is_read_closed();
                    self.ready.insert(token);
                }
            }
        }
    }

    fn pause_door(&mut self, by: Option<Duration>) {
        if let Some(door) = &mut self.door {
            door.paused_until = Some(Instant::now() + by.unwrap_or_default());
        }
    }

    /// Accepts whoever waits.
    fn open_door(&mut self) {
        let Some(door) = &mut self.door else { return };
        if door.paused_until.is_none_or(|until| until > Instant::now()) {
            return;
        }
        loop {
            match door.listener.accept() {
                Ok((stream, _)) => {
                    self.node.metrics.connections.add(1);
                    if self.node.clients.count() >= self.node.options.clients {
                        self.node.metrics.refused_connections.add(1);
                        refuse(stream);
                        continue;
                    }
                    if let Some(mailbox) = door.mailboxes.get(door.next) {
                        mailbox.give(Arrival::Accepted(stream));
                    }
                    door.next = (door.next + 1) % door.mailboxes.len().max(1);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    door.paused_until = None;
                    return;
                }
                Err(error) => {
                    log::warning(&format!("a connection cannot be accepted: {error}"));
                    door.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn take_mail(&mut self) {
        for arrival in self.mailbox.take_arrivals() {
            let admitted = match arrival {
                Arrival::Accepted(stream) => self.admit(stream),
                Arrival::Moved(connection) => self.take_over(*connection),
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
            let leaving = self.connections.iter().filter(|(_, one)| !one.may_stay());
            let leaving: Vec<usize> = leaving.map(|(token, _)| *token).collect();
            leaving.into_iter().for_each(|token| self.close(token));
        }
    }

    fn admit(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let address = stream.peer_addr()?;
        let token = self.register(&mut stream)?;
        let bell = Bell::new(self.mailbox(), token);
        let ring = Box::new(Arc::clone(&bell));
        let outbox = Outbox::new(ring, self.node.options.output_bytes);
        let client = self.node.clients.enter(address.to_string());
        let session = Session::new(client, outbox);
        self.connections
            .insert(token, Connection::new(stream, session, bell));
        self.deadlines
            .insert((Instant::now() + STRANGER_PATIENCE, token));
        self.ready.insert(token);
        Ok(())
    }

    /// Listens to a socket; returns the connection's token here.
    pub(super) fn register(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let token = self.next_token;
        self.next_token += 1;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry.register(stream, Token(token), interest)?;
        Ok(token)
    }

    /// Deals with what has waited long enough.
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
            } else if matches!(connection.session.caller, Caller::Stranger) {
                self.close(token);
            }
        }
    }

    /// Ends a connection at once.
    pub(super) fn close(&mut self, token: usize) {
        self.ready.remove(&token);
        if let Some(mut connection) = self.connections.remove(&token) {
            // Closing the socket takes it out of the poll as well.
            let _ = self.poll.registry().deregister(&mut connection.stream);
            self.end(connection);
        }
    }

    /// Forgets a connection that is served by nobody any more.
    pub(super) fn end(&self, mut connection: Connection) {
        let known = (&*self.node.live, &self.node.watches);
        connection.session.leave(known);
        self.node.clients.leave(connection.session.client.id);
    }

    /// Sends what was answered, then ends all connections.
    fn part(&mut self, events: &mut Events) -> io::Result<()> {
        self.door = None;
        let until = Instant::now() + LAST_WORDS;
        loop {
            let mut unsent = false;
            for connection in self.connections.values_mut() {
                // Who cannot be sent to is gone already.
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

/// Says why there is no room; whether it is heard does not matter.
fn refuse(mut stream: TcpStream) {
    use std::io::Write as _;
    let _ = stream.write(b"-ERR max number of clients reached\r\n");
}
