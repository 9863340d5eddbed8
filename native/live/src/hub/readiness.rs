//! How clients become ready: with a first result, or by resuming from the log.

use crate::message::{Notification, QueryHash, StreamId};
use crate::snapshot::PgSnapshot;

use super::client::{ClientPhase, HubClient, MissedChanges, QueryUpdate};
use super::query::HubQuery;
use super::sources::NotificationLog;
use super::token::ResumeToken;
use super::token_stamp::TokenStamp;
use super::{Hub, HubRequest, replay};

impl Hub {
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
        client.trace.at(self.trace_time_us, query.trace.groups);
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
        self.schedule(id);
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
        client.trace.at(self.trace_time_us, query.trace.groups);
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
        self.schedule(id);
    }
}

/// Whether the log may lead from a token to the current state.
fn resumable(token: &ResumeToken, query: &HubQuery, log: &NotificationLog) -> bool {
    token.activation == query.activation
        && token.incarnation == log.incarnation
        && token.position != StreamId::default()
        && token.position <= query.shown_up_to(log)
}
