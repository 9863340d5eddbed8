//! The commands that return the changes of native collections.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rillbase_documents::id::{key, key_hash};
use rillbase_documents::operation::DocumentOperation;
use rillbase_query::bson::{Value, ValueRef};
use rillbase_query::ejson::parse_document;
use rillbase_storage_node::{Embedded, NodeCore, NodeServer, Speaker};

use crate::embedded_node::{
    NodeDirectory, NodeReply, TOKEN, administrator, command, define, execute, tenant, write,
};

const TENANT: &str = "01234567-89ab-cdef-0123-456789abcdef";
const TENANT_BYTES: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
const GOODS: &str = "10000000000000000000000000000001";
const GOODS_BYTES: u128 = 0x1000_0000_0000_0000_0000_0000_0000_0001;
const ORDERS: &str = "20000000-0000-0000-0000-000000000002";
const ORDERS_BYTES: u128 = 0x2000_0000_0000_0000_0000_0000_0000_0002;
const PROMPT: Duration = Duration::from_millis(100);
const WAIT: Duration = Duration::from_secs(1);

fn insert(id: i32, text: &str) -> DocumentOperation {
    let document = format!("{{\"_id\":{id},\"text\":\"{text}\"}}");
    let document = parse_document(document.as_bytes()).unwrap();
    DocumentOperation::insert(document.as_ref(), ValueRef::Null).unwrap()
}

fn delete(id: i32) -> DocumentOperation {
    DocumentOperation::delete(Value::Int32(id)).unwrap()
}

fn hash_of(id: i32) -> i32 {
    key_hash(&key(ValueRef::Int32(id)).unwrap())
}

/// An after-image, read as docs/formats/after-image.md specifies it.
#[derive(Debug, Clone, PartialEq)]
struct ReadImage {
    hash: i32,
    kind: u8,
    xid: u64,
    tenant: u128,
    collection: u128,
    version: u64,
    rules_version: u64,
    created: i64,
    written: i64,
    key: Vec<u8>,
    body: Vec<u8>,
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, behind) = rest.split_first_chunk().unwrap();
    *rest = behind;
    *bytes
}

impl ReadImage {
    fn read(hash: &[u8], image: &[u8]) -> Self {
        let mut rest = image;
        let [format, kind] = take(&mut rest);
        assert_eq!(format, 1);
        let mut read = Self {
            hash: String::from_utf8(hash.to_vec()).unwrap().parse().unwrap(),
            kind,
            xid: u64::from_be_bytes(take(&mut rest)),
            tenant: u128::from_be_bytes(take(&mut rest)),
            collection: u128::from_be_bytes(take(&mut rest)),
            version: u64::from_be_bytes(take(&mut rest)),
            rules_version: u64::from_be_bytes(take(&mut rest)),
            created: i64::from_be_bytes(take(&mut rest)),
            written: i64::from_be_bytes(take(&mut rest)),
            key: Vec::new(),
            body: Vec::new(),
        };
        let key_length = usize::from(u16::from_be_bytes(take(&mut rest)));
        let body_length = usize::try_from(u32::from_be_bytes(take(&mut rest))).unwrap();
        let (key, body) = rest.split_at(key_length);
        assert_eq!(body.len(), body_length);
        (read.key, read.body) = (key.to_vec(), body.to_vec());
        read
    }

    /// Collection, hash of the key, version, and whether it was deleted.
    fn shown(&self) -> (u128, i32, u64, bool) {
        let is_deleted = self.kind == 2;
        (self.collection, self.hash, self.version, is_deleted)
    }
}

/// A group of a reply.
#[derive(Debug)]
struct ReadGroup {
    hashes: Vec<i32>,
    images: Vec<ReadImage>,
}

