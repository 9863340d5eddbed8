//! What a client missed, derived from the log alone.

use std::collections::HashMap;
use std::sync::Arc;

use crate::message::{
    AfterImage, FetchId, GROUP_MS, ImageContent, NodeEvent, Notification, NotificationSource,
    RemovalReason, ResultRow, StreamId, WindowChange,
};
use crate::snapshot::PgSnapshot;

use super::change::ResultChange;
use super::client::MissedChanges;
use super::query::HubQuery;
use super::sources::{SequenceCheck, SourceCounts};
use super::token::ResumeToken;

/// The groups of changes that were sent to a query's subscribers in a part of the log, each with
/// the position after it. `None` if it contains entries from which they cannot be derived, such as
/// a node's whole state or a gap.
pub(super) fn groups(
    query: &HubQuery,
    token: &ResumeToken,
    entries: &[(StreamId, Notification)],
) -> Option<Vec<MissedChanges>> {
    let mut replay = LogReplay {
        query,
        seen: &token.seen,
        groups: Vec::new(),
        batches: HashMap::new(),
        versions: HashMap::new(),
    };
    let mut counts = SourceCounts::default();
    let mut before = token.position;
    for (at, notification) in entries {
        match counts.check_sequence(notification.source, notification.token, notification.count) {
            SequenceCheck::Next => replay.read(notification, before, *at)?,
            SequenceCheck::Superseded => {}
            SequenceCheck::Gap => return None,
        }
        before = *at;
    }
    Some(merge_overlapping(replay.groups, before))
}

/// Changes with their positions, the position before the first of them, and that of the last or,
/// for a batch, the one at which all nodes have reported that they handled it.
struct ReplayedGroup {
    changes: Vec<(StreamId, ResultChange)>,
    before: StreamId,
    last: StreamId,
}

/// A batch's group, and the nodes that have reported after their part that they handled it.
struct ReplayedBatch {
    group: usize,
    over: Vec<u16>,
}

/// Merges groups that overlap in the log, so that there is a position after each. Within a group
/// the order is that of the log, which is consistent for each node.
fn merge_overlapping(groups: Vec<ReplayedGroup>, end: StreamId) -> Vec<MissedChanges> {
    let mut apart: Vec<ReplayedGroup> = Vec::new();
    for group in groups {
        match apart.last_mut() {
            Some(previous) if group.before < previous.last => {
                previous.changes.extend(group.changes);
                previous.last = previous.last.max(group.last);
            }
            _ => apart.push(group),
        }
    }
    let mut places: Vec<StreamId> = apart.iter().skip(1).map(|group| group.before).collect();
    places.push(end);
    let changes = apart.into_iter().map(|mut group| {
        group.changes.sort_by_key(|(at, _)| *at);
        group
            .changes
            .into_iter()
            .map(|(_, change)| change)
            .collect()
    });
    changes.zip(places).collect()
}

/// What a write does to a result.
#[derive(Debug, Clone, Copy)]
enum WriteEffect {
    Nothing,
    Enters,
    Stays,
    Leaves,
}

struct LogReplay<'q> {
    query: &'q HubQuery,
    /// What the client had from the start.
    seen: &'q PgSnapshot,
    groups: Vec<ReplayedGroup>,
    /// Atomic batches, by transaction.
    batches: HashMap<u64, ReplayedBatch>,
    versions: HashMap<Arc<[u8]>, u64>,
}

