//! An app server: the real hub, surrounded by what `realtime/hub` does, one small step at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rillbase_live::hub::{Attach, ClientOptions, Hub, HubConfig, HubRequest, OutboxBounds, Sealer};
use rillbase_live::message::{NodeRequest, QueryHash, ResultRow, StreamId};
use rillbase_live::snapshot::PgSnapshot;

use super::database::Database;
use super::demands::Demand;
use super::queries::{Query, QuerySpec};
use super::valkey::{Stream, Valkey};

/// An app server that has not renewed its lease for this long may have lost its queries.
const FORGOTTEN_US: u64 = 120_000_000;
const ALIVE_US: u64 = 3_000_000;
/// Small, so that some clients are slow.
const BOUNDS: OutboxBounds = OutboxBounds {
    frames: 6,
    bytes: 1 << 20,
    in_flight: (4, 1 << 20),
};

/// The ends of the streams, and the run of the event layer in which they were noted.
#[derive(Debug)]
pub(crate) struct Ends {
    log: StreamId,
    writes: Vec<StreamId>,
    life: u8,
}

impl Ends {
    pub(crate) fn of(valkey: &Valkey) -> Self {
        Self {
            log: valkey.log.end(),
            writes: valkey.writes.iter().map(Stream::end).collect(),
            life: valkey.life,
        }
    }
}

/// A query's rows, and the positions that were noted before they were read.
#[derive(Debug)]
pub(crate) struct Reading {
    asked: u64,
    log_end: StreamId,
    life: u8,
    snapshot: PgSnapshot,
    rows: Vec<ResultRow>,
    request: NodeRequest,
}

/// A request of the hub, and its progress.
#[derive(Debug)]
pub(crate) enum Task {
    Register(QueryHash),
    Note(QueryHash, u64, Ends),
    Send(QueryHash, Box<Reading>),
    Unregister(QueryHash),
    Judge(QueryHash),
    Replay {
        client: u64,
        after: StreamId,
        upto: StreamId,
    },
}

/// A subscription, as the app server knows it.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) wanted: QuerySpec,
    pub(crate) query: Query,
    options: ClientOptions,
}

/// An app server.
pub(crate) struct Process {
    /// Its name, which changes with each restart.
    pub(crate) number: u64,
    pub(crate) hub: Hub,
    cursor: StreamId,
    pub(crate) tasks: VecDeque<Task>,
    pub(crate) attached: BTreeMap<u64, Subscription>,
    /// When it last renewed its lease.
    alive_us: u64,
    pub(crate) stopped_until_us: u64,
}

impl Process {
    pub(crate) fn new(number: u64, partitions: u16, valkey: &mut Valkey) -> Self {
        valkey.hub_alive(number);
        let mut hub = Hub::new(HubConfig {
            sealer: Sealer::new(b"secret"),
            installation: 1,
            epoch: 1,
            write_partitions: partitions,
            bounds: BOUNDS,
            // Some have so little memory that bodies are evicted and read again.
            memory_bytes: 1 << 30,
            trace_bytes: 1 << 20,
        });
        hub.tick(valkey.now_us);
        Self {
            number,
            hub,
            cursor: valkey.log.end(),
            tasks: VecDeque::new(),
            attached: BTreeMap::new(),
            alive_us: valkey.now_us,
            stopped_until_us: 0,
        }
    }

    pub(crate) const fn is_stopped(&self, now_us: u64) -> bool {
        now_us < self.stopped_until_us
    }

    pub(crate) fn attach(
        &mut self,
        client: u64,
        subscription: Subscription,
        resume: Option<String>,
        reset: Option<&str>,
    ) {
        self.hub.attach(
            client,
            Attach {
                name: "s".to_owned(),
                definition: Arc::new(subscription.query.definition()),
                partition: 0,
                projection: None,
                options: subscription.options.clone(),
                holder: [9; 16],
                resume,
                reset: reset.map(str::to_owned),
                connection: client,
            },
        );
        self.attached.insert(client, subscription);
    }

    pub(crate) fn subscribe(
        &mut self,
        client: u64,
        wanted: QuerySpec,
        options: ClientOptions,
        rules: u64,
        resume: Option<String>,
    ) {
        let query = wanted.under(rules);
        let subscription = Subscription {
            wanted,
            query,
            options,
        };
        self.attach(client, subscription, resume, None);
    }

    pub(crate) fn detach(&mut self, client: u64) {
        self.attached.remove(&client);
        self.hub.detach(client);
    }

    /// Reads the log, advances time, and collects the hub's requests. Returns the requests of
    /// nodes.
    pub(crate) fn step(&mut self, valkey: &mut Valkey, most: usize) -> Vec<Demand> {
        self.stay_alive(valkey);
        for _ in 0..most {
            let Some((id, _, entry)) = valkey.log.next(self.cursor) else {
                break;
            };
            self.cursor = id;
            self.hub.read(0, id, &entry);
        }
        self.hub.tick(valkey.now_us);
        let mut demands = Vec::new();
        for request in self.hub.take_requests() {
            self.tasks.push_back(match request {
                HubRequest::Register(hash) => Task::Register(hash),
                HubRequest::Unregister(hash) => Task::Unregister(hash),
                HubRequest::RecheckAccess(hash) => Task::Judge(hash),
                HubRequest::Replay {
                    client,
                    after,
                    upto,
                    ..
                } => Task::Replay {
                    client,
                    after,
                    upto,
                },
                HubRequest::Renew(hash, slack) => {
                    demands.push(Demand::Rows(hash, slack));
                    continue;
                }
                HubRequest::Fetch(fetch, keys) => {
                    demands.push(Demand::Documents(fetch, keys));
                    continue;
                }
                HubRequest::Fail(hash, code, _) => panic!("{hash:?} failed: {code}"),
                HubRequest::LogUnevaluated(hash, _) => panic!("{hash:?} cannot be evaluated"),
            });
        }
        demands
    }

