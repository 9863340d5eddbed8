//! What a client missed, from the log alone.

use std::collections::HashMap;
use std::sync::Arc;

use crate::message::{
    AfterImage, Asked, Content, GROUP_MS, Gone, News, Notification, Row, Source, StreamId,
    WindowChange,
};
use crate::snapshot::Snapshot;

use super::change::Change;
use super::client::Missed;
use super::query::Query;
use super::sources::{Counts, Heard};
use super::token::Token;

/// The groups of changes that a query's subscribers were told in a part of the log, each with the
/// place behind it. None: it holds something from which that cannot be told, such as a node's whole
/// state or a hole.
pub(super) fn groups(
    query: &Query,
    token: &Token,
    entries: &[(StreamId, Notification)],
) -> Option<Vec<Missed>> {
    let mut told = Told {
        query,
        seen: &token.seen,
        groups: Vec::new(),
        batches: HashMap::new(),
        versions: HashMap::new(),
    };
    let mut counts = Counts::default();
    let mut before = token.position;
    for (at, notification) in entries {
        match counts.hear(notification.source, notification.token, notification.count) {
            Heard::Next => told.read(notification, before, *at)?,
            Heard::Outrun => {}
            Heard::Hole => return None,
        }
        before = *at;
    }
    Some(joined(told.groups, before))
}

/// Changes with their places, the place in front of the first of them, and the one of the last or, if
/// they are a batch's, where all nodes have said that they have handled it.
struct Group {
    changes: Vec<(StreamId, Change)>,
    before: StreamId,
    last: StreamId,
}

/// A batch's group, and the nodes that have said behind their part that they have handled it.
struct Batch {
    group: usize,
    over: Vec<u16>,
}

/// Makes one of groups that overlap in the log, so that there is a place behind each. Within one the
/// order is the log's, in which the nodes' words make sense.
fn joined(groups: Vec<Group>, end: StreamId) -> Vec<Missed> {
    let mut apart: Vec<Group> = Vec::new();
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
enum Kind {
    Nothing,
    Enters,
    Stays,
    Leaves,
}

struct Told<'q> {
    query: &'q Query,
    /// What the client held from the beginning.
    seen: &'q Snapshot,
    groups: Vec<Group>,
    /// Atomic batches, by transaction.
    batches: HashMap<u64, Batch>,
    versions: HashMap<Arc<[u8]>, u64>,
}

