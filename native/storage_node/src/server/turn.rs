//! One turn: input is read, its commands are started, their writes are committed together, and
//! replies are sent.
//!
//! Replies are in the order of requests: once a command of a connection waits for the group of this
//! turn, only further writes are started for it, and their immediate replies wait as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{BlockedCommand, ClientConnection, ReadEnd};
use super::worker::Worker;
use crate::command::{Chore, CommandHandler, CommandStep, run_of};
use crate::group::CommandWrite;
use crate::node::NodeCore;
use crate::resp::ReplyWriter;

/// After how long a connection is read again that was not read for lack of room.
const POSTPONED: Duration = Duration::from_millis(20);
/// The maximum number of writes in a group.
const MAX_WRITES: usize = 4096;

/// A reply to a connection once the group is durable.
enum TurnEntry {
    Write(CommandWrite),
    /// A command that failed before it requested a write.
    Reply(Vec<u8>),
    /// A write that takes long: it starts once earlier ones of its connection are durable.
    Chore(Chore),
}

/// The group of a round, with the connections' tokens.
type Group = Vec<(usize, TurnEntry)>;

impl Worker {
    /// Serves the connections that are ready.
    pub(super) fn turn(&mut self) {
        let tokens: Vec<usize> = std::mem::take(&mut self.ready).into_iter().collect();
        for &token in &tokens {
            self.read_input(token);
        }
        // Connections with short requests come first: their replies need not wait for others'
        // writes.
        let mut open = tokens.clone();
        open.sort_by_key(|token| {
            self.connections
                .get(token)
                .map_or(0, ClientConnection::pending)
        });
        while !open.is_empty() && !self.node.is_stopping() {
            let mut group = Group::new();
            open.retain(|&token| {
                let before = group.len();
                let has_more = self.begin_all(token, &mut group);
                if group.len() == before {
                    self.send_replies(token);
                }
                has_more
            });
            if group.is_empty() {
                break;
            }
            self.commit(group);
        }
        for token in tokens {
            self.send_replies(token);
        }
    }

    /// Reads what has arrived for a connection, from either side.
    fn read_input(&mut self, token: usize) {
        self.take_outbox(token);
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        if connection.unsent() > 0 && connection.send(&self.node).is_err() {
            return self.close(token);
        }
        if connection.session.is_late {
            self.repeat(token);
        }
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        if connection.is_readable && connection.unsent_is_small() {
            match connection.read(&self.node, &mut self.scratch) {
                Ok(ReadEnd::Empty) => connection.is_readable = false,
                Ok(ReadEnd::More) => {}
                // Do not keep a connection waiting for room when its client has hung up.
                Ok(ReadEnd::Postponed) if connection.has_hung_up => self.close(token),
                Ok(ReadEnd::Postponed) => {
                    // Its deadline makes it ready again.
                    connection.is_readable = false;
                    let again = Instant::now() + POSTPONED;
                    self.postponed.insert((again, token));
                }
                Ok(ReadEnd::Closed) => {
                    connection.is_readable = false;
                    connection.is_closed = true;
                }
                Err(_) => self.close(token),
            }
        }
    }

    /// Takes what others have put into a connection's outbox.
    fn take_outbox(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let mail = connection.session.outbox.take();
        if mail.is_given_up {
            self.node.metrics.slow_readers.add(1);
            return self.close(token);
        }
        connection.output.extend_from_slice(&mail.bytes);
        if mail.is_answered {
            connection.waiting = None;
        }
        if mail.is_called {
            self.repeat(token);
        }
    }

    /// Repeats a waiting command.
    fn repeat(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let Some(waiting) = connection.waiting.take() else {
            return;
        };
        if waiting.words.is_empty() {
            connection.waiting = Some(waiting);
            return;
        }
        let words: Vec<&[u8]> = waiting.words.iter().map(Vec::as_slice).collect();
        let (session, out) = (&mut connection.session, &mut connection.output);
        if let CommandStep::Wait(_) = self.node.begin(session, &words, out) {
            connection.waiting = Some(waiting);
        } else {
            connection.session.stop_waiting(&self.node.live);
        }
    }

    /// Starts the commands of a connection. Returns whether more can be started after the group.
    fn begin_all(&mut self, token: usize, group: &mut Group) -> bool {
        let node = Arc::clone(&self.node);
        let Some(connection) = self.connections.get_mut(&token) else {
            return false;
        };
        let first = group.len();
        while connection.may_begin() {
            if group.len() >= MAX_WRITES {
                return true;
            }
            let run = match next(connection, &node) {
                NextRequest::Request(run) => run,
                NextRequest::Nothing => return false,
                NextRequest::Refused(refusal) => {
                    group.push((token, TurnEntry::Reply(refusal)));
                    return false;
                }
            };
            let has_writes = group.len() > first;
            if has_writes && !matches!(run, Some(CommandHandler::Write(_))) {
                return true;
            }
            if let Some(place) = self.duty.other_mailbox(connection, run) {
                self.move_to(token, &place);
                return false;
            }
            let is_query = matches!(run, Some(CommandHandler::Ask(_)));
            match begin(connection, &node, has_writes) {
                StartedCommand::Entry(entry @ TurnEntry::Chore(_)) => {
                    group.push((token, entry));
                    return true;
                }
                StartedCommand::Entry(entry) => group.push((token, entry)),
                // Other connections are served before the next query of this one.
                StartedCommand::Answered if is_query => return true,
                StartedCommand::Answered => {}
                StartedCommand::Wait(until) => {
                    self.deadlines.extend(until.map(|until| (until, token)));
                    return false;
                }
                StartedCommand::Chore(chore) => start(connection, &node, chore),
            }
        }
        false
    }

