//! What a client missed, from the log alone.

use std::collections::HashMap;
use std::sync::Arc;

use crate::message::{
    AfterImage, Content, Gone, News, Notification, Row, Source, StreamId, WindowChange,
};

use super::change::Change;
use super::query::Query;
use super::token::Token;

/// The groups of changes that a query's subscribers were told in a part of the log; none: it holds
/// something from which that cannot be told, such as a node's whole state.
pub(super) fn groups(
    query: &Query,
    token: &Token,
    entries: &[(StreamId, Notification)],
) -> Option<Vec<Vec<Change>>> {
    let mut told = Told {
        query,
        token,
        tokens: HashMap::new(),
        groups: Vec::new(),
        batches: HashMap::new(),
        versions: HashMap::new(),
    };
    for (_, notification) in entries {
        told.read(notification)?;
    }
    Some(told.groups)
}

struct Told<'q> {
    query: &'q Query,
    token: &'q Token,
    tokens: HashMap<Source, u64>,
    groups: Vec<Vec<Change>>,
    /// By transaction: which group is an atomic batch's.
    batches: HashMap<u64, usize>,
    versions: HashMap<Arc<[u8]>, u64>,
}

impl Told<'_> {
    fn read(&mut self, notification: &Notification) -> Option<()> {
        let known = self.tokens.entry(notification.source).or_default();
        if notification.token.0 < *known {
            return Some(());
        }
        *known = notification.token.0;
        let hash = self.query.definition.hash;
        match &notification.news {
            News::Start | News::Rebased { .. } => None,
            News::Rebase { query, .. }
            | News::TooOld { query, .. }
            | News::Failed { query, .. }
                if *query == hash && !self.query.definition.sorted =>
            {
                None
            }
            News::Renew { query, .. } if *query == hash => None,
            News::Window {
                query,
                image,
                changes,
                ..
            } if *query == hash => {
                image.as_ref()?;
                let steps = changes.iter().map(step).collect::<Option<Vec<_>>>()?;
                self.groups.push(steps);
                Some(())
            }
            News::Match {
                image,
                added,
                changed,
                removed,
            } if !self.query.definition.sorted => {
                let told = [(added, 0), (changed, 1), (removed, 2)];
                let kind = told.iter().find(|(all, _)| all.contains(&hash));
                if let Some((_, kind)) = kind {
                    self.image(image, *kind);
                }
                Some(())
            }
            _ => Some(()),
        }
    }

    fn image(&mut self, image: &AfterImage, kind: u8) {
        let known = self.versions.get(&image.key);
        if image.xid < self.token.seen || known.is_some_and(|known| *known >= image.version) {
            return;
        }
        self.versions.insert(Arc::clone(&image.key), image.version);
        let Some(change) = change(image, kind) else {
            return;
        };
        if image.parts.is_empty() {
            self.groups.push(vec![change]);
            return;
        }
        let next = self.groups.len();
        let at = *self.batches.entry(image.xid).or_insert(next);
        match self.groups.get_mut(at) {
            Some(group) => group.push(change),
            None => self.groups.push(vec![change]),
        }
    }
}

fn change(image: &AfterImage, kind: u8) -> Option<Change> {
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
        0 => Change::Add { index, row },
        1 => Change::Stay { index, row },
        _ => Change::Remove {
            old_index: None,
            version: image.version,
            row,
            gone,
        },
    })
}

/// A window's step; none for removals, whose `_id` the log does not have.
fn step(step: &WindowChange) -> Option<Change> {
    Some(match step {
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
        WindowChange::Remove { .. } => return None,
    })
}
