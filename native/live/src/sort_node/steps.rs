//! The steps that lead from one window to another.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::message::{RemovalReason, ResultRow, WindowChange};

/// Why a row of the old window is not in the new one: its version, and whether it was deleted.
pub(super) type Leave<'l> = dyn Fn(&ResultRow) -> (u64, RemovalReason) + 'l;

/// Steps from `old` to `new`: first removals, then moves, then additions, then changes in place.
/// Rows whose version is the same do not move. Rows that share an allocation are equal.
pub(crate) fn steps(
    old: &[Arc<ResultRow>],
    new: &[Arc<ResultRow>],
    leave: &Leave<'_>,
) -> Vec<WindowChange> {
    let same = |(a, b): &(&Arc<ResultRow>, &Arc<ResultRow>)| Arc::ptr_eq(a, b);
    let head = old.iter().zip(new).take_while(same).count();
    let (old, new) = (rest(old, head), rest(new, head));
    let tail = old.iter().rev().zip(new.iter().rev());
    let tail = tail.take_while(same).count();
    let old = old.get(..old.len() - tail).unwrap_or_default();
    let new = new.get(..new.len() - tail).unwrap_or_default();
    let mut walk = WindowDiff {
        head,
        current: old.to_vec(),
        changes: Vec::new(),
    };
    walk.remove(new, leave);
    walk.reorder(new);
    walk.add(new);
    walk.changes
}

fn rest(rows: &[Arc<ResultRow>], head: usize) -> &[Arc<ResultRow>] {
    rows.get(head..).unwrap_or_default()
}

/// A window on its way from old to new.
struct WindowDiff {
    /// The number of leading rows that are equal.
    head: usize,
    current: Vec<Arc<ResultRow>>,
    changes: Vec<WindowChange>,
}

impl WindowDiff {
    fn index(&self, position: usize) -> u32 {
        u32::try_from(self.head + position).unwrap_or(u32::MAX)
    }

    fn position(&self, key: &[u8]) -> Option<usize> {
        self.current.iter().position(|row| *row.key == *key)
    }

    fn remove(&mut self, new: &[Arc<ResultRow>], leave: &Leave<'_>) {
        let stays: HashSet<&[u8]> = new.iter().map(|row| &*row.key).collect();
        for position in (0..self.current.len()).rev() {
            let Some(row) = self.current.get(position) else {
                continue;
            };
            if stays.contains(&*row.key) {
                continue;
            }
            let (version, reason) = leave(row);
            self.changes.push(WindowChange::Remove {
                old_index: self.index(position),
                key: Arc::clone(&row.key),
                id: row.id(),
                version,
                reason,
            });
            self.current.remove(position);
        }
    }

    fn reorder(&mut self, new: &[Arc<ResultRow>]) {
        let before: HashMap<Arc<[u8]>, (usize, u64)> = self
            .current
            .iter()
            .enumerate()
            .map(|(position, row)| (Arc::clone(&row.key), (position, row.version)))
            .collect();
        let common = || new.iter().filter(|row| before.contains_key(&row.key));
        let places: Vec<_> = common()
            .filter_map(|row| {
                let (position, version) = before.get(&row.key)?;
                Some((*position, *version != row.version))
            })
            .collect();
        let mut behind: Option<&Arc<ResultRow>> = None;
        for ((row, stays), (_, changed)) in common().zip(staying(&places)).zip(&places) {
            if stays {
                // Windows are long, and nearly all of their rows are unchanged.
                if *changed {
                    self.change(row);
                }
            } else {
                self.move_behind(row, behind);
            }
            behind = Some(row);
        }
    }

    /// Changes a row in place.
    fn change(&mut self, row: &Arc<ResultRow>) {
        let Some(position) = self.position(&row.key) else {
            return;
        };
        let index = self.index(position);
        if let Some(held) = self.current.get_mut(position)
            && held.version != row.version
        {
            *held = Arc::clone(row);
            let row = ResultRow::clone(row);
            self.changes.push(WindowChange::Change { index, row });
        }
    }

