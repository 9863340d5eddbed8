//! Runs one node, lease term after lease term, until it is stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::control::{Control, stop_without_parent};
use crate::error::ValkeyError;
use crate::heartbeat::beating;
use crate::layer::{Ask, Layer, Leased, NodeSettings};
use crate::lease_term::{LEASE_MS, LeaseTerm, Suspects, TermEnd};
use crate::machine::Machine;
use crate::report::{NodeFigures, NodeState};
use crate::rows::DocumentSource;

/// The interval at which a node requests a partition that another one has.
const ASK_AGAIN: Duration = Duration::from_millis(200);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// After a term of at least this length the pause is short again.
const GOOD_LIFE: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_millis(20);

/// The identity of a node, and the name under which it holds leases.
#[derive(Debug, Clone)]
pub struct NodeIdentity {
    /// Its settings.
    pub place: NodeSettings,
    /// Its write partition; meaningless for a sort node.
    pub write_partition: u16,
    /// A unique name. Each term adds its number.
    pub holder: String,
}

/// Runs a node in the calling thread until it is stopped, or its process has a parent other than
/// the given one: it is not supervised then, and its successor would wait for its lease forever.
pub fn run<M: Machine>(
    identity: &NodeIdentity,
    parent: u32,
    documents: &mut dyn DocumentSource,
    control: &Control,
) {
    beating(&identity.place, &identity.holder, control, || {
        lives::<M>(identity, parent, documents, control);
    });
}

fn lives<M: Machine>(
    identity: &NodeIdentity,
    parent: u32,
    documents: &mut dyn DocumentSource,
    control: &Control,
) {
    let (mut suspects, mut pause, mut number) = (Suspects::default(), FIRST_PAUSE, 0_u64);
    while !control.stopped() {
        number += 1;
        let began = Instant::now();
        let holder = format!("{}:{number}", identity.holder);
        let once = AssertUnwindSafe(|| {
            let held_by = (holder.as_str(), parent);
            one_life::<M>(identity, held_by, documents, &mut suspects, control)
        });
        let trouble = match catch_unwind(once) {
            Ok(TermEnd::Stopped) => return,
            Ok(TermEnd::Fenced) => "the partition has another holder".to_owned(),
            Ok(TermEnd::Away(failure)) => failure.to_string(),
            Ok(TermEnd::Unread(unread)) => unread.to_string(),
            Err(_) => {
                suspects.accuse();
                control.change(|figures| figures.panics += 1);
                "the node panicked while handling an entry".to_owned()
            }
        };
        control.change(|figures| {
            figures.state = NodeState::Waiting;
            figures.trouble = trouble;
        });
        pause = if began.elapsed() > GOOD_LIFE {
            FIRST_PAUSE
        } else {
            pause
        };
        rest(pause, parent, control);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits for the lease, runs a term, and releases the lease.
fn one_life<M: Machine>(
    identity: &NodeIdentity,
    (holder, parent): (&str, u32),
    documents: &mut dyn DocumentSource,
    suspects: &mut Suspects,
    control: &Control,
) -> TermEnd {
    let mut layer = match Layer::open(identity.place.clone()) {
        Ok(layer) => layer,
        Err(failure) => return TermEnd::Away(failure),
    };
    let token = loop {
        let report = control.json();
        match layer.lease(ask(holder, LEASE_MS, &report)) {
            Ok(Leased::Ours(token)) => break token,
            Ok(Leased::Others) => rest(ASK_AGAIN, parent, control),
            Err(failure) => return TermEnd::Away(failure),
        }
        if control.stopped() {
            return TermEnd::Stopped;
        }
    };
    let node = (&identity.place, identity.write_partition);
    let ended = {
        let held = (holder, token);
        match LeaseTerm::<M>::new(node, held, &mut layer, documents, suspects, control) {
            Ok(mut life) => life.run(parent),
            Err(failure) => TermEnd::Away(failure),
        }
    };
    release_lease(identity, layer, holder, &ended);
    ended
}

const fn ask<'a>(holder: &'a str, ttl_ms: u64, report: &'a str) -> Ask<'a> {
    Ask {
        holder,
        ttl_ms,
        report,
    }
}

/// Releases the lease, so that the next holder need not wait until it expires.
fn release_lease(identity: &NodeIdentity, layer: Layer, holder: &str, ended: &TermEnd) {
    let connected = match ended {
        TermEnd::Away(ValkeyError::Refused(_))
        | TermEnd::Stopped
        | TermEnd::Fenced
        | TermEnd::Unread(_) => Ok(layer),
        // Replies to earlier commands may still be on their way.
        TermEnd::Away(_) => Layer::open(identity.place.clone()),
    };
    if let Ok(mut layer) = connected {
        let report = NodeFigures::default().json();
        let _ = layer.lease(ask(holder, 0, &report));
    }
}

/// Sleeps, unless the node is stopped.
fn rest(pause: Duration, parent: u32, control: &Control) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !control.stopped() {
        control.step();
        stop_without_parent(parent, control);
        std::thread::sleep(NAP.min(pause));
    }
}
