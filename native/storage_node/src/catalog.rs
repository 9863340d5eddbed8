//! Namespaces, their topics and their collections: read from memory, stored in a keyspace.
//!
//! ```text
//! key   := 'next'                     the next number of a namespace, topic or collection
//!        | 'n/' name                  a namespace: number, SHA-256 of its token in hex
//!        | 't/' namespace '/' name    a topic: number, retention in ms, kind as clients write it
//!        | 'c/' namespace '/' name    a collection: number
//! ```
//!
//! Values are words separated by spaces. Numbers are never reused, so any remains of a dropped
//! topic belong to none.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use rillbase_engine::{Db, Durability, Keyspace, KeyspaceOptions, Millis, WriteBatch};
use sha2::{Digest, Sha256};

use crate::name;
use crate::refusal::{CommandRefusal, Result};
use crate::topic::{TopicEntry, TopicKind};
use crate::words::Words;

/// The maximum number of topics in a namespace.
const MAX_TOPICS: usize = 10_000;
/// The maximum number of collections in a namespace.
const MAX_COLLECTIONS: usize = 10_000;
const NEXT: &[u8] = b"next";

/// The stored hash of a token.
pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(token: &[u8]) -> Hash {
    Sha256::digest(token).into()
}

/// A tenant's own part of the node.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) number: u64,
    hash: RwLock<Hash>,
    /// Incremented when connections that authenticated earlier must close.
    generation: AtomicU64,
    topics: RwLock<BTreeMap<String, Arc<TopicEntry>>>,
    collections: RwLock<BTreeMap<String, u64>>,
}

impl Namespace {
    /// What a connection with the token remembers; `None` for a different token.
    pub(crate) fn admit(&self, token: &[u8]) -> Option<u64> {
        let generation = self.generation();
        (*self.hash.read() == hash(token)).then_some(generation)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn revoke(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn topic(&self, name: &str) -> Result<Arc<TopicEntry>> {
        let topic = self.topics.read().get(name).cloned();
        topic.ok_or_else(|| CommandRefusal::new("NO_TOPIC", "the topic does not exist"))
    }

    pub(crate) fn topics(&self) -> Vec<Arc<TopicEntry>> {
        self.topics.read().values().cloned().collect()
    }

    /// The number of a collection.
    pub(crate) fn collection(&self, name: &str) -> Result<u64> {
        let number = self.collections.read().get(name).copied();
        number.ok_or_else(|| CommandRefusal::new("NO_COLLECTION", "the collection does not exist"))
    }

    /// The numbers of all collections.
    pub(crate) fn collections(&self) -> Vec<u64> {
        self.collections.read().values().copied().collect()
    }
}

/// What identifies a collection outside the node: servers name namespaces by their tenants' UUIDs,
/// and collections by their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CollectionIdentity {
    pub(crate) tenant: [u8; 16],
    pub(crate) collection: [u8; 16],
}

impl CollectionIdentity {
    /// `None` if one of the names is not a UUID.
    fn of(namespace: &str, collection: &str) -> Option<Self> {
        Some(Self {
            tenant: parse_uuid(namespace)?,
            collection: parse_uuid(collection)?,
        })
    }
}

/// All namespaces.
#[derive(Debug)]
pub(crate) struct NamespaceCatalog {
    db: Arc<Db>,
    keyspace: Keyspace,
    /// The next number; locked during any change.
    next: Mutex<u64>,
    namespaces: RwLock<BTreeMap<String, Arc<Namespace>>>,
    /// By the collection's number.
    identities: RwLock<HashMap<u64, CollectionIdentity>>,
}

impl NamespaceCatalog {
    pub(crate) fn open(db: &Arc<Db>) -> Result<Self> {
        let keyspace = db.create_keyspace("catalog", KeyspaceOptions::default())?;
        let next = match db.get(&keyspace, NEXT)? {
            Some(value) => numbers(&value).next().ok_or_else(malformed)?,
            None => 1,
        };
        let mut namespaces = BTreeMap::new();
        let mut identities = HashMap::new();
        let mut scan = db.scan_prefix(&keyspace, b"n/", None)?;
        scan.first()?;
        while scan.is_valid() {
            let name = text(scan.key().get(2..).unwrap_or_default())?;
            let namespace = read_namespace(name, text(scan.value())?).ok_or_else(malformed)?;
            *namespace.topics.write() = read_topics(db, &keyspace, namespace.number)?;
            let collections = read_collections(db, &keyspace, namespace.number)?;
            identities.extend(collections.iter().filter_map(|(collection, number)| {
                Some((*number, CollectionIdentity::of(name, collection)?))
            }));
            *namespace.collections.write() = collections;
            namespaces.insert(name.to_owned(), Arc::new(namespace));
            scan.advance()?;
        }
        Ok(Self {
            db: Arc::clone(db),
            keyspace,
            next: Mutex::new(next),
            namespaces: RwLock::new(namespaces),
            identities: RwLock::new(identities),
        })
    }