impl Told<'_> {
    fn read(&mut self, told: &Notification, before: StreamId, at: StreamId) -> Option<()> {
        let hash = self.query.definition.hash;
        let sorted = self.query.definition.sorted;
        match &told.news {
            News::Start | News::Rebased { .. } => return None,
            News::Rebase { query, .. } | News::TooOld { query, .. }
                if *query == hash && !sorted =>
            {
                return None;
            }
            News::Renew { query, .. }
            | News::Failed { query, .. }
            | News::Fetch {
                asked: Asked { query, .. },
                ..
            } if *query == hash => {
                return None;
            }
            News::Window {
                query,
                changes,
                rules_version,
                ..
            } if *query == hash => {
                self.may_show(*rules_version)?;
                let grouped = self.query.definition.is_grouped();
                let changes = changes.iter().map(|change| (at, step(change, grouped)));
                let changes = changes.collect();
                self.groups.push(Group {
                    changes,
                    before,
                    last: at,
                });
            }
            News::Match {
                image,
                added,
                changed,
                removed,
            } if !sorted => {
                let how = [added, changed, removed].map(|all| all.contains(&hash));
                if how.contains(&true) {
                    self.may_show(image.rules_version)?;
                    self.image(image, self.concerns(image, how)?, (told.source, before, at));
                }
            }
            News::Done { xid } => self.done(*xid, told.source, at),
            News::Active { query, .. } if *query == hash && !sorted => self.answered(at),
            _ => {}
        }
        Some(())
    }

    /// A node has handled its part of a batch. What it told before that may stand for a document of
    /// the batch that was written again, so that whatever begins before belongs to it.
    fn done(&mut self, xid: u64, source: Source, at: StreamId) {
        if let Source::Filter(part) = source
            && let Some(batch) = self.batches.get_mut(&xid)
            && !batch.over.contains(&part)
            && let Some(group) = self.groups.get_mut(batch.group)
        {
            batch.over.push(part);
            group.last = at;
        }
    }

    /// A node has answered a registration. If it was the one that the client's first result is of,
    /// whatever was told until then makes up for what that result lacks.
    fn answered(&mut self, at: StreamId) {
        if *self.seen != Snapshot::default()
            && let Some(first) = self.groups.first_mut()
        {
            first.last = at;
        }
    }

    /// Whether a write is one that the client was told of, or that its first result holds.
    fn is_known(&self, image: &AfterImage) -> bool {
        let known = self.versions.get(&image.key);
        self.seen.sees(image.xid) || known.is_some_and(|known| *known >= image.version)
    }

    /// What a write does to what the client holds, by whether it enters, stays in or leaves the
    /// query. Where that differs among those who watch, others joined with a version that was
    /// passed over: who has seen nothing but what the log tells is none of them. None: who has, may
    /// be.
    fn concerns(&self, image: &AfterImage, how: [bool; 3]) -> Option<Kind> {
        let unaided = *self.seen == Snapshot::default();
        Some(match how {
            _ if self.is_known(image) => Kind::Nothing,
            [_, true, true] | [true, true, _] if !unaided => return None,
            [true, ..] => Kind::Enters,
            [_, true, true] => Kind::Nothing,
            [_, _, true] => Kind::Leaves,
            _ => Kind::Stays,
        })
    }

    fn image(
        &mut self,
        image: &AfterImage,
        kind: Kind,
        (source, before, at): (Source, StreamId, StreamId),
    ) {
        let Some(change) = change(image, kind) else {
            return;
        };
        self.versions.insert(Arc::clone(&image.key), image.version);
        let next = self.groups.len();
        let place = if image.parts.is_empty() {
            next
        } else {
            let batch = self.batches.entry(image.xid).or_insert(Batch {
                group: next,
                over: Vec::new(),
            });
            batch.over.retain(|part| source != Source::Filter(*part));
            batch.group
        };
        if let Some(group) = self.groups.get_mut(place) {
            group.changes.push((at, change));
            group.last = at;
        } else {
            self.groups.push(Group {
                changes: vec![(at, change)],
                before,
                last: at,
            });
        }
    }

    /// None: access rules are in force that the query does not have.
    fn may_show(&self, rules_version: u64) -> Option<()> {
        let rules = self.query.definition.rules_version;
        (rules == 0 || rules_version <= rules).then_some(())
    }
}

/// A step of a window.
fn step(step: &WindowChange, grouped: bool) -> Change {
    let time_ms = if grouped { GROUP_MS } else { 0 };
    match step {
        WindowChange::Add { index, row } => Change::Add {
            index: Some(*index),
            row: Arc::new(row.clone()),
        },
        WindowChange::Change { index, row } => Change::Stay {
            index: Some(*index),
            row: Arc::new(row.clone()),
        },
        WindowChange::Move {
            old_index,
            index,
            row,
        } => Change::Move {
            old_index: *old_index,
            index: *index,
            row: Arc::new(row.clone()),
        },
        WindowChange::Remove {
            old_index,
            key,
            id,
            version,
            gone,
        } => Change::Remove {
            old_index: Some(*old_index),
            row: Arc::new(Row {
                key: Arc::clone(key),
                version: *version,
                created_ms: time_ms,
                updated_ms: time_ms,
                body: Arc::clone(id),
            }),
            version: *version,
            gone: *gone,
        },
    }
}

fn change(image: &AfterImage, kind: Kind) -> Option<Change> {
    let (body, gone) = match &image.content {
        Content::Document(body) => (body, Gone::Left),
        Content::Deleted(id) => (id, Gone::Deleted),
        Content::Superseded => return None,
    };
    let row = Arc::new(Row {
        key: Arc::clone(&image.key),
        version: image.version,
        created_ms: image.created_ms,
        updated_ms: image.written_us.div_euclid(1000),
        body: Arc::clone(body),
    });
    let index = None;
    Some(match kind {
        Kind::Nothing => return None,
        Kind::Enters => Change::Add { index, row },
        Kind::Stays => Change::Stay { index, row },
        Kind::Leaves => Change::Remove {
            old_index: None,
            version: image.version,
            row,
            gone,
        },
    })
}
