//! What the hub sends to its subscribers, and when.

use crate::message::{Notification, QueryHash, StreamId};
use crate::snapshot::PgSnapshot;

use super::change::ResultChange;
use super::client::{ClientPhase, HubClient, MissedChanges, QueryUpdate};
use super::event_bodies::EventBodies;
use super::query::HubQuery;
use super::sources::NotificationLog;
use super::token::ResumeToken;
use super::{ClientFrame, Hub, HubConfig, HubRequest, replay};

/// The interval at which liveness is evaluated, in microseconds.
const JUDGE_US: u64 = 200_000;
/// The maximum number of frames for one client in its turn.
const TURN: usize = 32;
/// About how many bytes are rendered in one go: others wait for this long.
const AT_ONCE_BYTES: usize = 512 * 1024;

impl Hub {
    pub(super) fn has_frames_for(&mut self, id: u64) {
        if let Some(client) = self.clients.get_mut(&id)
            && !client.listed
        {
            client.listed = true;
            self.outgoing.push_back(id);
        }
    }

    /// Sends a group of changes, which has been applied, to a query's clients. `torn`: they
    /// restart, because the group holds a batch that was not completed by itself.
    pub(super) fn show(&mut self, hash: &QueryHash, changes: &[ResultChange], torn: bool) {
        if changes.is_empty() {
            return;
        }
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        let Some(log) = self.logs.get(&query.partition) else {
            return;
        };
        query.trace.shown(self.now_us, log.position, changes);
        let Some(rows) = &query.rows else {
            return;
        };
        let query = &*query;
        let mut bodies = EventBodies::default();
        let mut anew = false;
        let mut notified = Vec::with_capacity(query.clients.len());
        for id in &query.clients {
            let Some(client) = self.clients.get_mut(id) else {
                continue;
            };
            client.trace.at(self.now_us, query.trace.groups);
            client.stuck = self.windows.is_stuck(client.connection, self.now_us);
            let stamp = TokenStamp::new(&self.config, query, log, client.holder);
            let seal = |seq| stamp.seal(seq);
            match &mut client.phase {
                ClientPhase::Running if torn => client.reset("batch_incomplete", rows, &seal),
                ClientPhase::Running => {
                    let update = QueryUpdate {
                        group: changes,
                        bodies: bodies.of(changes, client.shared_form()),
                        rows,
                    };
                    client.deliver(&update, self.now_us, &seal);
                    if client.is_behind() {
                        self.behind.insert(*id);
                        query.with_leave(|leave, rows| {
                            client.flush(rows, self.now_us, leave, &seal);
                        });
                    }
                }
                ClientPhase::Replaying(_, missed) => {
                    let most = self.config.bounds.frames;
                    *missed = missed.take().filter(|missed| !torn && missed.len() < most);
                    if let Some(missed) = missed {
                        missed.push((changes.to_vec(), query.resume_from(log)));
                    }
                }
                ClientPhase::Waiting | ClientPhase::Resuming(_) | ClientPhase::CutOff => continue,
            }
            anew |= client.is_waiting();
            notified.push(*id);
        }
        for id in notified {
            self.has_frames_for(id);
        }
        if anew {
            self.waiting.insert(*hash);
            self.refresh(hash);
        }
    }

    /// Sends a client its first result, if there is one and the client does not resume.
    pub(super) fn begin(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(query) = self.queries.get_mut(&client.query) else {
            return;
        };
        query.given_us = self.now_us;
        let (Some(rows), Some(log)) = (&query.rows, self.logs.get(&query.partition)) else {
            return;
        };
        if client.is_waiting() && !rows.is_thin() {
            let stamp = TokenStamp::new(&self.config, query, log, client.holder);
            client.phase = ClientPhase::Running;
            client.trace.at(self.now_us, query.trace.groups);
            client.give(rows, &|seq| stamp.seal(seq));
            self.has_frames_for(id);
        }
    }

