//! One connection: bytes in, requests, bytes out.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use super::mailbox::{Mailbox, WorkerBell};
use crate::in_flight::{FREE_BYTES, InFlightShare};
use crate::node::NodeCore;
use crate::options::STRANGERS;
use crate::resp::{RequestLimits, RequestParser, RequestSyntaxError};
use crate::session::{CommandSession, SessionCaller};

/// The maximum number of reads from a connection per turn.
const PIECES: usize = 4;
/// Requests are not started while this many bytes of replies wait.
const UNSENT_BYTES: usize = 1 << 20;
/// How long a connection may take to authenticate.
pub(super) const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request may take to arrive, from its first byte.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the client may read nothing of what is sent.
const READER_TIMEOUT: Duration = Duration::from_secs(60);
/// Buffers that are larger than this are not kept when empty.
const KEPT_BYTES: usize = 1 << 10;

/// A waiting command.
#[derive(Debug)]
pub(super) struct BlockedCommand {
    /// Its words, to repeat it; empty if its reply comes through the outbox.
    pub(super) words: Vec<Vec<u8>>,
    pub(super) until: Option<Instant>,
}

/// How reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadEnd {
    /// There is no more for now.
    Empty,
    /// Possibly more.
    More,
    /// Possibly more, for which there is no room now.
    Postponed,
    /// The client has disconnected.
    Closed,
}

/// A connection.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says something of its own about the socket or the session"
)]
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) stream: TcpStream,
    pub(super) session: CommandSession,
    /// Signals the thread that serves it now.
    pub(super) bell: Arc<WorkerBell>,
    /// The worker that serves its writes, if that is another thread.
    pub(super) home: Option<Arc<Mailbox>>,
    pub(super) waiting: Option<BlockedCommand>,
    /// No further request is started; it closes once everything is sent.
    pub(super) is_ending: bool,
    /// The client sends no more; what it has sent is answered.
    pub(super) is_closed: bool,
    /// The client has hung up, though what it sent may not have been read.
    pub(super) has_hung_up: bool,
    /// The socket may have unread bytes.
    pub(super) is_readable: bool,
    input: Vec<u8>,
    /// The start of the first request in `input`.
    begin: usize,
    parser: RequestParser,
    pub(super) output: Vec<u8>,
    sent: usize,
    /// Since when an incomplete request has been arriving.
    partial_since: Option<Instant>,
    /// Since when the client has read nothing of what is to be sent.
    unread_since: Option<Instant>,
    share: InFlightShare,
}

/// Which deadline a connection missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// It did not authenticate.
    Stranger,
    /// A request did not arrive completely.
    Request,
    /// It read nothing of a reply.
    Reader,
}

impl ClientConnection {
    pub(super) fn new(
        stream: TcpStream,
        session: CommandSession,
        bell: Arc<WorkerBell>,
        share: InFlightShare,
    ) -> Self {
        Self {
            stream,
            session,
            bell,
            home: None,
            waiting: None,
            is_ending: false,
            is_closed: false,
            has_hung_up: false,
            is_readable: true,
            input: Vec::new(),
            begin: 0,
            parser: RequestParser::default(),
            output: Vec::new(),
            sent: 0,
            partial_since: None,
            unread_since: None,
            share,
        }
    }