    fn stay_alive(&mut self, valkey: &mut Valkey) {
        let now_us = valkey.now_us;
        if self.alive_us + ALIVE_US > now_us {
            return;
        }
        if !valkey.hub_alive(self.number) || now_us - self.alive_us > FORGOTTEN_US {
            self.hub.forgotten(0, &valkey.queries_of(self.number));
        }
        self.alive_us = now_us;
    }

    /// Continues one of the hub's requests. Those of one query are served in order.
    pub(crate) fn serve(&mut self, which: usize, valkey: &mut Valkey, database: &Database) {
        if self.tasks.is_empty() {
            return;
        }
        let mut at = which % self.tasks.len();
        if let Some(hash) = self.tasks[at].query() {
            let first = self
                .tasks
                .iter()
                .position(|task| task.query() == Some(hash));
            at = first.unwrap_or(at);
        }
        let Some(task) = self.tasks.remove(at) else {
            return;
        };
        if let Some(next) = self.resume(task, valkey, database) {
            self.tasks.insert(at.min(self.tasks.len()), next);
        }
    }

    fn resume(&mut self, task: Task, valkey: &mut Valkey, database: &Database) -> Option<Task> {
        match task {
            Task::Unregister(hash) => {
                if self.hub.definition(&hash).is_none() {
                    valkey.unregister(self.number, hash);
                }
                None
            }
            Task::Judge(hash) => {
                self.judge(Some(hash), database, valkey.now_us);
                None
            }
            Task::Replay {
                client,
                after,
                upto,
            } => {
                let entries = valkey.log.range(after, upto);
                self.hub.replay(client, entries.as_deref());
                None
            }
            other => self.register(other, valkey, database),
        }
    }

    /// One step of a registration; restarts while a server is unavailable.
    fn register(&mut self, task: Task, valkey: &mut Valkey, database: &Database) -> Option<Task> {
        let away = database.is_away(valkey.now_us);
        match task {
            Task::Register(hash) => {
                let asked = self.hub.registration_id(&hash)?;
                Some(Task::Note(hash, asked, Ends::of(valkey)))
            }
            Task::Note(hash, ..) if away => Some(Task::Register(hash)),
            Task::Note(hash, asked, ends) => {
                let query = Query::named(&hash);
                if query.rules != 0 && query.rules != database.rules {
                    self.judge(Some(hash), database, valkey.now_us);
                    return Some(Task::Register(hash));
                }
                let slack = query.definition().slack;
                let mut reading = read(query, slack, ends, false, database);
                reading.asked = asked;
                Some(Task::Send(hash, Box::new(reading)))
            }
            // The function rejects positions of another run of the event layer.
            Task::Send(hash, reading) if reading.life != valkey.life => Some(Task::Register(hash)),
            Task::Send(hash, reading) => {
                let Reading {
                    asked,
                    log_end,
                    snapshot,
                    rows,
                    request,
                    life: _,
                } = *reading;
                let registered = valkey.register(self.number, request)?;
                if self.hub.definition(&hash).is_none() {
                    valkey.unregister(self.number, hash);
                }
                self.hub
                    .registered(&hash, asked, registered, log_end, snapshot, rows);
                None
            }
            _ => None,
        }
    }

    /// Checks the access rules of a query's subscribers, or of all.
    pub(crate) fn judge(&mut self, hash: Option<QueryHash>, database: &Database, now_us: u64) {
        if database.is_away(now_us) {
            return;
        }
        for (client, subscription) in self.attached.clone() {
            let query = subscription.wanted.under(database.rules);
            let concerned = hash.is_none_or(|hash| subscription.query.hash() == hash);
            if concerned && query != subscription.query {
                self.hub.detach(client);
                let now = Subscription {
                    query,
                    ..subscription
                };
                self.attach(client, now, None, Some("rules_changed"));
            }
        }
    }
}

impl Task {
    fn query(&self) -> Option<QueryHash> {
        match self {
            Self::Register(hash)
            | Self::Note(hash, ..)
            | Self::Send(hash, _)
            | Self::Unregister(hash) => Some(*hash),
            Self::Judge(_) | Self::Replay { .. } => None,
        }
    }
}

/// Reads a query's rows.
pub(crate) fn read(
    query: Query,
    slack: u32,
    ends: Ends,
    renewal: bool,
    database: &Database,
) -> Reading {
    let (rows, complete) = query.rows(database, slack);
    let snapshot = database.snapshot();
    // Collections grow and shrink, so sometimes all of one is read and sometimes not.
    let foreign = query.foreign(database, &rows, snapshot.xmax.is_multiple_of(2));
    let mut definition = query.definition();
    definition.slack = slack;
    Reading {
        asked: 0,
        log_end: ends.log,
        life: ends.life,
        snapshot: snapshot.clone(),
        rows: rillbase_live::registered_rows::rows(&definition, rows.clone(), &foreign)
            .unwrap_or_else(|refusal| panic!("{refusal:?}")),
        request: NodeRequest::Register {
            query: definition,
            positions: ends.writes,
            snapshot,
            rows,
            complete,
            foreign,
            renewal,
        },
    }
}

impl Reading {
    /// Sends the rows of a renewal to the nodes, unless the event layer has restarted.
    pub(crate) fn renew(self, valkey: &mut Valkey) {
        if self.life == valkey.life {
            valkey.renew(self.request);
        }
    }
}