    /// Notifies clients that their query is ready, once it is live; returns whether all were
    /// notified.
    pub(super) fn make_all_ready(&mut self, hash: &QueryHash) -> bool {
        let Some(query) = self.queries.get(hash) else {
            return true;
        };
        let starts =
            |client: &HubClient| !client.ready && !matches!(client.phase, ClientPhase::CutOff);
        let starting = |id: &&u64| self.clients.get(id).is_some_and(starts);
        let starting: Vec<u64> = query.clients.iter().filter(starting).copied().collect();
        if starting.is_empty() {
            return true;
        }
        let log = self.logs.get(&query.partition);
        if !log.is_some_and(|log| query.is_live(log, self.now_us)) {
            return false;
        }
        // A client that resumes from the log must not miss what only the registration saw, nor be
        // sent again what only its own first result contained.
        let passed = query.is_past_registration();
        let can_go_on = |seen: &PgSnapshot| {
            let mut sources = query.sources.iter();
            passed && log.is_some_and(|log| sources.all(|source| log.has_reached(*source, seen)))
        };
        let waits = |client: &HubClient| match &client.phase {
            ClientPhase::Waiting => true,
            ClientPhase::Resuming(token) => !can_go_on(&token.seen),
            _ => false,
        };
        let waits = |id: &u64| self.clients.get(id).is_some_and(waits);
        let (late, ready): (Vec<u64>, Vec<u64>) = starting.into_iter().partition(waits);
        let mut all = late.is_empty();
        for id in ready {
            all &= self.make_ready(id);
        }
        all
    }

    /// Returns false if it still waits for something.
    fn make_ready(&mut self, id: u64) -> bool {
        let Some(client) = self.clients.get_mut(&id) else {
            return true;
        };
        let Some(query) = self.queries.get(&client.query) else {
            return true;
        };
        let (Some(rows), Some(log)) = (&query.rows, self.logs.get(&query.partition)) else {
            return true;
        };
        let stamp = TokenStamp::new(&self.config, query, log, client.holder);
        let seal = |seq| stamp.seal(seq);
        client.trace.at(self.now_us, query.trace.groups);
        match std::mem::replace(&mut client.phase, ClientPhase::Running) {
            ClientPhase::Running => {
                // The token states that everything was sent.
                let caught_up = query
                    .with_leave(|leave, rows| client.catch_up(rows, self.now_us, leave, &seal));
                if caught_up != Some(true) {
                    return false;
                }
                client.emit_ready(&seal);
            }
            ClientPhase::Resuming(token) if resumable(&token, query, log) => {
                let upto = query.shown_up_to(log);
                return self.resume_client(id, token, upto);
            }
            ClientPhase::Resuming(_) => {
                client.reset("resume_not_possible", rows, &seal);
                if !client.is_waiting() {
                    client.emit_ready(&seal);
                }
            }
            other => {
                client.phase = other;
                return false;
            }
        }
        self.has_frames_for(id);
        true
    }

    /// Handles a client whose missed changes were read up to a position in the log; one that
    /// receives whole results only needs the current one. Returns false if it still waits for
    /// something.
    fn resume_client(&mut self, id: u64, token: ResumeToken, upto: StreamId) -> bool {
        let Some(client) = self.clients.get_mut(&id) else {
            return true;
        };
        if client.takes_whole_results() {
            client.seq = token.seq;
            client.phase = ClientPhase::Waiting;
            self.begin(id);
            return self.make_ready(id);
        }
        if let Some(query) = self.queries.get(&client.query) {
            self.requests.push(HubRequest::Replay {
                client: id,
                partition: query.partition,
                after: token.position,
                upto,
            });
        }
        client.phase = ClientPhase::Replaying(token, Some(Vec::new()));
        true
    }

