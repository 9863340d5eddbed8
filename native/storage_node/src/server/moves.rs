//! Which thread serves a connection: one that writes, or one that queries.
//!
//! A writing thread is busy with its group for milliseconds, depending on the disk and the size of
//! the group, and a query over many rows would keep it from writing for as long. So a connection
//! that sends a query (`CommandHandler::Ask`) is served by a querying thread from then on, and
//! returns when it writes. It takes along its pending requests and partial input, so that clients
//! notice nothing of the move but its speed.

use std::io;

use super::connection::ClientConnection;
use super::duty::ThreadDuty;
use super::mailbox::{IncomingConnection, Mailbox};
use super::worker::Worker;
use crate::log;

impl Worker {
    /// Moves a connection to another thread.
    pub(super) fn move_to(&mut self, token: usize, place: &Mailbox) {
        self.ready.remove(&token);
        let Some(mut connection) = self.connections.remove(&token) else {
            return;
        };
        if matches!(self.duty, ThreadDuty::Writing(_)) {
            connection.home = Some(self.mailbox());
        }
        match self.poll.registry().deregister(&mut connection.stream) {
            Ok(()) => place.give(IncomingConnection::Moved(Box::new(connection))),
            Err(error) => {
                log::warning(&format!("a connection cannot be moved: {error}"));
                self.end(connection);
            }
        }
    }

    /// Takes over a connection from another thread.
    pub(super) fn take_over(&mut self, mut connection: ClientConnection) -> io::Result<()> {
        // Its end may have been requested while it moved.
        if !connection.may_stay() {
            self.end(connection);
            return Ok(());
        }
        let token = match self.register(&mut connection.stream) {
            Ok(token) => token,
            Err(error) => {
                self.end(connection);
                return Err(error);
            }
        };
        // Later signals reach this thread; earlier ones are handled at once.
        connection.bell.attach(self.mailbox(), token);
        connection.is_readable = true;
        self.connections.insert(token, connection);
        self.ready.insert(token);
        Ok(())
    }
}
