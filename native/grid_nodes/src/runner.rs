//! Runs one node, lease term after lease term, until it is stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::control::{Control, stop_without_parent};
use crate::error::ValkeyError;
use crate::heartbeat::run_with_heartbeats;
use crate::layer::{Layer, LeaseCall, LeaseReply, NodeSettings};
use crate::lease_term::{LEASE_MS, LeaseTerm, Suspects, TermEnd};
use crate::machine::Machine;
use crate::report::{NodeFigures, NodeState};
use crate::rows::DocumentSource;

/// The interval at which a node requests a partition that another one has.
const LEASE_RETRY: Duration = Duration::from_millis(200);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// After a term of at least this length the pause is short again.
const STABLE_TERM: Duration = Duration::from_secs(10);
const STOP_CHECK: Duration = Duration::from_millis(20);

/// The identity of a node, and the name under which it holds leases.
#[derive(Debug, Clone)]
pub struct NodeIdentity {
    /// Its settings.
    pub settings: NodeSettings,
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
    run_with_heartbeats(&identity.settings, &identity.holder, control, || {
        run_terms::<M>(identity, parent, documents, control);
    });
}

fn run_terms<M: Machine>(
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
            run_term::<M>(identity, held_by, documents, &mut suspects, control)
        });
        let trouble = match catch_unwind(once) {
            Ok(TermEnd::Stopped) => return,
            Ok(TermEnd::Fenced) => "the partition has another holder".to_owned(),
            Ok(TermEnd::Unavailable(failure)) => failure.to_string(),
            Ok(TermEnd::ReadFailed(unread)) => unread.to_string(),
            Err(_) => {
                suspects.record_panic();
                control.change(|figures| figures.panics += 1);
                "the node panicked while handling an entry".to_owned()
            }
        };
        control.change(|figures| {
            figures.state = NodeState::Waiting;
            figures.trouble = trouble;
        });
        pause = if began.elapsed() > STABLE_TERM {
            FIRST_PAUSE
        } else {
            pause
        };
        pause_for(pause, parent, control);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Waits for the lease, runs a term, and releases the lease.
fn run_term<M: Machine>(
    identity: &NodeIdentity,
    (holder, parent): (&str, u32),
    documents: &mut dyn DocumentSource,
    suspects: &mut Suspects,
    control: &Control,
) -> TermEnd {
    let mut layer = match Layer::open(identity.settings.clone()) {
        Ok(layer) => layer,
        Err(failure) => return TermEnd::Unavailable(failure),
    };
    let token = loop {
        let report = control.json();
        match layer.lease(lease_call(holder, LEASE_MS, &report)) {
            Ok(LeaseReply::Granted(token)) => break token,
            Ok(LeaseReply::Held) => pause_for(LEASE_RETRY, parent, control),
            Err(failure) => return TermEnd::Unavailable(failure),
        }
        if control.stopped() {
            return TermEnd::Stopped;
        }
    };
    let node = (&identity.settings, identity.write_partition);
    let term_end = {
        let held = (holder, token);
        match LeaseTerm::<M>::new(node, held, &mut layer, documents, suspects, control) {
            Ok(mut term) => term.run(parent),
            Err(failure) => TermEnd::Unavailable(failure),
        }
    };
    release_lease(identity, layer, holder, &term_end);
    term_end
}

const fn lease_call<'a>(holder: &'a str, ttl_ms: u64, report: &'a str) -> LeaseCall<'a> {
    LeaseCall {
        holder,
        ttl_ms,
        report,
    }
}

/// Releases the lease, so that the next holder need not wait until it expires.
fn release_lease(identity: &NodeIdentity, layer: Layer, holder: &str, term_end: &TermEnd) {
    let connected = match term_end {
        TermEnd::Unavailable(ValkeyError::Refused(_))
        | TermEnd::Stopped
        | TermEnd::Fenced
        | TermEnd::ReadFailed(_) => Ok(layer),
        // Replies to earlier commands may still be on their way.
        TermEnd::Unavailable(_) => Layer::open(identity.settings.clone()),
    };
    if let Ok(mut layer) = connected {
        let report = NodeFigures::default().json();
        let _ = layer.lease(lease_call(holder, 0, &report));
    }
}

/// Sleeps, unless the node is stopped.
fn pause_for(pause: Duration, parent: u32, control: &Control) {
    let until = Instant::now() + pause;
    while Instant::now() < until && !control.stopped() {
        control.step();
        stop_without_parent(parent, control);
        std::thread::sleep(STOP_CHECK.min(pause));
    }
}
