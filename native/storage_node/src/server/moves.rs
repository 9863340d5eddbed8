//! Who serves a connection: threads that write, or threads that are asked.
//!
//! A thread that writes is busy with its group for milliseconds, as long as the disk takes and as the
//! group is large, and a query over many rows would keep it from writing for as long. So a connection
//! that asks a question ([`CommandHandler::Ask`]) is served by a thread of its own kind from then on, and goes
//! back to where it came from when it writes. It takes along what it has not been answered yet and
//! what it has not said whole, so that nothing of the move is seen but its speed.

use std::io;
use std::sync::Arc;

use super::connection::ClientConnection;
use super::mailbox::{IncomingConnection, Mailbox};
use super::worker::Worker;
use crate::command::CommandHandler;
use crate::log;
use crate::session::SessionCaller;

/// What a thread does for its connections.
#[derive(Debug)]
pub(super) enum ThreadDuty {
    /// It writes; who asks goes to one of these.
    Writing(Vec<Arc<Mailbox>>),
    /// It is asked; who writes goes home.
    Asked,
}

impl ThreadDuty {
    /// Who serves the next request of a connection; `None`: this thread does.
    pub(super) fn other_place(
        &self,
        connection: &ClientConnection,
        run: Option<CommandHandler>,
    ) -> Option<Arc<Mailbox>> {
        let place = match (self, run, &connection.session.caller) {
            (_, _, SessionCaller::Stranger) => None,
            (Self::Writing(asked), Some(CommandHandler::Ask(_)), _) => {
                let number = usize::try_from(connection.session.client.id).unwrap_or_default();
                asked.get(number % asked.len().max(1))
            }
            (Self::Asked, Some(CommandHandler::Write(_)), _) => connection.home.as_ref(),
            _ => None,
        };
        place.cloned()
    }
}

impl Worker {
    /// Lets another thread serve a connection.
    pub(super) fn send_away(&mut self, token: usize, place: &Mailbox) {
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

    /// Serves a connection that another thread has served so far.
    pub(super) fn take_over(&mut self, mut connection: ClientConnection) -> io::Result<()> {
        // It may have been asked to go while nobody served it.
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
        // What comes from now on is told to this thread, what came before is found at once.
        connection.bell.hang(self.mailbox(), token);
        connection.is_readable = true;
        self.connections.insert(token, connection);
        self.ready.insert(token);
        Ok(())
    }
}