    /// Commits the writes of a group, then replies.
    fn commit(&mut self, group: Group) {
        let writes = group.iter().filter_map(|(_, entry)| match entry {
            TurnEntry::Write(write) => Some(write),
            TurnEntry::Reply(_) | TurnEntry::Chore(_) => None,
        });
        let writes: Vec<&CommandWrite> = writes.collect();
        let mut outcomes = if writes.is_empty() {
            Vec::new().into_iter()
        } else {
            self.node.commit(&writes).into_iter()
        };
        for (token, entry) in group {
            let outcome = matches!(entry, TurnEntry::Write(_))
                .then(|| outcomes.next())
                .flatten();
            let Some(connection) = self.connections.get_mut(&token) else {
                continue;
            };
            match (entry, outcome) {
                (TurnEntry::Reply(reply), _) => connection.output.extend_from_slice(&reply),
                (TurnEntry::Chore(chore), _) => start(connection, &self.node, chore),
                (TurnEntry::Write(write), Some(outcome)) => {
                    let (session, out) = (&mut connection.session, &mut connection.output);
                    self.node.finish(session, (&write, outcome), out);
                }
                (TurnEntry::Write(_), None) => {}
            }
        }
    }

    /// Sends a connection's replies; closes it if it is due.
    fn send_replies(&mut self, token: usize) {
        self.take_outbox(token);
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        if connection.send(&self.node).is_err() {
            return self.close(token);
        }
        let is_gone = connection.is_closed && connection.waiting.is_some();
        let is_over =
            connection.is_ending || connection.is_closed && connection.is_idle(&self.node);
        if is_gone || is_over && connection.unsent() == 0 {
            return self.close(token);
        }
        let has_more = connection.is_readable || !connection.is_idle(&self.node);
        if has_more && connection.may_begin() {
            self.ready.insert(token);
        }
    }
}

/// The state of a connection's next request.
enum NextRequest {
    Request(Option<CommandHandler>),
    Nothing,
    /// It cannot be parsed; the connection closes after this reply.
    Refused(Vec<u8>),
}

fn next(connection: &mut ClientConnection, node: &NodeCore) -> NextRequest {
    match connection.next_request(node) {
        Ok(true) => NextRequest::Request(connection.with_request(|_, words, _| run_of(words))),
        Ok(false) => NextRequest::Nothing,
        Err(error) => {
            node.metrics.protocol_errors.add(1);
            connection.is_ending = true;
            let mut refusal = Vec::new();
            ReplyWriter::new(&mut refusal, 2).error("ERR", &error.to_string());
            NextRequest::Refused(refusal)
        }
    }
}

/// The state of a started command.
enum StartedCommand {
    Entry(TurnEntry),
    Answered,
    Wait(Option<Instant>),
    Chore(Chore),
}

/// Starts the request that was found.
fn begin(connection: &mut ClientConnection, node: &NodeCore, has_writes: bool) -> StartedCommand {
    let mut ahead = Vec::new();
    let mut kept = Vec::new();
    let step = connection.with_request(|session, words, out| {
        if words.is_empty() {
            return CommandStep::Done;
        }
        let out = if has_writes { &mut ahead } else { out };
        let step = node.begin(session, words, out);
        if matches!(step, CommandStep::Wait(_)) {
            kept = words.iter().map(|word| word.to_vec()).collect();
        }
        step
    });
    connection.pass_request();
    match step {
        CommandStep::Write(write) => {
            let write = node.as_chore(&connection.session, write);
            StartedCommand::Entry(write.map_or_else(TurnEntry::Write, TurnEntry::Chore))
        }
        CommandStep::Done if has_writes => StartedCommand::Entry(TurnEntry::Reply(ahead)),
        CommandStep::Done => StartedCommand::Answered,
        CommandStep::Close => {
            connection.is_ending = true;
            StartedCommand::Answered
        }
        CommandStep::Wait(until) => {
            connection.waiting = Some(BlockedCommand { words: kept, until });
            StartedCommand::Wait(until)
        }
        CommandStep::Chore(chore) => StartedCommand::Chore(chore),
    }
}

/// Runs long work on another thread.
fn start(connection: &mut ClientConnection, node: &Arc<NodeCore>, chore: Chore) {
    let (outbox, node) = (Arc::clone(&connection.session.outbox), Arc::clone(node));
    connection.waiting = Some(BlockedCommand {
        words: Vec::new(),
        until: None,
    });
    let asker = Arc::clone(&outbox);
    let work = move || outbox.answer(&chore(&node));
    let started = std::thread::Builder::new().name("chore".into()).spawn(work);
    if let Err(error) = started {
        let mut refusal = Vec::new();
        ReplyWriter::new(&mut refusal, 2).error("IO_ERROR", &error.to_string());
        asker.answer(&refusal);
    }
}