impl ReadGroup {
    fn of(reply: &NodeReply) -> Self {
        let [size, hashes, images] = reply.items() else {
            panic!("{reply:?} is not a group");
        };
        let (hashes, remainder) = hashes.bytes().as_chunks();
        assert!(remainder.is_empty());
        let mut array = format!("*{}\r\n", 2 * size.number()).into_bytes();
        array.extend_from_slice(images.bytes());
        let images = NodeReply::parse(&array);
        let images = images.items().chunks(2);
        Self {
            hashes: hashes
                .iter()
                .map(|hash| i32::from_be_bytes(*hash))
                .collect(),
            images: images
                .map(|pair| ReadImage::read(pair[0].bytes(), pair[1].bytes()))
                .collect(),
        }
    }
}

/// A reply's position and groups.
fn part(reply: &NodeReply) -> (u64, Vec<ReadGroup>) {
    let groups = reply.value("groups").items();
    let position = reply.value("position").number();
    (position, groups.iter().map(ReadGroup::of).collect())
}

fn read(admin: &mut Speaker, after: u64) -> (u64, Vec<ReadGroup>) {
    part(&command(admin, &format!("RB.FEED.READ {after}")))
}

fn sequence(admin: &mut Speaker) -> u64 {
    command(admin, "RB.FEED.INFO").value("sequence").number()
}

#[test]
fn groups_have_the_images_of_writes_in_the_order_of_the_log() {
    let directory = NodeDirectory::new();
    let node = directory.open();
    let (mut admin, mut tenant) = (administrator(&node), tenant(&node, TENANT));
    define(&mut tenant, GOODS);
    define(&mut tenant, ORDERS);
    let start = sequence(&mut admin);
    write(&mut tenant, GOODS, vec![insert(1, "a")], true);
    write(
        &mut tenant,
        ORDERS,
        vec![insert(2, "b"), insert(3, "c")],
        false,
    );
    write(&mut tenant, GOODS, vec![insert(4, "d"), delete(1)], true);
    write(&mut tenant, ORDERS, vec![delete(2)], true);
    let (position, groups) = read(&mut admin, start);
    assert_eq!(position, sequence(&mut admin));
    let shown = groups.iter().map(|group| {
        let images = group.images.iter().map(ReadImage::shown);
        (group.hashes.clone(), images.collect())
    });
    let shown: Vec<(Vec<i32>, Vec<_>)> = shown.collect();
    let expected = [
        (
            Vec::new(),
            vec![
                (GOODS_BYTES, hash_of(1), 1, false),
                (ORDERS_BYTES, hash_of(2), 1, false),
                (ORDERS_BYTES, hash_of(3), 1, false),
            ],
        ),
        (
            vec![hash_of(1), hash_of(4)],
            vec![
                (GOODS_BYTES, hash_of(1), 2, true),
                (GOODS_BYTES, hash_of(4), 1, false),
            ],
        ),
        (Vec::new(), vec![(ORDERS_BYTES, hash_of(2), 2, true)]),
    ];
    assert_eq!(shown, expected);
    let images: Vec<&ReadImage> = groups.iter().flat_map(|group| &group.images).collect();
    assert!(images.iter().all(|image| image.tenant == TENANT_BYTES));
    assert!(images.iter().all(|image| image.rules_version == 4));
    assert!(images.is_sorted_by_key(|image| image.xid));
    assert_eq!(images[1].xid, images[2].xid);
    assert_eq!(images[0].written, images[0].created * 1000);
    assert_eq!(images[0].key, key(ValueRef::Int32(1)).unwrap());
    let stored = parse_document(b"{\"_id\":1,\"text\":\"a\"}").unwrap();
    assert_eq!(images[0].body, stored.as_bytes());
    let id = parse_document(b"{\"_id\":1}").unwrap();
    assert_eq!(images[3].body, id.as_bytes());
    assert_eq!(images[3].created, images[0].created);

    // Continued by the same feed, and by another one.
    let (last, groups) = read(&mut admin, position);
    assert!(groups.is_empty() && last >= position);
    write(&mut tenant, GOODS, vec![insert(5, "e")], true);
    for _ in 0..2 {
        let (_, groups) = read(&mut admin, position);
        assert_eq!(
            groups[0].images[0].shown(),
            (GOODS_BYTES, hash_of(5), 1, false)
        );
    }
    node.close().unwrap();
}

