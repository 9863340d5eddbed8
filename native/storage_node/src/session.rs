//! What the node knows of a connection while it lasts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::catalog::Namespace;
use crate::clients::ClientInfo;
use crate::document::Format;
use crate::live::{Listener, Live};
use crate::outbox::ConnectionOutbox;
use crate::refusal::{CommandRefusal, Result};
use crate::watches::{QueryWatches, Watch};

/// Who speaks.
#[derive(Debug, Clone, Default)]
pub(crate) enum SessionCaller {
    /// Nobody has said yet.
    #[default]
    Stranger,
    /// Who manages namespaces, and sees nothing of what is in them.
    Admin,
    /// Who holds the token of a namespace, of the generation given.
    Tenant(Arc<Namespace>, u64),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct CommandSession {
    pub(crate) caller: SessionCaller,
    /// Of the protocol.
    pub(crate) version: u8,
    pub(crate) format: Format,
    pub(crate) client: Arc<ClientInfo>,
    pub(crate) outbox: Arc<ConnectionOutbox>,
    /// The subscriptions whose publications are pushed.
    pub(crate) follows: Vec<Arc<Listener>>,
    /// The queries whose changed rows are pushed.
    pub(crate) watches: Vec<Arc<Watch>>,
    /// What the command that waits looks at.
    pub(crate) awaits: Vec<Arc<Listener>>,
    /// The command that waits has waited long enough.
    pub(crate) is_late: bool,
    /// Since when nobody has said who speaks.
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

    /// The namespace that commands are about.
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

    /// Whether the token that let it in counts no longer.
    pub(crate) fn is_revoked(&self) -> bool {
        match &self.caller {
            SessionCaller::Tenant(namespace, generation) => namespace.generation() != *generation,
            SessionCaller::Admin | SessionCaller::Stranger => false,
        }
    }

    /// Another caller goes on: what the last one listened to is none of its business.
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

    /// The command that waited does so no longer.
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