    /// Takes the entries that a client missed; `None` if the log no longer has all of them.
    pub fn replay(&mut self, id: u64, entries: Option<&[(StreamId, Notification)]>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let (token, meanwhile) = match std::mem::replace(&mut client.phase, ClientPhase::Running) {
            ClientPhase::Replaying(token, meanwhile) => (token, meanwhile),
            other => {
                client.phase = other;
                return;
            }
        };
        let Some(query) = self.queries.get(&client.query) else {
            return;
        };
        let (Some(rows), Some(log)) = (&query.rows, self.logs.get(&query.partition)) else {
            return;
        };
        let stamp = TokenStamp::new(&self.config, query, log, client.holder);
        let most = self.config.bounds.frames;
        let missed = entries.and_then(|entries| replay::groups(query, &token, entries));
        let groups = missed.zip(meanwhile).map(|(mut groups, meanwhile)| {
            groups.extend(meanwhile);
            groups
        });
        let fits = |groups: &Vec<MissedChanges>| {
            groups.iter().map(|(group, _)| group.len()).sum::<usize>() <= most
        };
        client.trace.at(self.now_us, query.trace.groups);
        if let Some(groups) = groups.filter(fits) {
            client.seq = token.seq;
            client.trace.resumes(true);
            client.emit_ready(&|seq| stamp.at(&token.seen, token.position, seq));
            for (group, place) in groups {
                let update = QueryUpdate {
                    group: &group,
                    bodies: &[],
                    rows,
                };
                client.emit_group(&update, &|seq| stamp.at(&token.seen, place, seq));
            }
            client.trace.resumes(false);
            client.coalesce_if_full(rows, self.now_us);
        } else {
            client.reset("resume_not_possible", rows, &|seq| stamp.seal(seq));
            if !client.is_waiting() {
                client.emit_ready(&|seq| stamp.seal(seq));
            }
        }
        if client.is_behind() {
            self.behind.insert(id);
        }
        self.waiting.insert(client.query);
        self.has_frames_for(id);
    }

    /// Advances time. `now_us` is Valkey's time.
    pub fn tick(&mut self, now_us: u64) {
        self.now_us = now_us;
        for id in self.behind.clone() {
            self.flush(id);
        }
        if now_us.saturating_sub(self.judged_us) >= JUDGE_US {
            self.judged_us = now_us;
            self.judge_all();
            self.emit_unevaluated();
            self.keep_within_budget();
        }
        for hash in self.waiting.clone() {
            self.settle(&hash);
        }
    }

    fn judge_all(&mut self) {
        let now_us = self.now_us;
        for log in self.logs.values_mut() {
            log.forget(now_us);
        }
        let mut reset = Vec::new();
        for (hash, query) in &mut self.queries {
            let Some(log) = self.logs.get(&query.partition) else {
                continue;
            };
            query.forget(log, now_us);
            if query.outdated {
                self.requests.push(HubRequest::RecheckAccess(*hash));
            } else if query.is_overdue(log, now_us) && query.register_again() {
                self.requests.push(HubRequest::Register(*hash));
            }
            let live = query.is_live(log, now_us);
            query.live_us = live.then(|| query.live_us.unwrap_or(now_us));
            let shown = live || query.is_proven(now_us);
            for id in &query.clients {
                if let Some(client) = self.clients.get_mut(id)
                    && client.emit_liveness(shown)
                {
                    reset.push(*id);
                }
            }
        }
        for id in reset {
            self.has_frames_for(id);
        }
    }