#[test]
fn groups_are_bounded_unless_their_documents_changed_as_one() {
    let directory = NodeDirectory::new();
    let node = directory.open();
    let (mut admin, mut tenant) = (administrator(&node), tenant(&node, TENANT));
    define(&mut tenant, GOODS);
    let start = sequence(&mut admin);
    let many = |first: i32| (first..first + 300).map(|id| insert(id, "a")).collect();
    write(&mut tenant, GOODS, many(0), false);
    write(&mut tenant, GOODS, many(300), true);
    let text = "x".repeat(200_000);
    let large = (600..603).map(|id| insert(id, &text)).collect();
    write(&mut tenant, GOODS, large, false);
    let (position, groups) = read(&mut admin, start);
    let sizes: Vec<usize> = groups.iter().map(|group| group.images.len()).collect();
    assert_eq!(sizes, [250, 50, 300, 2, 1]);
    let hashes: Vec<usize> = groups.iter().map(|group| group.hashes.len()).collect();
    assert_eq!(hashes, [0, 0, 300, 0, 0]);

    // In small parts: each ends with a batch.
    let (mut after, mut sizes) = (start, Vec::new());
    while after < position {
        let line = format!("RB.FEED.READ {after} RELEASE {after} BYTES 1");
        let (next, groups) = part(&command(&mut admin, &line));
        sizes.extend(groups.iter().map(|group| group.images.len()));
        after = next;
    }
    assert_eq!(sizes, [250, 50, 300, 2, 1]);
    node.close().unwrap();
}

#[test]
fn the_ages_of_changes_and_of_the_position_are_returned() {
    let directory = NodeDirectory::new();
    let node = directory.open();
    let (mut admin, mut tenant) = (administrator(&node), tenant(&node, TENANT));
    define(&mut tenant, GOODS);
    let start = sequence(&mut admin);
    for id in 0..3 {
        write(&mut tenant, GOODS, vec![insert(id, "a")], false);
        std::thread::sleep(Duration::from_millis(30));
    }
    let ages = |reply: &NodeReply| {
        let age = |name: &str| reply.value(name).number();
        (age("oldest_ms"), age("behind_ms"))
    };
    let all = command(&mut admin, &format!("RB.FEED.READ {start}"));
    let (oldest, behind) = ages(&all);
    assert!(oldest >= 90 && behind == 0, "{oldest} {behind}");
    let first = command(&mut admin, &format!("RB.FEED.READ {start} BYTES 1"));
    let (oldest, behind) = ages(&first);
    assert!(oldest >= 90 && behind >= 90, "{oldest} {behind}");
    let position = all.value("position").number();
    let empty = command(&mut admin, &format!("RB.FEED.READ {position}"));
    assert_eq!(ages(&empty), (0, 0));
    node.close().unwrap();
}

#[test]
fn a_batch_with_very_large_images_is_divided() {
    let directory = NodeDirectory::new();
    let node = directory.open();
    let (mut admin, mut tenant) = (administrator(&node), tenant(&node, TENANT));
    define(&mut tenant, GOODS);
    let start = sequence(&mut admin);
    let text = "x".repeat(12 << 20);
    let large = (0..3).map(|id| insert(id, &text)).collect();
    write(&mut tenant, GOODS, large, true);
    let (_, groups) = read(&mut admin, start);
    assert_eq!(groups.len(), 3);
    assert!(
        groups
            .iter()
            .all(|group| group.images.len() == 1 && group.hashes.is_empty())
    );
    node.close().unwrap();
}

