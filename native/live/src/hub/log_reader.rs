//! Processing the notification log in the hub.

use std::collections::HashSet;

use crate::message::{
    EmptyResult, FetchId, NodeEvent, Notification, NotificationSource, QueryHash, StreamId,
};
use crate::snapshot::PgSnapshot;

use super::positions::EntryPosition;
use super::query::{HubQuery, RegistrationProgress};
use super::sources::SequenceCheck;
use super::{Hub, HubRequest};

impl Hub {
    /// Reads an entry of a log.
    pub fn read(&mut self, partition: u16, position: StreamId, notification: &Notification) {
        let now_us = self.now_us;
        let log = self.logs.entry(partition).or_default();
        let place = EntryPosition {
            before: log.position,
            at: position,
            now_us,
        };
        log.position = position;
        let source = notification.source;
        match log.check_sequence(source, notification.token, notification.count) {
            SequenceCheck::Superseded => return,
            SequenceCheck::Gap => self.lost(partition),
            SequenceCheck::Next => {}
        }
        for hash in self.dispatch(partition, place, source, &notification.event) {
            self.settle(&hash);
        }
    }

    /// Registers all queries of a log again, because messages may be missing.
    pub fn lost(&mut self, partition: u16) {
        self.forgotten(partition, &HashSet::new());
    }

    /// Registers queries again that the event layer has forgotten. Those that it holds were
    /// registered since: nothing of them is lost, and their subscribers are not notified.
    pub fn forgotten(&mut self, partition: u16, held: &HashSet<QueryHash>) {
        let queries = self.queries.iter();
        let lost = queries
            .filter(|(hash, query)| query.partition == partition && !held.contains(hash))
            .map(|(hash, _)| *hash);
        for hash in lost.collect::<Vec<_>>() {
            self.register_again(&hash);
        }
    }

    /// What is shown from here on may be incomplete, so subscribers are notified first.
    fn register_again(&mut self, hash: &QueryHash) {
        if let Some(query) = self.queries.get_mut(hash)
            && query.register_again()
        {
            self.requests.push(HubRequest::Register(*hash));
        }
        self.mark_stale(hash);
    }

    /// A batch cannot be completed: its parts are not shown, and subscribers restart with rows that
    /// contain all of it.
    fn tear(&mut self, hash: &QueryHash) {
        if let Some(query) = self.queries.get_mut(hash) {
            query.tear();
        }
        self.register_again(hash);
    }

    /// Dispatches a message to the queries that it concerns; returns those that may have changes to
    /// show.
    fn dispatch(
        &mut self,
        partition: u16,
        place: EntryPosition,
        source: NotificationSource,
        event: &NodeEvent,
    ) -> Vec<QueryHash> {
        match event {
            NodeEvent::Match {
                added,
                changed,
                removed,
                ..
            } => {
                let all = added.iter().chain(changed).chain(removed);
                let known = all.filter(|hash| self.queries.contains_key(hash));
                let mut known: Vec<QueryHash> = known.copied().collect();
                known.sort_unstable();
                known.dedup();
                for hash in &known {
                    self.apply_query_event(hash, place, source, event);
                }
                known
            }
            NodeEvent::Active { query, .. }
            | NodeEvent::TooOld { query, .. }
            | NodeEvent::Failed { query, .. }
            | NodeEvent::Rebase { query, .. }
            | NodeEvent::Window { query, .. }
            | NodeEvent::Renew { query, .. }
            | NodeEvent::Fetch {
                fetch: FetchId { query, .. },
                ..
            } => {
                self.apply_query_event(query, place, source, event);
                vec![*query]
            }
            NodeEvent::Empty {
                queries,
                snapshot,
                request,
            } => {
                let mut own = Vec::new();
                for empty in queries {
                    if self.queries.contains_key(&empty.query) {
                        self.apply_empty_result(empty, (snapshot, *request), place, source);
                        own.push(empty.query);
                    }
                }
                own
            }
            NodeEvent::Unevaluated { queries } => {
                for hash in queries {
                    self.one_unevaluated(hash);
                }
                Vec::new()
            }
            NodeEvent::Start
            | NodeEvent::Rebased { .. }
            | NodeEvent::Tick(_)
            | NodeEvent::Done { .. } => {
                self.apply_source_event(partition, place, source, event);
                self.waiting.iter().copied().collect()
            }
        }
    }

    /// A node has no rows for a query, and watches it.
    fn apply_empty_result(
        &mut self,
        empty: &EmptyResult,
        (snapshot, request): (&PgSnapshot, StreamId),
        place: EntryPosition,
        source: NotificationSource,
    ) {
        let EmptyResult {
            query,
            activation,
            rules_version,
        } = *empty;
        let is_sorted = self
            .queries
            .get(&query)
            .is_some_and(|query| query.definition.sorted);
        if !is_sorted || source == NotificationSource::Sort {
            let rebase = NodeEvent::Rebase {
                query,
                activation,
                snapshot: snapshot.clone(),
                rules_version,
                rows: Vec::new(),
                part: 0,
                last: true,
            };
            self.apply_query_event(&query, place, source, &rebase);
        }
        let active = NodeEvent::Active {
            query,
            activation,
            request,
        };
        self.apply_query_event(&query, place, source, &active);
    }