    /// Reports that a query is stale before anything else is sent.
    pub(super) fn stands_still(&mut self, hash: &QueryHash) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        query.stands_still();
        for id in query.clients.clone() {
            let client = self.clients.get_mut(&id);
            if client.is_some_and(|client| client.emit_liveness(false)) {
                self.has_frames_for(id);
            }
        }
    }

    fn flush(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            self.behind.remove(&id);
            return;
        };
        let Some(query) = self.queries.get(&client.query) else {
            return;
        };
        let Some(log) = self.logs.get(&query.partition) else {
            return;
        };
        let now_us = self.now_us;
        client.trace.at(now_us, query.trace.groups);
        client.stuck = self.windows.is_stuck(client.connection, now_us);
        let stamp = TokenStamp::new(&self.config, query, log, client.holder);
        query.with_leave(|leave, rows| {
            client.flush(rows, now_us, leave, &|seq| stamp.seal(seq));
        });
        if !client.is_behind() {
            self.behind.remove(&id);
        }
        self.has_frames_for(id);
    }

    /// Takes about this many frames to send, in turn from all clients that have some and whose
    /// connections have room.
    pub fn poll(&mut self, most: usize) -> Vec<ClientFrame> {
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while frames.len() < most
            && bytes < AT_ONCE_BYTES
            && let Some(id) = self.outgoing.pop_front()
        {
            match self.hand_out(id, &mut frames, &mut bytes) {
                TurnOutcome::More => self.outgoing.push_back(id),
                TurnOutcome::Waits => {}
                TurnOutcome::Nothing => {
                    if let Some(client) = self.clients.get_mut(&id) {
                        client.listed = false;
                    }
                }
                TurnOutcome::Over => {
                    self.remove_client(id);
                }
            }
        }
        frames
    }

    /// Hands out some of a client's frames.
    fn hand_out(
        &mut self,
        id: u64,
        frames: &mut Vec<ClientFrame>,
        bytes: &mut usize,
    ) -> TurnOutcome {
        let short = self.is_short();
        let Some(client) = self.clients.get_mut(&id) else {
            return TurnOutcome::Nothing;
        };
        for _ in 0..TURN {
            if client.outbox.len() > 0 && !self.windows.admits(client.connection, id) {
                return TurnOutcome::Waits;
            }
            let Some(text) = client.next(short) else {
                return TurnOutcome::Nothing;
            };
            *bytes += text.len();
            self.in_flight_bytes += text.len();
            self.windows
                .sent(client.connection, text.len(), self.now_us);
            let over = client.over && client.outbox.len() == 0;
            frames.push(ClientFrame {
                client: id,
                text,
                over,
            });
            if over {
                return TurnOutcome::Over;
            }
            if *bytes >= AT_ONCE_BYTES {
                break;
            }
        }
        TurnOutcome::More
    }
}

/// How a client's turn ended.
enum TurnOutcome {
    /// It may have more.
    More,
    /// It has more, and continues when its connection has room.
    Waits,
    Nothing,
    Over,
}

/// Whether the log may lead from a token to the current state.
fn resumable(token: &ResumeToken, query: &HubQuery, log: &NotificationLog) -> bool {
    token.activation == query.activation
        && token.incarnation == log.incarnation
        && token.position != StreamId::default()
        && token.position <= query.shown_up_to(log)
}

/// What all tokens of a client have in common at one time.
struct TokenStamp<'s> {
    config: &'s HubConfig,
    query: &'s HubQuery,
    log: &'s NotificationLog,
    holder: [u8; 16],
}

impl<'s> TokenStamp<'s> {
    fn new(
        config: &'s HubConfig,
        query: &'s HubQuery,
        log: &'s NotificationLog,
        holder: [u8; 16],
    ) -> Self {
        Self {
            config,
            query,
            log,
            holder,
        }
    }

    /// A token for a client that has been sent everything.
    fn seal(&self, seq: u64) -> String {
        let position = self.query.resume_from(self.log);
        self.at(&self.query.snapshot, position, seq)
    }

    /// A token for a client that has been sent everything up to a position in the log, and
    /// everything that `seen` sees.
    fn at(&self, seen: &PgSnapshot, position: StreamId, seq: u64) -> String {
        self.config.sealer.seal(&ResumeToken {
            holder: self.holder,
            query: self.query.definition.hash,
            activation: self.query.activation,
            installation: self.config.installation,
            epoch: self.config.epoch,
            incarnation: self.log.incarnation,
            position,
            seq,
            seen: seen.clone(),
        })
    }
}