#[test]
fn documents_of_collections_that_servers_do_not_have_are_skipped() {
    let directory = NodeDirectory::new();
    let mut node = directory.open();
    let (mut admin, mut owner) = (administrator(&node), tenant(&node, TENANT));
    let mut other = tenant(&node, "other");
    let start = sequence(&mut admin);
    for collection in [GOODS, ORDERS, "local"] {
        define(&mut owner, collection);
        write(
            &mut owner,
            collection,
            vec![insert(1, "a"), insert(2, "b")],
            true,
        );
    }
    define(&mut other, GOODS);
    write(&mut other, GOODS, vec![insert(3, "c")], true);
    assert_eq!(read(&mut admin, start).1.len(), 2);
    command(&mut owner, &format!("RB.COL.DROP {GOODS}"));
    let collections = |admin: &mut Speaker| {
        let (_, groups) = read(admin, start);
        let images = groups.iter().flat_map(|group| &group.images);
        images.map(|image| image.collection).collect::<Vec<u128>>()
    };
    assert_eq!(collections(&mut admin), [ORDERS_BYTES; 2]);
    drop((admin, owner, other));
    node.close().unwrap();

    node = directory.open();
    let mut admin = administrator(&node);
    assert_eq!(collections(&mut admin), [ORDERS_BYTES; 2]);
    command(&mut admin, &format!("RB.NAMESPACE.DROP {TENANT}"));
    assert!(read(&mut admin, start).1.is_empty());
    node.close().unwrap();
}

#[test]
fn invalid_requests_are_rejected() {
    let directory = NodeDirectory::new();
    let node = directory.open();
    let mut admin = administrator(&node);
    let beyond = (sequence(&mut admin) + 1).to_string();
    let cases: [(&[&str], &str); 4] = [
        (&[&beyond], "TRUNCATED"),
        (&["-1"], "ERR"),
        (&["0", "RELEASE"], "ERR"),
        (&["0", "SLOWLY", "1"], "ERR"),
    ];
    for (words, code) in cases {
        let mut all: Vec<&[u8]> = vec![b"RB.FEED.READ"];
        all.extend(words.iter().map(|word| word.as_bytes()));
        let reply = execute(&mut admin, &all);
        assert!(
            matches!(&reply, NodeReply::Error(text) if text.starts_with(code)),
            "{words:?}: {reply:?}"
        );
    }
    let mut tenant = tenant(&node, TENANT);
    for words in [&[&b"RB.FEED.INFO"[..]][..], &[b"RB.FEED.READ", b"0"]] {
        let refused = execute(&mut tenant, words);
        assert!(matches!(refused, NodeReply::Error(text) if text.starts_with("NOPERM")));
    }
    node.close().unwrap();
}

/// Reads in a thread until there are changes, and returns when the reply was received.
fn blocked_read(
    node: &Arc<Embedded>,
    after: u64,
    milliseconds: u64,
) -> std::thread::JoinHandle<(usize, Instant)> {
    let mut admin = administrator(node);
    let line = format!("RB.FEED.READ {after} BLOCK {milliseconds}");
    let reader = std::thread::spawn(move || {
        let (_, groups) = part(&command(&mut admin, &line));
        (groups.len(), Instant::now())
    });
    std::thread::sleep(PROMPT);
    reader
}

#[test]
fn a_wait_is_over_after_a_write_but_not_after_a_publication() {
    let directory = NodeDirectory::new();
    let node = directory.open();
    let (mut admin, mut tenant) = (administrator(&node), tenant(&node, TENANT));
    define(&mut tenant, GOODS);
    command(&mut tenant, "RB.TOPIC.CREATE news");
    let after = sequence(&mut admin);
    let started = Instant::now();
    let reader = blocked_read(&node, after, 400);
    command(&mut tenant, "RB.PUB news ID 1");
    let (groups, replied) = reader.join().unwrap();
    assert_eq!(groups, 0);
    assert!(replied - started >= Duration::from_millis(400));

    let reader = blocked_read(&node, after, 1000);
    command(&mut tenant, "RB.PUB news ID 2");
    let written = Instant::now();
    write(&mut tenant, GOODS, vec![insert(1, "a")], true);
    let (groups, replied) = reader.join().unwrap();
    assert_eq!(groups, 1);
    assert!(replied - written < PROMPT);
    node.close().unwrap();
}