    pub(crate) fn namespace(&self, name: &str) -> Result<Arc<Namespace>> {
        let namespace = self.namespaces.read().get(name).cloned();
        namespace.ok_or_else(|| CommandRefusal::new("NO_NAMESPACE", "the namespace does not exist"))
    }

    pub(crate) fn namespaces(&self) -> Vec<Arc<Namespace>> {
        self.namespaces.read().values().cloned().collect()
    }

    /// Creates a namespace, or returns the existing one if its token is the same.
    pub(crate) fn create(&self, name: &str, token: &[u8]) -> Result<()> {
        name::check(name)?;
        check_token(token)?;
        let mut next = self.next.lock();
        if let Ok(namespace) = self.namespace(name) {
            return match namespace.admit(token) {
                Some(_) => Ok(()),
                None => Err(exists("the namespace exists with another token")),
            };
        }
        let namespace = Namespace {
            name: name.to_owned(),
            number: *next,
            hash: RwLock::new(hash(token)),
            generation: AtomicU64::new(0),
            topics: RwLock::default(),
            collections: RwLock::default(),
        };
        let mut batch = WriteBatch::new();
        batch.put(&self.keyspace, NEXT, (*next + 1).to_string().as_bytes());
        self.put_namespace(&mut batch, &namespace);
        self.db.write(batch, Durability::Sync)?;
        *next += 1;
        let mut namespaces = self.namespaces.write();
        namespaces.insert(name.to_owned(), Arc::new(namespace));
        Ok(())
    }

    /// Replaces the token of a namespace; connections that used the old one must close.
    pub(crate) fn rotate(&self, name: &str, token: &[u8]) -> Result<()> {
        check_token(token)?;
        let _changing = self.next.lock();
        let namespace = self.namespace(name)?;
        let before = std::mem::replace(&mut *namespace.hash.write(), hash(token));
        let mut batch = WriteBatch::new();
        self.put_namespace(&mut batch, &namespace);
        if let Err(error) = self.db.write(batch, Durability::Sync) {
            *namespace.hash.write() = before;
            return Err(error.into());
        }
        namespace.revoke();
        Ok(())
    }

    fn put_namespace(&self, batch: &mut WriteBatch, namespace: &Namespace) {
        let mut value = format!("{} ", namespace.number);
        for byte in *namespace.hash.read() {
            // Writing to a string does not fail.
            let _ = write!(value, "{byte:02x}");
        }
        batch.put(
            &self.keyspace,
            &namespace_key(&namespace.name),
            value.as_bytes(),
        );
    }

    /// Removes a namespace and its topics; the caller deletes their data.
    pub(crate) fn drop_namespace(&self, name: &str) -> Result<Arc<Namespace>> {
        let _changing = self.next.lock();
        let namespace = self.namespace(name)?;
        let mut batch = WriteBatch::new();
        batch.delete(&self.keyspace, &namespace_key(name));
        for topic in namespace.topics() {
            batch.delete(&self.keyspace, &topic_key(namespace.number, &topic.name));
        }
        for name in namespace.collections.read().keys() {
            batch.delete(&self.keyspace, &collection_key(namespace.number, name));
        }
        self.db.write(batch, Durability::Sync)?;
        self.namespaces.write().remove(name);
        let mut identities = self.identities.write();
        for number in namespace.collections.read().values() {
            identities.remove(number);
        }
        drop(identities);
        namespace.revoke();
        Ok(namespace)
    }

