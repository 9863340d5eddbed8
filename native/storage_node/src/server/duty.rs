//! Which kind of thread serves a connection.

use std::sync::Arc;

use super::connection::ClientConnection;
use super::mailbox::Mailbox;
use crate::command::CommandHandler;
use crate::session::SessionCaller;

/// The duty of a thread.
#[derive(Debug)]
pub(super) enum ThreadDuty {
    /// It writes; connections that query move to one of these.
    Writing(Vec<Arc<Mailbox>>),
    /// It queries; connections that write return to their home.
    Querying,
}

impl ThreadDuty {
    /// The mailbox of the thread that serves a connection's next request; `None` for this thread.
    pub(super) fn other_mailbox(
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
            (Self::Querying, Some(CommandHandler::Write(_)), _) => connection.home.as_ref(),
            _ => None,
        };
        place.cloned()
    }
}
