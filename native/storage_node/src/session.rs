//! The node's state of a connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::catalog::Namespace;
use crate::clients::ClientInfo;
use crate::document::Format;
use crate::live::{Listener, Live};
use crate::outbox::ConnectionOutbox;
use crate::refusal::{CommandRefusal, Result};
use crate::snapshots::ADMIN;
use crate::watches::{QueryWatches, Watch};

/// The authenticated caller.
#[derive(Debug, Clone, Default)]
pub(crate) enum SessionCaller {
    /// Not authenticated yet.
    #[default]
    Stranger,
    /// Manages namespaces, and sees of their contents only copies of collections.
    Admin,
    /// Has the token of a namespace, of the given generation.
    Tenant(Arc<Namespace>, u64),
}

/// The session of a connection.
#[derive(Debug)]
pub(crate) struct CommandSession {
    pub(crate) caller: SessionCaller,
    /// The protocol version.
    pub(crate) version: u8,
    pub(crate) format: Format,
    pub(crate) client: Arc<ClientInfo>,
    pub(crate) outbox: Arc<ConnectionOutbox>,
    /// The subscriptions whose publications are pushed.
    pub(crate) follows: Vec<Arc<Listener>>,
    /// The queries whose changed rows are pushed.
    pub(crate) watches: Vec<Arc<Watch>>,
    /// The listeners of the waiting command.
    pub(crate) awaits: Vec<Arc<Listener>>,
    /// The waiting command has timed out.
    pub(crate) is_late: bool,
    /// Since when the connection has been unauthenticated.
    pub(crate) unknown_since: Option<Instant>,
}

impl CommandSession {
    pub(crate) fn new(client: Arc<ClientInfo>, outbox: Arc<ConnectionOutbox>) -> Self {
        Self {
            caller: SessionCaller::default(),
            version: 2,
            format: Format::default(),
            client,
            outbox,
            follows: Vec::new(),
            watches: Vec::new(),
            awaits: Vec::new(),
            is_late: false,
            unknown_since: Some(Instant::now()),
        }
    }

    /// The namespace of the caller.
    pub(crate) fn namespace(&self) -> Result<&Arc<Namespace>> {
        match &self.caller {
            SessionCaller::Tenant(namespace, _) => Ok(namespace),
            SessionCaller::Admin => Err(CommandRefusal::new(
                "NOPERM",
                "the admin is in no namespace: AUTH with a namespace and its token",
            )),
            SessionCaller::Stranger => Err(no_auth()),
        }
    }

    /// The number by which the caller owns snapshots.
    pub(crate) fn snapshot_owner(&self) -> Result<u64> {
        match self.caller {
            SessionCaller::Admin => Ok(ADMIN),
            _ => Ok(self.namespace()?.number),
        }
    }

    /// Whether its token is no longer valid.
    pub(crate) fn is_revoked(&self) -> bool {
        match &self.caller {
            SessionCaller::Tenant(namespace, generation) => namespace.generation() != *generation,
            SessionCaller::Admin | SessionCaller::Stranger => false,
        }
    }

    /// Changes the caller, and drops what the previous one listened to.
    pub(crate) fn become_caller(
        &mut self,
        caller: SessionCaller,
        (live, watches): (&Live, &QueryWatches),
    ) {
        self.leave((live, watches));
        let name = match &caller {
            SessionCaller::Tenant(namespace, _) => Some(namespace.name.clone()),
            SessionCaller::Admin | SessionCaller::Stranger => None,
        };
        *self.client.namespace.lock() = name;
        let is_known = !matches!(caller, SessionCaller::Stranger);
        self.client.is_known.store(is_known, Ordering::Relaxed);
        self.unknown_since = (!is_known).then(Instant::now);
        self.caller = caller;
    }

    /// Stops listening.
    pub(crate) fn leave(&mut self, (live, watches): (&Live, &QueryWatches)) {
        for watch in self.watches.drain(..) {
            watches.leave(&watch);
        }
        for listener in self.follows.drain(..).chain(self.awaits.drain(..)) {
            live.leave(&listener);
        }
    }

    /// Ends the wait of a command.
    pub(crate) fn stop_waiting(&mut self, live: &Live) {
        self.is_late = false;
        for listener in self.awaits.drain(..) {
            live.leave(&listener);
        }
    }
}

pub(crate) fn no_auth() -> CommandRefusal {
    CommandRefusal::new("NOAUTH", "Authentication required.")
}