impl LogReplay<'_> {
    fn read(&mut self, notification: &Notification, before: StreamId, at: StreamId) -> Option<()> {
        let hash = self.query.definition.hash;
        let sorted = self.query.definition.sorted;
        match &notification.event {
            NodeEvent::Start | NodeEvent::Rebased { .. } => return None,
            NodeEvent::Rebase { query, .. } | NodeEvent::TooOld { query, .. }
                if *query == hash && !sorted =>
            {
                return None;
            }
            NodeEvent::Empty { queries, .. }
                if !sorted && queries.iter().any(|empty| empty.query == hash) =>
            {
                return None;
            }
            NodeEvent::Renew { query, .. }
            | NodeEvent::Failed { query, .. }
            | NodeEvent::Fetch {
                fetch: FetchId { query, .. },
                ..
            } if *query == hash => {
                return None;
            }
            NodeEvent::Window {
                query,
                changes,
                rules_version,
                ..
            } if *query == hash => {
                self.may_show(*rules_version)?;
                let grouped = self.query.definition.is_grouped();
                let changes = changes.iter().map(|change| (at, step(change, grouped)));
                let changes = changes.collect();
                self.groups.push(ReplayedGroup {
                    changes,
                    before,
                    last: at,
                });
            }
            NodeEvent::Match {
                image,
                added,
                changed,
                removed,
            } if !sorted => {
                let how = [added, changed, removed].map(|all| all.contains(&hash));
                if how.contains(&true) {
                    self.may_show(image.rules_version)?;
                    self.image(
                        image,
                        self.concerns(image, how)?,
                        (notification.source, before, at),
                    );
                }
            }
            NodeEvent::Done { xid } => self.done(*xid, notification.source, at),
            NodeEvent::Active { query, .. } if *query == hash && !sorted => self.answered(at),
            _ => {}
        }
        Some(())
    }

    /// A node has handled its part of a batch. Earlier reports of that node may replace a document
    /// of the batch that was written again, so any group that starts before belongs to it.
    fn done(&mut self, xid: u64, source: NotificationSource, at: StreamId) {
        if let NotificationSource::Filter(part) = source
            && let Some(batch) = self.batches.get_mut(&xid)
            && !batch.over.contains(&part)
            && let Some(group) = self.groups.get_mut(batch.group)
        {
            batch.over.push(part);
            group.last = at;
        }
    }

    /// A node has answered a registration. If the client's first result came from that
    /// registration, everything reported until then makes up for what the result lacks.
    fn answered(&mut self, at: StreamId) {
        if *self.seen != PgSnapshot::default()
            && let Some(first) = self.groups.first_mut()
        {
            first.last = at;
        }
    }

    /// Whether a write was already sent to the client, or is in its first result.
    fn is_known(&self, image: &AfterImage) -> bool {
        let known = self.versions.get(&image.key);
        self.seen.sees(image.xid) || known.is_some_and(|known| *known >= image.version)
    }

    /// The effect of a write on the client's result, by whether it enters, stays in or leaves the
    /// query. If that differs among subscribers, some joined with a version that was skipped; a
    /// client that has seen only the log is not one of them. `None` if the client may be one.
    fn concerns(&self, image: &AfterImage, how: [bool; 3]) -> Option<WriteEffect> {
        let unaided = *self.seen == PgSnapshot::default();
        Some(match how {
            _ if self.is_known(image) => WriteEffect::Nothing,
            [_, true, true] | [true, true, _] if !unaided => return None,
            [true, ..] => WriteEffect::Enters,
            [_, true, true] => WriteEffect::Nothing,
            [_, _, true] => WriteEffect::Leaves,
            _ => WriteEffect::Stays,
        })
    }

    fn image(
        &mut self,
        image: &AfterImage,
        kind: WriteEffect,
        (source, before, at): (NotificationSource, StreamId, StreamId),
    ) {
        let Some(change) = change(image, kind) else {
            return;
        };
        self.versions.insert(Arc::clone(&image.key), image.version);
        let next = self.groups.len();
        let place = if image.parts.is_empty() {
            next
        } else {
            let batch = self.batches.entry(image.xid).or_insert(ReplayedBatch {
                group: next,
                over: Vec::new(),
            });
            batch
                .over
                .retain(|part| source != NotificationSource::Filter(*part));
            batch.group
        };
        if let Some(group) = self.groups.get_mut(place) {
            group.changes.push((at, change));
            group.last = at;
        } else {
            self.groups.push(ReplayedGroup {
                changes: vec![(at, change)],
                before,
                last: at,
            });
        }
    }

    /// `None` if access rules are in force that the query does not have.
    fn may_show(&self, rules_version: u64) -> Option<()> {
        let rules = self.query.definition.rules_version;
        (rules == 0 || rules_version <= rules).then_some(())
    }
}

/// A step of a window.
fn step(step: &WindowChange, grouped: bool) -> ResultChange {
    let time_ms = if grouped { GROUP_MS } else { 0 };
    match step {
        WindowChange::Add { index, row } => ResultChange::Add {
            index: Some(*index),
            row: Arc::new(row.clone()),
        },
        WindowChange::Change { index, row } => ResultChange::Stay {
            index: Some(*index),
            row: Arc::new(row.clone()),
        },
        WindowChange::Move {
            old_index,
            index,
            row,
        } => ResultChange::Move {
            old_index: *old_index,
            index: *index,
            row: Arc::new(row.clone()),
        },
        WindowChange::Remove {
            old_index,
            key,
            id,
            version,
            reason,
        } => ResultChange::Remove {
            old_index: Some(*old_index),
            row: Arc::new(ResultRow {
                key: Arc::clone(key),
                version: *version,
                created_ms: time_ms,
                updated_ms: time_ms,
                body: Arc::clone(id),
            }),
            version: *version,
            reason: *reason,
        },
    }
}

fn change(image: &AfterImage, kind: WriteEffect) -> Option<ResultChange> {
    let (body, reason) = match &image.content {
        ImageContent::Document(body) => (body, RemovalReason::Left),
        ImageContent::Deleted(id) => (id, RemovalReason::Deleted),
        ImageContent::Superseded => return None,
    };
    let row = Arc::new(ResultRow {
        key: Arc::clone(&image.key),
        version: image.version,
        created_ms: image.created_ms,
        updated_ms: image.written_us.div_euclid(1000),
        body: Arc::clone(body),
    });
    let index = None;
    Some(match kind {
        WriteEffect::Nothing => return None,
        WriteEffect::Enters => ResultChange::Add { index, row },
        WriteEffect::Stays => ResultChange::Stay { index, row },
        WriteEffect::Leaves => ResultChange::Remove {
            old_index: None,
            version: image.version,
            row,
            reason,
        },
    })
}