    /// A message that concerns all queries of a log.
    fn apply_source_event(
        &mut self,
        partition: u16,
        place: EntryPosition,
        source: NotificationSource,
        event: &NodeEvent,
    ) {
        let log = self.logs.entry(partition).or_default();
        match event {
            NodeEvent::Start => {
                log.start(source, place);
                for query in self.queries.values_mut() {
                    if query.partition == partition {
                        query.restarted(source, place.at);
                    }
                }
            }
            NodeEvent::Rebased { snapshot } => log.rebuilt(source, snapshot, place.at),
            NodeEvent::Done { xid } => {
                if let NotificationSource::Filter(part) = source {
                    log.done(*xid, part, place);
                }
            }
            NodeEvent::Tick(tick) => {
                if log.tick(source, tick, place.at) {
                    self.lost(partition);
                }
                let of_log =
                    |query: &&mut HubQuery| query.partition == partition && query.definition.sorted;
                let mut shown = Vec::new();
                for query in self.queries.values_mut().filter(of_log) {
                    if source == NotificationSource::Sort {
                        let changes = query.sort_ticked(&tick.snapshot, tick.time_us);
                        shown.push((query.definition.hash, changes));
                    } else {
                        query.filter_ticked(source, tick.time_us);
                    }
                }
                for (hash, changes) in shown {
                    self.show(&hash, &changes, false);
                }
            }
            _ => {}
        }
    }

    /// Applies a message to one query.
    pub(super) fn apply_query_event(
        &mut self,
        hash: &QueryHash,
        place: EntryPosition,
        source: NotificationSource,
        event: &NodeEvent,
    ) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        let log = self.logs.get(&query.partition);
        let began = log.map_or_else(StreamId::default, |log| log.began(source));
        let under_way = [
            RegistrationProgress::InProgress,
            RegistrationProgress::Outdated,
        ];
        if under_way.contains(&query.registration) {
            query.defer((place, source, event.clone()));
        }
        if query.rows.is_none() {
            return;
        }
        let current = query.activation;
        let is_stale = query.may_have_gaps();
        match event {
            NodeEvent::Failed { code, detail, .. } => {
                let request = HubRequest::Fail(*hash, code.clone(), detail.clone());
                self.requests.push(request);
            }
            NodeEvent::Renew {
                activation, slack, ..
            } if *activation == current => {
                query.renew(place.before);
                self.requests.push(HubRequest::Renew(*hash, *slack));
            }
            NodeEvent::Fetch { fetch, keys } if fetch.activation == current => {
                query.renew(place.before);
                self.requests.push(HubRequest::Fetch(*fetch, keys.clone()));
            }
            // Kept messages are judged when the rows are available.
            _ if is_stale => {}
            NodeEvent::Match { image, removed, .. } if !query.definition.sorted => {
                query.image(image, removed.contains(hash), (place, source));
                if query.is_flooded() {
                    self.register_again(hash);
                }
            }
            NodeEvent::Active {
                activation,
                request,
                ..
            } if *activation <= current => {
                query.activated(source, (*activation, *request), (began, place.at));
            }
            // The node cannot continue from a different registration.
            NodeEvent::TooOld { request, .. } if *request != query.request() => {}
            // It was registered by others in another activation since, so ours is over.
            NodeEvent::Active { .. } | NodeEvent::TooOld { .. } => self.register_again(hash),
            _ => self.apply_state(hash, place, source, event),
        }
    }

    /// A node's whole state, or a step of a window.
    fn apply_state(
        &mut self,
        hash: &QueryHash,
        place: EntryPosition,
        source: NotificationSource,
        event: &NodeEvent,
    ) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        let current = query.activation;
        let changes = match event {
            NodeEvent::Rebase {
                activation,
                snapshot,
                rules_version,
                rows,
                part,
                last,
                ..
            } if *activation == current && query.may_show(*rules_version) => {
                query.state((place, source), rows, *part, last.then_some(snapshot))
            }
            NodeEvent::Window {
                activation,
                rules_version,
                image,
                changes,
                ..
            } if *activation == current && query.may_show(*rules_version) => {
                query.step(changes, image.is_none())
            }
            _ => return,
        };
        self.show(hash, &changes, false);
    }

    /// Applies what a query can apply.
    pub(super) fn settle(&mut self, hash: &QueryHash) {
        let now_us = self.now_us;
        let Some(query) = self.queries.get_mut(hash) else {
            self.waiting.remove(hash);
            return;
        };
        let Some(log) = self.logs.get(&query.partition) else {
            return;
        };
        let changes = query.settle(log, now_us);
        let (late, waits) = (query.is_late(now_us), query.has_waiting());
        self.show(hash, &changes, false);
        if late {
            self.tear(hash);
        }
        self.send_first_results(hash);
        if self.make_all_ready(hash) && !waits {
            self.waiting.remove(hash);
        } else {
            self.waiting.insert(*hash);
        }
    }
}