    fn move_behind(&mut self, row: &Arc<ResultRow>, behind: Option<&Arc<ResultRow>>) {
        let Some(old) = self.position(&row.key) else {
            return;
        };
        self.current.remove(old);
        let before = behind.and_then(|behind| self.position(&behind.key));
        let position = before.map_or(0, |before| before + 1);
        self.current.insert(position, Arc::clone(row));
        self.changes.push(WindowChange::Move {
            old_index: self.index(old),
            index: self.index(position),
            row: ResultRow::clone(row),
        });
    }

    fn add(&mut self, new: &[Arc<ResultRow>]) {
        for (position, row) in new.iter().enumerate() {
            if self
                .current
                .get(position)
                .is_some_and(|held| held.key == row.key)
            {
                continue;
            }
            self.current
                .insert(position.min(self.current.len()), Arc::clone(row));
            self.changes.push(WindowChange::Add {
                index: self.index(position),
                row: ResultRow::clone(row),
            });
        }
    }
}

/// Which rows stay in place: their old positions, in the new order, and whether they changed.
///
/// Rows that did not change are in the same order in both windows, so all of them stay, and no
/// known version is sent again. A changed row stays if it is still between them.
fn staying(rows: &[(usize, bool)]) -> Vec<bool> {
    let mut next = usize::MAX;
    let mut bounds: Vec<_> = rows
        .iter()
        .rev()
        .map(|(position, changed)| {
            let bound = next;
            if !changed {
                next = *position;
            }
            bound
        })
        .collect();
    bounds.reverse();
    let mut free = 0;
    let stays = rows.iter().zip(bounds).map(|((position, changed), bound)| {
        let stays = *position >= free && (!changed || *position < bound);
        if stays {
            free = position + 1;
        }
        stays
    });
    stays.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(key: u8, version: u64) -> Arc<ResultRow> {
        Arc::new(ResultRow {
            key: [key].into(),
            version,
            created_ms: 0,
            updated_ms: 0,
            body: [].into(),
        })
    }

    fn follow(old: &[Arc<ResultRow>], changes: &[WindowChange]) -> Vec<(u8, u64)> {
        let mut rows: Vec<_> = old.iter().map(|row| (row.key[0], row.version)).collect();
        for change in changes {
            match change {
                WindowChange::Add { index, row } => {
                    rows.insert(*index as usize, (row.key[0], row.version));
                }
                WindowChange::Change { index, row } => {
                    assert_eq!(rows[*index as usize].0, row.key[0]);
                    rows[*index as usize].1 = row.version;
                }
                WindowChange::Move {
                    old_index,
                    index,
                    row,
                } => {
                    assert_eq!(rows.remove(*old_index as usize).0, row.key[0]);
                    rows.insert(*index as usize, (row.key[0], row.version));
                }
                WindowChange::Remove { old_index, key, .. } => {
                    assert_eq!(rows.remove(*old_index as usize).0, key[0]);
                }
            }
        }
        rows
    }

    fn removal(row: &ResultRow) -> (u64, RemovalReason) {
        (row.version, RemovalReason::Left)
    }

    fn window() -> impl Strategy<Value = Vec<(u8, u64)>> {
        proptest::collection::hash_map(0_u8..12, 1_u64..3, 0..9)
            .prop_map(|rows| rows.into_iter().collect())
    }

    proptest! {
        #[test]
        fn steps_lead_from_the_old_window_to_the_new_one(old in window(), new in window()) {
            let old: Vec<_> = old.into_iter().map(|(key, version)| row(key, version)).collect();
            let rows: Vec<_> = new.iter().map(|(key, version)| row(*key, *version)).collect();
            let changes = steps(&old, &rows, &removal);
            prop_assert_eq!(follow(&old, &changes), new);
        }
    }

    #[test]
    fn a_row_that_moves_to_the_end_is_one_move() {
        let old: Vec<_> = (0..5).map(|key| row(key, 1)).collect();
        let mut new = old.clone();
        let first = new.remove(0);
        new.push(row(first.key[0], 2));
        assert_eq!(steps(&old, &new, &removal).len(), 1);
    }
}
