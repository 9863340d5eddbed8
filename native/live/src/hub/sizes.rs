//! How much memory rows and messages use, in bytes.

use crate::message::{ImageContent, NodeEvent, ResultRow, WindowChange};

/// The memory for remembering one key.
pub(super) const KEY_BYTES: usize = 160;

/// The memory of a row, including its share of maps and counters.
pub(super) fn row_bytes(row: &ResultRow) -> usize {
    const OVERHEAD: usize = 192;
    row.body.len() + row.key.len() + OVERHEAD
}

/// The memory of a message that is kept for later.
pub(super) fn event_bytes(event: &NodeEvent) -> usize {
    let rows = |rows: &[ResultRow]| rows.iter().map(row_bytes).sum::<usize>();
    let own = match event {
        NodeEvent::Match { image, .. } => match &image.content {
            ImageContent::Document(body) | ImageContent::Deleted(body) => {
                body.len() + image.key.len()
            }
            ImageContent::Superseded => 0,
        },
        NodeEvent::Rebase {
            rows: state_rows, ..
        } => rows(state_rows),
        NodeEvent::Window { changes, .. } => {
            let row = |change: &WindowChange| match change {
                WindowChange::Add { row, .. }
                | WindowChange::Change { row, .. }
                | WindowChange::Move { row, .. } => row_bytes(row),
                WindowChange::Remove { .. } => KEY_BYTES,
            };
            changes.iter().map(row).sum()
        }
        _ => 0,
    };
    KEY_BYTES + own
}