    /// Which deadline it has missed.
    pub(super) fn overdue(&self, now: Instant) -> Option<Overdue> {
        let is_past = |since: Option<Instant>, timeout| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= timeout)
        };
        if is_past(self.session.unknown_since, AUTHENTICATION_TIMEOUT) {
            Some(Overdue::Stranger)
        } else if self.may_begin() && is_past(self.partial_since, REQUEST_TIMEOUT) {
            // Otherwise it may be complete, and waits for the one before.
            Some(Overdue::Request)
        } else if is_past(self.unread_since, READER_TIMEOUT) {
            Some(Overdue::Reader)
        } else {
            None
        }
    }

    /// Updates its share of the memory in flight.
    fn account(&mut self) {
        let bytes = self.input.capacity() + self.output.capacity();
        self.share.set(bytes);
    }

    fn limits(&self, node: &NodeCore) -> RequestLimits {
        match self.session.caller {
            SessionCaller::Stranger => STRANGERS,
            SessionCaller::Admin | SessionCaller::Tenant(..) => node.options.limits,
        }
    }

    /// Whether its end was not requested, and its token is still valid.
    pub(super) fn may_stay(&self) -> bool {
        let is_killed = self.session.client.is_killed.load(Ordering::Relaxed);
        !is_killed && !self.session.is_revoked()
    }

    /// The bytes of requests that were not started.
    pub(super) fn pending(&self) -> usize {
        self.input.len() - self.begin
    }

    /// Reads what has arrived, as far as there is room for it.
    pub(super) fn read(&mut self, node: &NodeCore, scratch: &mut [u8]) -> io::Result<ReadEnd> {
        self.compact();
        let room = self.limits(node).request_bytes.saturating_add(FREE_BYTES);
        for _ in 0..PIECES {
            let left = room.saturating_sub(self.input.len());
            let piece = scratch.len().min(left);
            let Some(scratch) = scratch.get_mut(..piece).filter(|_| left > 0) else {
                return Ok(ReadEnd::More);
            };
            if !node.in_flight.has_room(self.input.len()) {
                node.metrics.postponed_reads.add(1);
                return Ok(ReadEnd::Postponed);
            }
            match self.stream.read(scratch) {
                Ok(0) => return Ok(ReadEnd::Closed),
                Ok(bytes) => {
                    let received = scratch.get(..bytes).unwrap_or_default();
                    self.input.extend_from_slice(received);
                    self.partial_since.get_or_insert_with(Instant::now);
                    self.account();
                    node.metrics.read_bytes.add(bytes as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(ReadEnd::Empty);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ReadEnd::More)
    }

    /// Whether a request may be started: nothing is waited for, and replies are read.
    pub(super) fn may_begin(&self) -> bool {
        self.waiting.is_none() && !self.is_ending && self.unsent_is_small()
    }

    /// Whether its replies are read, so that more may be accepted.
    pub(super) fn unsent_is_small(&self) -> bool {
        self.unsent() < UNSENT_BYTES
    }

    /// Whether no complete request is left.
    pub(super) fn is_idle(&mut self, node: &NodeCore) -> bool {
        matches!(self.next_request(node), Ok(false))
    }

    /// Finds the next request.
    pub(super) fn next_request(&mut self, node: &NodeCore) -> Result<bool, RequestSyntaxError> {
        let limits = self.limits(node);
        let rest = self.input.get(self.begin..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(false);
        }
        Ok(self.parser.parse(rest, &limits)?.is_some())
    }

    /// Passes the words of the request that was found to `work`.
    pub(super) fn with_request<T>(
        &mut self,
        work: impl FnOnce(&mut CommandSession, &[&[u8]], &mut Vec<u8>) -> T,
    ) -> T {
        let rest = self.input.get(self.begin..).unwrap_or_default();
        let words = self.parser.words(rest);
        work(&mut self.session, &words, &mut self.output)
    }

    /// Skips the request that was found.
    pub(super) fn pass_request(&mut self) {
        self.begin += self.parser.length();
        self.parser.reset();
        if self.begin == self.input.len() {
            self.begin = 0;
            self.input.clear();
            self.input.shrink_to(KEPT_BYTES);
            self.partial_since = None;
        } else {
            self.partial_since = Some(Instant::now());
        }
    }

    /// Makes room for the next read.
    fn compact(&mut self) {
        if self.begin > 0 {
            self.input.drain(..self.begin);
            self.begin = 0;
        }
    }

    pub(super) fn unsent(&self) -> usize {
        self.output.len() - self.sent
    }

    /// Sends what can be sent.
    pub(super) fn send(&mut self, node: &NodeCore) -> io::Result<()> {
        while self.sent < self.output.len() {
            let rest = self.output.get(self.sent..).unwrap_or_default();
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.sent += bytes;
                    self.unread_since = None;
                    node.metrics.written_bytes.add(bytes as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.output.shrink_to(KEPT_BYTES);
            self.sent = 0;
        } else if self.sent >= UNSENT_BYTES {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        if self.unsent() == 0 {
            self.unread_since = None;
        } else {
            self.unread_since.get_or_insert_with(Instant::now);
        }
        self.account();
        self.session.outbox.set_unsent(self.unsent());
        Ok(())
    }
}
