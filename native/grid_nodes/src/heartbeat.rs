//! Heartbeats of a node's process, independent of its loop.
//!
//! A loop that registers a million queries, or waits for the database, renews no lease for a while,
//! although it works. A process that is stopped or hangs sends no heartbeat at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{park_timeout, scope};
use std::time::Duration;

use crate::control::Control;
use crate::layer::{Layer, NodeSettings};

const INTERVAL: Duration = Duration::from_secs(1);

/// Runs `work` and sends heartbeats from another thread until it has returned.
pub(crate) fn run_with_heartbeats(
    settings: &NodeSettings,
    holder: &str,
    control: &Control,
    work: impl FnOnce(),
) {
    let ended = AtomicBool::new(false);
    scope(|threads| {
        let beats = threads.spawn(|| beat(settings, holder, control, &ended));
        work();
        ended.store(true, Ordering::Relaxed);
        beats.thread().unpark();
    });
}

/// A heartbeat that cannot be sent is lost: the next one uses another connection.
fn beat(settings: &NodeSettings, holder: &str, control: &Control, ended: &AtomicBool) {
    let (mut layer, mut beats) = (None, 0_u64);
    while !ended.load(Ordering::Relaxed) {
        beats += 1;
        let sign = format!("{beats} {}", control.steps());
        let connected = match layer.take() {
            Some(layer) => Ok(layer),
            None => Layer::open(settings.clone()),
        };
        layer = connected.ok().and_then(|mut layer: Layer| {
            let sent = layer.beat(holder, &sign);
            sent.is_ok().then_some(layer)
        });
        park_timeout(INTERVAL);
    }
}
