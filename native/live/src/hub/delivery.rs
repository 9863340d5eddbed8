//! What the hub sends to its subscribers, and when.

use crate::message::QueryHash;

use super::change::ResultChange;
use super::client::{ClientPhase, QueryUpdate};
use super::event_bodies::EventBodies;
use super::token_stamp::TokenStamp;
use super::{ClientFrame, Hub, HubRequest};

/// The interval at which liveness is evaluated, in microseconds.
const LIVENESS_INTERVAL_US: u64 = 200_000;
/// The maximum number of frames for one client in its turn.
const MAX_FRAMES_PER_TURN: usize = 32;
/// About how many bytes are rendered in one go: others wait for this long.
const MAX_RENDERED_BYTES: usize = 512 * 1024;

impl Hub {
    pub(super) fn schedule(&mut self, id: u64) {
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
        query.trace.shown(self.trace_time_us, log.position, changes);
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
            client.trace.at(self.trace_time_us, query.trace.groups);
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
            self.schedule(id);
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
        query.last_sent_us = self.now_us;
        let (Some(rows), Some(log)) = (&query.rows, self.logs.get(&query.partition)) else {
            return;
        };
        if client.is_waiting() && !rows.has_missing_bodies() {
            let stamp = TokenStamp::new(&self.config, query, log, client.holder);
            client.phase = ClientPhase::Running;
            client.trace.at(self.trace_time_us, query.trace.groups);
            client.send_result(rows, &|seq| stamp.seal(seq));
            self.schedule(id);
        }
    }

    /// Advances time. `now_us` is Valkey's time.
    pub fn tick(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.set_trace_time(now_us);
        for id in self.behind.clone() {
            self.flush(id);
        }
        if now_us.saturating_sub(self.liveness_checked_us) >= LIVENESS_INTERVAL_US {
            self.liveness_checked_us = now_us;
            self.update_liveness();
            self.emit_unevaluated();
            self.keep_within_budget();
        }
        for hash in self.waiting.clone() {
            self.settle(&hash);
        }
    }

    fn update_liveness(&mut self) {
        let now_us = self.now_us;
        for log in self.logs.values_mut() {
            log.forget(now_us);
        }
        let mut reset = Vec::new();
        for (hash, query) in &mut self.queries {
            let Some(log) = self.logs.get(&query.partition) else {
                continue;
            };
            let nodes = query.nodes(log, now_us);
            query.forget(log, nodes, now_us);
            if query.outdated {
                self.requests.push(HubRequest::RecheckAccess(*hash));
            } else if query.is_overdue(nodes, now_us) && query.register_again() {
                self.requests.push(HubRequest::Register(*hash));
            }
            let live = query.is_live_with(nodes);
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
            self.schedule(id);
        }
    }

    /// Reports that a query is stale before anything else is sent.
    pub(super) fn mark_stale(&mut self, hash: &QueryHash) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        query.mark_stale();
        for id in query.clients.clone() {
            let client = self.clients.get_mut(&id);
            if client.is_some_and(|client| client.emit_liveness(false)) {
                self.schedule(id);
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
        client.trace.at(self.trace_time_us, query.trace.groups);
        client.stuck = self.windows.is_stuck(client.connection, now_us);
        let stamp = TokenStamp::new(&self.config, query, log, client.holder);
        query.with_leave(|leave, rows| {
            client.flush(rows, now_us, leave, &|seq| stamp.seal(seq));
        });
        if !client.is_behind() {
            self.behind.remove(&id);
        }
        self.schedule(id);
    }

    /// Takes about this many frames to send, in turn from all clients that have some and whose
    /// connections have room.
    pub fn poll(&mut self, most: usize) -> Vec<ClientFrame> {
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while frames.len() < most
            && bytes < MAX_RENDERED_BYTES
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
        let short = self.is_memory_short();
        let Some(client) = self.clients.get_mut(&id) else {
            return TurnOutcome::Nothing;
        };
        for _ in 0..MAX_FRAMES_PER_TURN {
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
            if *bytes >= MAX_RENDERED_BYTES {
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
