//! The expected answers of a store, found by comparing all pairs.

#![allow(
    clippy::many_single_char_names,
    reason = "coordinates have short names"
)]

use std::collections::HashSet;

use rillbase_pubsub::{PublicationRecord, SubscriptionRecord};

/// The area of a publication or subscription in tests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cover {
    /// The numbers of an id that matches only itself.
    Flat(Vec<u64>),
    /// An id's numbers.
    Node(Vec<u64>),
    /// x, y, radius.
    Circle(f64, f64, f64),
    /// West, south, east, north.
    Box(f64, f64, f64, f64),
}

impl Cover {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Flat(one), Self::Flat(two)) => one == two,
            (Self::Node(one), Self::Node(two)) => one.iter().zip(two).all(|(a, b)| a == b),
            (Self::Circle(x, y, r), Self::Circle(a, b, s)) => (x - a).hypot(y - b) <= r + s,
            (Self::Box(w, s, e, n), Self::Box(a, b, c, d)) => {
                w.max(*a) <= e.min(*c) && s.max(*b) <= n.min(*d)
            }
            (Self::Circle(x, y, r), Self::Box(w, s, e, n))
            | (Self::Box(w, s, e, n), Self::Circle(x, y, r)) => {
                let outside = |at: f64, low: f64, high: f64| (low - at).max(at - high).max(0.0);
                outside(*x, *w, *e).hypot(outside(*y, *s, *n)) <= *r
            }
            _ => false,
        }
    }
}

#[derive(Debug, Clone)]
struct ModelPublication {
    cover: Cover,
    record: PublicationRecord,
    number: i32,
}

#[derive(Debug, Clone)]
struct Wish {
    cover: Cover,
    record: SubscriptionRecord,
    /// The least number that it receives.
    least: Option<i32>,
    ended: bool,
}

/// A naive matcher.
#[derive(Debug, Default)]
pub(crate) struct Model {
    publication: Vec<ModelPublication>,
    wishes: Vec<Wish>,
    /// The subscriptions and publications that have matched.
    met: HashSet<(usize, usize)>,
}

fn name(id: &[u8]) -> String {
    String::from_utf8(id.to_vec()).unwrap()
}

impl Model {
    fn meet(wish: &Wish, publication: &ModelPublication, now: u64) -> bool {
        wish.record.until >= now
            && publication.record.until >= now
            && !wish.ended
            && wish.record.from <= publication.record.at
            && publication.record.at <= wish.record.until
            && wish.cover.meets(&publication.cover)
            && wish.least.is_none_or(|least| publication.number >= least)
    }

    /// Whether an older `unseen_only` subscription of the user has matched a publication.
    fn has_seen(&self, wish: usize, publication: usize) -> bool {
        let user = &self.wishes[wish].record.user;
        self.wishes[wish].record.unseen_only
            && (0..wish).any(|older| {
                let known = &self.wishes[older].record;
                known.unseen_only && known.user == *user && self.met.contains(&(older, publication))
            })
    }

    /// The matching subscriptions, and the live publications in its area.
    pub(crate) fn publish(
        &mut self,
        cover: Cover,
        (record, number): (PublicationRecord, i32),
        now: u64,
    ) -> (Vec<String>, Vec<String>) {
        let publication = ModelPublication {
            cover,
            record,
            number,
        };
        let own = self.publication.len();
        let mut alike = self.data(&publication.cover, 0, u64::MAX, now);
        if publication.record.until < now {
            alike.clear();
        }
        let met: Vec<usize> = (0..self.wishes.len())
            .filter(|&wish| Self::meet(&self.wishes[wish], &publication, now))
            .collect();
        self.publication.push(publication);
        self.met.extend(met.iter().map(|&wish| (wish, own)));
        let received = met.iter().filter(|&&wish| !self.has_seen(wish, own));
        let received = received
            .map(|&wish| name(&self.wishes[wish].record.id))
            .collect();
        (received, alike)
    }

    /// The matching publications, and the subscriptions that overlap it.
    pub(crate) fn subscribe(
        &mut self,
        cover: Cover,
        (record, least): (SubscriptionRecord, Option<i32>),
        now: u64,
    ) -> (Vec<String>, Vec<String>) {
        let wish = Wish {
            cover,
            record,
            least,
            ended: false,
        };
        let alike = self.wishes.iter().filter(|other| {
            wish.record.until >= now
                && !other.ended
                && other.record.until >= now
                && other.record.from <= wish.record.until
                && other.record.until >= wish.record.from
                && other.cover.meets(&wish.cover)
        });
        let alike = alike.map(|other| name(&other.record.id)).collect();
        let own = self.wishes.len();
        let met: Vec<usize> = (0..self.publication.len())
            .filter(|&publication| Self::meet(&wish, &self.publication[publication], now))
            .collect();
        self.wishes.push(wish);
        self.met
            .extend(met.iter().map(|&publication| (own, publication)));
        let received = met
            .iter()
            .filter(|&&publication| !self.has_seen(own, publication));
        let received = received
            .map(|&publication| name(&self.publication[publication].record.id))
            .collect();
        (received, alike)
    }

    /// The live publications within a time window.
    pub(crate) fn data(&self, cover: &Cover, from: u64, to: u64, now: u64) -> Vec<String> {
        let alive = self.publication.iter().filter(|publication| {
            publication.record.until >= now
                && (from..=to).contains(&publication.record.at)
                && publication.cover.meets(cover)
        });
        alive
            .map(|publication| name(&publication.record.id))
            .collect()
    }

    /// The subscribers at a time, or at any time if it is `None`.
    pub(crate) fn subscribers(&self, cover: &Cover, at: Option<u64>, now: u64) -> Vec<String> {
        let alive = self.wishes.iter().filter(|wish| {
            !wish.ended
                && wish.record.until >= now
                && at.is_none_or(|at| wish.record.from <= at && at <= wish.record.until)
                && wish.cover.meets(cover)
        });
        alive.map(|wish| name(&wish.record.id)).collect()
    }

    /// Ends a subscription; returns whether it existed.
    pub(crate) fn unsubscribe(&mut self, wish: usize, now: u64) -> bool {
        let wish = &mut self.wishes[wish];
        let was = !wish.ended && wish.record.until >= now;
        wish.ended = true;
        was
    }

    /// The live publications that a subscription has matched.
    pub(crate) fn deliveries(&self, wish: usize, now: u64) -> Option<Vec<String>> {
        let ended = self.wishes[wish].ended || self.wishes[wish].record.until < now;
        let received = (0..self.publication.len()).filter(|&publication| {
            self.publication[publication].record.until >= now
                && self.met.contains(&(wish, publication))
                && !self.has_seen(wish, publication)
        });
        let received = received
            .map(|publication| name(&self.publication[publication].record.id))
            .collect();
        (!ended).then_some(received)
    }
}
