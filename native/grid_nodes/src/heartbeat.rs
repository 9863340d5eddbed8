//! Signs of life of a node's process, apart from its loop.
//!
//! A loop that takes in a million queries, or waits for the database, renews no lease for a while
//! and is well. A process that was stopped, or hangs as a whole, gives no sign at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{park_timeout, scope};
use std::time::Duration;

use crate::layer::{Layer, NodeSettings};
use crate::runner::Control;

const INTERVAL: Duration = Duration::from_secs(1);

/// Runs `work` and gives signs of life in another thread until it has returned.
pub(crate) fn beating(place: &NodeSettings, holder: &str, control: &Control, work: impl FnOnce()) {
    let ended = AtomicBool::new(false);
    scope(|threads| {
        let beats = threads.spawn(|| beat(place, holder, control, &ended));
        work();
        ended.store(true, Ordering::Relaxed);
        beats.thread().unpark();
    });
}

/// A sign that cannot be given is lost: the next one comes over another connection.
fn beat(place: &NodeSettings, holder: &str, control: &Control, ended: &AtomicBool) {
    let (mut layer, mut beats) = (None, 0_u64);
    while !ended.load(Ordering::Relaxed) {
        beats += 1;
        let sign = format!("{beats} {}", control.steps());
        let connected = match layer.take() {
            Some(layer) => Ok(layer),
            None => Layer::open(place.clone()),
        };
        layer = connected.ok().and_then(|mut layer: Layer| {
            let given = layer.beat(holder, &sign);
            given.is_ok().then_some(layer)
        });
        park_timeout(INTERVAL);
    }
}
