//! Which connections listen to which subscriptions.
//!
//! A listener that is behind joins without a gap: it is registered first, and new publications are
//! held; then the store is read for what it missed; then the held publications after the last one
//! read are sent. What became visible before the store was read was read; what arrived later was
//! held.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use rillbase_engine::{Millis, Sequence};
use rillbase_pubsub::{Delivery, DeliverySink, PublicationRecord, StoredRecord};

use crate::document::Format;
use crate::outbox::ConnectionOutbox;
use crate::resp::ReplyWriter;
use crate::show;
use crate::topic::TopicEntry;

/// The maximum number of publications held for a listener that is catching up; beyond it the
/// listener is closed.
const MAX_PENDING: usize = 100_000;
/// How long an operation that started before a subscription ended may still be reported after its
/// end.
const GRACE: Millis = 1000;

type SharedPublication = Arc<StoredRecord<PublicationRecord>>;

#[derive(Debug)]
enum ListenerState {
    /// It waits for any publication, and reads the store itself.
    Waiting,
    /// It is catching up.
    CatchingUp(Vec<SharedPublication>),
    /// It has been notified up to this position.
    NotifiedUpTo(Sequence),
}

/// One connection's interest in one subscription.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) sid: String,
    pub(crate) subscription: Sequence,
    topic: Arc<TopicEntry>,
    until: Millis,
    format: Format,
    outbox: Arc<ConnectionOutbox>,
    state: Mutex<ListenerState>,
}

impl Listener {
    pub(crate) fn new(
        (sid, subscription, until): (String, Sequence, Millis),
        topic: &Arc<TopicEntry>,
        outbox: &Arc<ConnectionOutbox>,
        format: Format,
    ) -> Arc<Self> {
        Arc::new(Self {
            sid,
            subscription,
            topic: Arc::clone(topic),
            until,
            format,
            outbox: Arc::clone(outbox),
            state: Mutex::new(ListenerState::Waiting),
        })
    }

    /// New publications are held from now on.
    pub(crate) fn hold(&self) {
        *self.state.lock() = ListenerState::CatchingUp(Vec::new());
    }

    /// It was sent what it missed, `missed`; the held publications follow.
    pub(crate) fn catch_up(
        &self,
        missed: &[StoredRecord<PublicationRecord>],
        position: Sequence,
    ) -> usize {
        let mut state = self.state.lock();
        let mut last = position;
        let mut sent = 0;
        for publication in missed {
            last = last.max(publication.sequence);
            sent += usize::from(self.send(publication));
        }
        if let ListenerState::CatchingUp(held) = &mut *state {
            held.sort_unstable_by_key(|publication| publication.sequence);
            for publication in held
                .iter()
                .filter(|publication| publication.sequence > last)
            {
                sent += usize::from(self.send(publication));
            }
            last = held
                .last()
                .map_or(last, |publication| publication.sequence.max(last));
        }
        *state = ListenerState::NotifiedUpTo(last);
        sent
    }

    fn take(&self, publication: &SharedPublication) -> bool {
        match &mut *self.state.lock() {
            ListenerState::Waiting => {
                self.outbox.call();
                false
            }
            ListenerState::CatchingUp(held) if held.len() < MAX_PENDING => {
                held.push(Arc::clone(publication));
                false
            }
            ListenerState::CatchingUp(held) => {
                *held = Vec::new();
                self.outbox.give_up();
                false
            }
            ListenerState::NotifiedUpTo(last) if publication.sequence > *last => {
                *last = publication.sequence;
                self.send(publication)
            }
            ListenerState::NotifiedUpTo(_) => false,
        }
    }

    fn send(&self, publication: &StoredRecord<PublicationRecord>) -> bool {
        let mut frame = Vec::new();
        let mut reply = ReplyWriter::new(&mut frame, 3);
        reply.push(3);
        reply.text("rb.publication");
        reply.text(&self.sid);
        show::publication(&mut reply, &self.topic, publication, self.format);
        self.outbox.push(&frame)
    }

    /// The subscription has ended.
    fn end(&self, reason: &str) {
        if matches!(&*self.state.lock(), ListenerState::Waiting) {
            return self.outbox.call();
        }
        let mut frame = Vec::new();
        let mut reply = ReplyWriter::new(&mut frame, 3);
        reply.push(3);
        reply.text("rb.end");
        reply.text(&self.sid);
        reply.text(reason);
        self.outbox.push(&frame);
    }
}

/// All listeners, by the sequence that names their subscription.
#[derive(Debug, Default)]
pub(crate) struct Live {
    listeners: RwLock<HashMap<Sequence, Vec<Arc<Listener>>>>,
    /// When subscriptions with listeners end.
    ends: Mutex<BTreeSet<(Millis, Sequence)>>,
    pub(crate) pushed: AtomicU64,
}

impl Live {
    pub(crate) fn enter(&self, listener: &Arc<Listener>) {
        let key = listener.subscription;
        self.ends.lock().insert((listener.until, key));
        let mut listeners = self.listeners.write();
        listeners.entry(key).or_default().push(Arc::clone(listener));
    }

    /// Returns whether it was registered.
    pub(crate) fn leave(&self, listener: &Arc<Listener>) -> bool {
        let key = listener.subscription;
        let mut listeners = self.listeners.write();
        let Some(all) = listeners.get_mut(&key) else {
            return false;
        };
        let before = all.len();
        all.retain(|other| !Arc::ptr_eq(other, listener));
        let was_there = all.len() < before;
        if all.is_empty() {
            listeners.remove(&key);
            drop(listeners);
            self.ends.lock().remove(&(listener.until, key));
        }
        was_there
    }

    pub(crate) fn count(&self) -> usize {
        self.listeners.read().values().map(Vec::len).sum()
    }

    /// A subscription has ended.
    pub(crate) fn end(&self, subscription: Sequence, reason: &str) {
        let ended = self.listeners.write().remove(&subscription);
        for listener in ended.iter().flatten() {
            self.ends.lock().remove(&(listener.until, subscription));
            listener.end(reason);
        }
    }

    /// All subscriptions of a topic have ended.
    pub(crate) fn end_topic(&self, topic: u64) {
        let of_topic = |all: &Vec<Arc<Listener>>| all.iter().any(|one| one.topic.number == topic);
        let ended: Vec<Sequence> = {
            let listeners = self.listeners.read();
            let matching = listeners.iter().filter(|(_, all)| of_topic(all));
            matching.map(|(subscription, _)| *subscription).collect()
        };
        for subscription in ended {
            self.end(subscription, "topic dropped");
        }
    }

    /// Ends what has expired.
    pub(crate) fn expire(&self, now: Millis) {
        loop {
            let first = self.ends.lock().first().copied();
            match first {
                Some((until, subscription)) if until.saturating_add(GRACE) < now => {
                    self.end(subscription, "expired");
                    // Of listeners that had left already.
                    self.ends.lock().remove(&(until, subscription));
                }
                _ => return,
            }
        }
    }
}

impl DeliverySink for Live {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        let listeners = self.listeners.read();
        if listeners.is_empty() {
            return;
        }
        let mut pushed = 0;
        for delivery in deliveries {
            let subscribers = listeners.get(&delivery.subscription.sequence);
            for listener in subscribers.into_iter().flatten() {
                pushed += u64::from(listener.take(&delivery.publication));
            }
        }
        self.pushed.fetch_add(pushed, Ordering::Relaxed);
    }
}