    /// Creates a topic, or returns the existing one if its kind is the same.
    pub(crate) fn create_topic(
        &self,
        namespace: &Namespace,
        name: &str,
        (kind, retention): (TopicKind, Millis),
    ) -> Result<()> {
        name::check(name)?;
        let mut next = self.next.lock();
        if let Ok(existing) = namespace.topic(name) {
            return if (existing.kind, existing.retention) == (kind, retention) {
                Ok(())
            } else {
                Err(exists("the topic exists with another kind or retention"))
            };
        }
        if namespace.topics.read().len() >= MAX_TOPICS {
            return Err(CommandRefusal::new(
                "TOO_MANY",
                "a namespace may have at most 10,000 topics",
            ));
        }
        let topic = TopicEntry {
            name: name.to_owned(),
            number: *next,
            kind,
            retention,
        };
        let mut batch = WriteBatch::new();
        batch.put(&self.keyspace, NEXT, (*next + 1).to_string().as_bytes());
        self.write_topic(batch, namespace, topic)?;
        *next += 1;
        Ok(())
    }

    pub(crate) fn alter_topic(
        &self,
        namespace: &Namespace,
        name: &str,
        retention: Millis,
    ) -> Result<()> {
        let _changing = self.next.lock();
        let existing = namespace.topic(name)?;
        let topic = TopicEntry {
            retention,
            ..TopicEntry::clone(&existing)
        };
        self.write_topic(WriteBatch::new(), namespace, topic)
    }

    fn write_topic(
        &self,
        mut batch: WriteBatch,
        namespace: &Namespace,
        topic: TopicEntry,
    ) -> Result<()> {
        let value = format!("{} {} {}", topic.number, topic.retention, topic.kind.text());
        let key = topic_key(namespace.number, &topic.name);
        batch.put(&self.keyspace, &key, value.as_bytes());
        self.db.write(batch, Durability::Sync)?;
        let mut topics = namespace.topics.write();
        topics.insert(topic.name.clone(), Arc::new(topic));
        Ok(())
    }

    /// Removes a topic; the caller deletes its data.
    pub(crate) fn drop_topic(&self, namespace: &Namespace, name: &str) -> Result<Arc<TopicEntry>> {
        let _changing = self.next.lock();
        let topic = namespace.topic(name)?;
        let mut batch = WriteBatch::new();
        batch.delete(&self.keyspace, &topic_key(namespace.number, name));
        self.db.write(batch, Durability::Sync)?;
        namespace.topics.write().remove(name);
        Ok(topic)
    }
}

impl NamespaceCatalog {
    /// The number of a collection, which is created if it does not exist.
    pub(crate) fn create_collection(&self, namespace: &Namespace, name: &str) -> Result<u64> {
        name::check(name)?;
        let mut next = self.next.lock();
        if let Ok(number) = namespace.collection(name) {
            return Ok(number);
        }
        if namespace.collections.read().len() >= MAX_COLLECTIONS {
            return Err(CommandRefusal::new(
                "TOO_MANY",
                "a namespace may have at most 10,000 collections",
            ));
        }
        let number = *next;
        let mut batch = WriteBatch::new();
        batch.put(&self.keyspace, NEXT, (number + 1).to_string().as_bytes());
        let key = collection_key(namespace.number, name);
        batch.put(&self.keyspace, &key, number.to_string().as_bytes());
        self.db.write(batch, Durability::Sync)?;
        *next += 1;
        if let Some(identity) = CollectionIdentity::of(&namespace.name, name) {
            self.identities.write().insert(number, identity);
        }
        let mut collections = namespace.collections.write();
        collections.insert(name.to_owned(), number);
        Ok(number)
    }

    /// The identity of a collection; `None` if it was dropped, or is not named by UUIDs.
    pub(crate) fn identity(&self, collection: u64) -> Option<CollectionIdentity> {
        self.identities.read().get(&collection).copied()
    }

    /// Removes a collection; the caller deletes its data.
    pub(crate) fn drop_collection(&self, namespace: &Namespace, name: &str) -> Result<()> {
        let _changing = self.next.lock();
        let mut batch = WriteBatch::new();
        batch.delete(&self.keyspace, &collection_key(namespace.number, name));
        self.db.write(batch, Durability::Sync)?;
        if let Some(number) = namespace.collections.write().remove(name) {
            self.identities.write().remove(&number);
        }
        Ok(())
    }
}

/// A UUID, with or without hyphens.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let has_hyphens = text.len() == 36;
    let mut digits = Vec::with_capacity(32);
    for (place, byte) in text.bytes().enumerate() {
        if has_hyphens && HYPHENS.contains(&place) {
            if byte != b'-' {
                return None;
            }
        } else {
            digits.push(u8::try_from(char::from(byte).to_digit(16)?).ok()?);
        }
    }
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => high << 4 | low,
        _ => 0,
    });
    let uuid = (digits.len() == 32).then(|| bytes.collect::<Vec<u8>>())?;
    uuid.try_into().ok()
}

