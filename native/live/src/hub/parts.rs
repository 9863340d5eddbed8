//! The input and output types of a hub.

use std::sync::Arc;

use rillbase_query::projection::Projection;

use crate::message::{FetchId, QueryDefinition, QueryHash, StreamId};

use super::client::ClientOptions;
use super::outbox::OutboxBounds;
use super::token::Sealer;

/// The configuration of a hub.
#[derive(Debug, Clone)]
pub struct HubConfig {
    /// Seals resume tokens.
    pub sealer: Sealer,
    /// The installation epoch.
    pub installation: u64,
    /// The grid epoch.
    pub epoch: u32,
    /// How many filter nodes each query has.
    pub write_partitions: u16,
    /// The limits of a client's outbox.
    pub bounds: OutboxBounds,
    /// The memory for all subscriptions together.
    pub memory_bytes: usize,
    /// The additional memory for traces of recent deliveries.
    pub trace_bytes: usize,
}

/// A grid, as far as a hub needs to know it.
#[derive(Debug, Clone, Copy)]
pub struct GridShape {
    /// The installation epoch.
    pub installation: u64,
    /// The grid epoch.
    pub epoch: u32,
    /// How many filter nodes each query has.
    pub write_partitions: u16,
    /// How many notification logs there are.
    pub query_partitions: u16,
}

/// A new subscription.
#[derive(Debug)]
pub struct Attach {
    /// The name that the client chose.
    pub name: String,
    /// Its query.
    pub definition: Arc<QueryDefinition>,
    /// The query partition.
    pub partition: u16,
    /// The projection of its documents.
    pub projection: Option<Arc<Projection>>,
    /// How it wants to be notified.
    pub options: ClientOptions,
    /// A hash of tenant and principal: who may use its tokens.
    pub holder: [u8; 16],
    /// The token from which it wants to resume.
    pub resume: Option<String>,
    /// Why it restarts, if it was subscribed before.
    pub reset: Option<String>,
    /// The connection that carries it, possibly with others.
    pub connection: u64,
}

/// What a hub requests from the app server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubRequest {
    /// Read a query's rows and register it with the nodes, for the first time or again.
    Register(QueryHash),
    /// The last subscription of the query has ended.
    Unregister(QueryHash),
    /// Read the rows again, with this many beyond the window, because the sort node has run out of
    /// them.
    Renew(QueryHash, u32),
    /// Read single documents of the looked-up collections for the sort node, by their keys.
    Fetch(FetchId, Vec<Vec<Arc<[u8]>>>),
    /// Read the part of the notification log that a client missed.
    Replay {
        /// The subscription.
        client: u64,
        /// The partition of the log.
        partition: u16,
        /// The last entry that the client has seen.
        after: StreamId,
        /// The last entry to read.
        upto: StreamId,
    },
    /// A write was made under newer access rules: check the subscribers' access again. Repeated until
    /// the subscribers under older rules are gone.
    RecheckAccess(QueryHash),
    /// A node cannot watch the query: end its subscriptions with this code and detail.
    Fail(QueryHash, String, String),
    /// This many documents were written that the query cannot be evaluated for: add that to the error
    /// log.
    LogUnevaluated(QueryHash, u32),
}

/// A frame for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFrame {
    /// The client.
    pub client: u64,
    /// JSON text.
    pub text: String,
    /// Whether the subscription is over.
    pub over: bool,
}

/// Figures about a subscription.
#[derive(Debug, Clone)]
pub struct ClientFigures {
    /// `starting`, `live` or `stale`.
    pub state: &'static str,
    /// Events sent.
    pub events: u64,
    /// Events that have not been read.
    pub waiting: usize,
    /// The bytes that are kept for this subscription alone.
    pub waiting_bytes: usize,
    /// The bytes of its query's result, which all subscribers of the query share.
    pub result_bytes: usize,
    /// How far behind the writes the query is, in microseconds.
    pub lag_us: Option<u64>,
}