/// The previous run and its sequence.
fn previous(info: &NodeReply) -> Option<(String, u64)> {
    let run = info.value("previous_run");
    let sequence = info.value("previous_sequence");
    if *run == NodeReply::Null {
        assert_eq!(*sequence, NodeReply::Null);
        return None;
    }
    let run = String::from_utf8(run.bytes().to_vec()).unwrap();
    Some((run, sequence.number()))
}

fn run(info: &NodeReply) -> String {
    let run = String::from_utf8(info.value("run").bytes().to_vec()).unwrap();
    assert_eq!(run.len(), 32);
    assert!(run.bytes().all(|byte| byte.is_ascii_hexdigit()));
    run
}

#[test]
fn a_run_is_named_by_the_next_one_if_it_was_closed_cleanly() {
    let directory = NodeDirectory::new();
    let info = |node: &Arc<Embedded>| command(&mut administrator(node), "RB.FEED.INFO");
    let node = directory.open();
    let first = info(&node);
    assert_eq!(previous(&first), None);
    let mut tenant = tenant(&node, TENANT);
    define(&mut tenant, GOODS);
    write(&mut tenant, GOODS, vec![insert(1, "a")], true);
    drop(tenant);
    let last = info(&node).value("sequence").number();
    node.close().unwrap();

    let node = directory.open();
    let second = info(&node);
    assert_ne!(run(&second), run(&first));
    assert_eq!(previous(&second), Some((run(&first), last)));
    assert!(read(&mut administrator(&node), last).1.is_empty());
    assert_eq!(read(&mut administrator(&node), 0).1.len(), 1);
    // It does not end cleanly.
    drop(node);

    let node = directory.open();
    let third = info(&node);
    assert_ne!(run(&third), run(&second));
    assert_eq!(previous(&third), None);
    node.close().unwrap();
    let node = directory.open();
    let previous = previous(&info(&node));
    assert_eq!(previous.map(|(id, _)| id), Some(run(&third)));
    node.close().unwrap();
}

/// Whether the previous run ended cleanly.
fn was_closed_cleanly(directory: &NodeDirectory) -> bool {
    let node = directory.open();
    let info = command(&mut administrator(&node), "RB.FEED.INFO");
    node.close().unwrap();
    previous(&info).is_some()
}

#[test]
fn a_node_closes_cleanly_while_a_read_waits() {
    let directory = NodeDirectory::new();
    let node = directory.open();
    let after = sequence(&mut administrator(&node));
    let reader = blocked_read(&node, after, 1000);
    let started = Instant::now();
    node.close().unwrap();
    assert!(started.elapsed() < WAIT / 2);
    reader.join().unwrap();
    assert!(was_closed_cleanly(&directory));
}

#[test]
fn a_server_stops_cleanly_while_a_read_waits() {
    let directory = NodeDirectory::new();
    let node = NodeCore::open(directory.options()).unwrap();
    let server = NodeServer::start(node, ([127, 0, 0, 1], 0).into(), None).unwrap();
    let mut client = TcpStream::connect(server.address()).unwrap();
    let lines = format!("AUTH admin {TOKEN}\nRB.FEED.READ 0 BLOCK 1000\n");
    client.write_all(lines.as_bytes()).unwrap();
    client.set_read_timeout(Some(PROMPT)).unwrap();
    let mut reply = [0; 16];
    assert_eq!(client.read(&mut reply).unwrap(), "+OK\r\n".len());
    assert!(client.read(&mut reply).is_err(), "the second command waits");
    let started = Instant::now();
    server.stopper()();
    server.wait().unwrap();
    assert!(started.elapsed() < WAIT);
    assert!(was_closed_cleanly(&directory));
}