fn namespace_key(name: &str) -> Vec<u8> {
    format!("n/{name}").into_bytes()
}

fn topic_key(namespace: u64, name: &str) -> Vec<u8> {
    format!("t/{namespace}/{name}").into_bytes()
}

fn collection_key(namespace: u64, name: &str) -> Vec<u8> {
    format!("c/{namespace}/{name}").into_bytes()
}

fn read_collections(db: &Db, keyspace: &Keyspace, namespace: u64) -> Result<BTreeMap<String, u64>> {
    let mut collections = BTreeMap::new();
    let prefix = collection_key(namespace, "");
    let mut scan = db.scan_prefix(keyspace, &prefix, None)?;
    scan.first()?;
    while scan.is_valid() {
        let name = text(scan.key().get(prefix.len()..).unwrap_or_default())?;
        let number = numbers(scan.value()).next().ok_or_else(malformed)?;
        collections.insert(name.to_owned(), number);
        scan.advance()?;
    }
    Ok(collections)
}

fn read_namespace(name: &str, value: &str) -> Option<Namespace> {
    let (number, hex) = value.split_once(' ')?;
    let mut hash = Hash::default();
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(Namespace {
        name: name.to_owned(),
        number: number.parse().ok()?,
        hash: RwLock::new(hash),
        generation: AtomicU64::new(0),
        topics: RwLock::default(),
        collections: RwLock::default(),
    })
}

fn read_topics(
    db: &Db,
    keyspace: &Keyspace,
    namespace: u64,
) -> Result<BTreeMap<String, Arc<TopicEntry>>> {
    let mut topics = BTreeMap::new();
    let prefix = topic_key(namespace, "");
    let mut scan = db.scan_prefix(keyspace, &prefix, None)?;
    scan.first()?;
    while scan.is_valid() {
        let name = text(scan.key().get(prefix.len()..).unwrap_or_default())?;
        let values: Vec<u64> = numbers(scan.value()).take(2).collect();
        let [number, retention] = *values.as_slice() else {
            return Err(malformed());
        };
        let words: Vec<&[u8]> = scan.value().split(|&byte| byte == b' ').skip(2).collect();
        let topic = TopicEntry {
            name: name.to_owned(),
            number,
            kind: TopicKind::parse(&mut Words::new(&words))?,
            retention,
        };
        topics.insert(name.to_owned(), Arc::new(topic));
        scan.advance()?;
    }
    Ok(topics)
}

/// The numbers at the start of words separated by spaces.
fn numbers(value: &[u8]) -> impl Iterator<Item = u64> {
    let words = value.split(|&byte| byte == b' ');
    words.map_while(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| malformed())
}

fn check_token(token: &[u8]) -> Result<()> {
    if token.len() >= 16 {
        return Ok(());
    }
    Err(CommandRefusal::syntax(
        "a token must have at least 16 bytes",
    ))
}

fn malformed() -> CommandRefusal {
    CommandRefusal::new(
        "CORRUPTION",
        "an entry of the catalog is malformed although its checksum matches",
    )
}

fn exists(text: &'static str) -> CommandRefusal {
    CommandRefusal::new("EXISTS", text)
}

#[cfg(test)]
mod tests {
    use super::parse_uuid;

    #[test]
    fn uuids_have_hyphens_in_their_places_or_none() {
        let bytes = [
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
            0xcd, 0xef,
        ];
        let shown = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(parse_uuid(shown), Some(bytes));
        assert_eq!(parse_uuid(&shown.replace('-', "")), Some(bytes));
        for text in [
            "",
            "goods",
            "0123456789ab-cdef-0123-4567-89abcdef",
            "01234567-89ab-cdef-0123-456789abcde",
            "0123456789abcdef0123456789abcdef0",
            "0123456789abcdef0123456789abcdeg",
        ] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }
}
