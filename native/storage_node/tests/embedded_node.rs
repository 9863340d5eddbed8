//! A node in a directory that is removed afterwards, and its replies as values.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rillbase_documents::operation::DocumentOperation;
use rillbase_documents::operations::DocumentOperations;
use rillbase_documents::plan::{NamedTarget, WriteRequest};
use rillbase_documents::precondition::Precondition;
use rillbase_engine::Durability;
use rillbase_storage_node::{Embedded, NodeOptions, Speaker};

pub(crate) const TOKEN: &str = "the-administrators-token";
const TENANT_TOKEN: &str = "the-token-of-a-tenant";

/// The directory of a node.
pub(crate) struct NodeDirectory(PathBuf);

impl NodeDirectory {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rillbase-node-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(crate) fn options(&self) -> NodeOptions {
        NodeOptions {
            durability: Durability::Buffered,
            threads: 2,
            ..NodeOptions::new(&self.0, TOKEN)
        }
    }

    pub(crate) fn open(&self) -> Arc<Embedded> {
        Embedded::open(self.options()).unwrap()
    }
}

impl Drop for NodeDirectory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A reply of version 3; maps are arrays of names and values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeReply {
    Null,
    Number(u64),
    Bytes(Vec<u8>),
    Array(Vec<NodeReply>),
    Error(String),
}

impl NodeReply {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut rest = bytes;
        let reply = Self::take(&mut rest);
        assert!(rest.is_empty());
        reply
    }

    fn take(rest: &mut &[u8]) -> Self {
        let end = rest.iter().position(|byte| *byte == b'\r').unwrap();
        let line = String::from_utf8(rest[1..end].to_vec()).unwrap();
        let kind = rest[0];
        *rest = &rest[end + 2..];
        let mut items = |count: usize| (0..count).map(|_| Self::take(rest)).collect();
        match kind {
            b'_' => Self::Null,
            b':' => Self::Number(line.parse().unwrap()),
            b'+' => Self::Bytes(line.into_bytes()),
            b'-' => Self::Error(line),
            b'*' => Self::Array(items(line.parse().unwrap())),
            b'%' => Self::Array(items(2 * line.parse::<usize>().unwrap())),
            b'$' => {
                let length: usize = line.parse().unwrap();
                let (bytes, behind) = rest.split_at(length);
                *rest = &behind[2..];
                Self::Bytes(bytes.to_vec())
            }
            kind => panic!("{kind} begins no reply"),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("{other:?} is not a number"),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            other => panic!("{other:?} is not bytes"),
        }
    }

    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            other => panic!("{other:?} is not an array"),
        }
    }

    /// The value of a map.
    pub(crate) fn value(&self, name: &str) -> &Self {
        let pairs = self.items().chunks(2);
        let mut named = pairs.filter(|pair| pair[0].bytes() == name.as_bytes());
        &named.next().unwrap()[1]
    }
}

pub(crate) fn execute(speaker: &mut Speaker, words: &[&[u8]]) -> NodeReply {
    NodeReply::parse(&speaker.execute(words).unwrap())
}

/// Executes a command of words without spaces, which must succeed.
pub(crate) fn command(speaker: &mut Speaker, line: &str) -> NodeReply {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let reply = execute(speaker, &words);
    assert!(!matches!(reply, NodeReply::Error(_)), "{line}: {reply:?}");
    reply
}

pub(crate) fn administrator(node: &Arc<Embedded>) -> Speaker {
    let mut speaker = node.speaker().unwrap();
    command(&mut speaker, &format!("AUTH admin {TOKEN}"));
    speaker
}

/// A client of a namespace, which is created.
pub(crate) fn tenant(node: &Arc<Embedded>, name: &str) -> Speaker {
    let create = format!("RB.NAMESPACE.CREATE {name} {TENANT_TOKEN}");
    command(&mut administrator(node), &create);
    let mut speaker = node.speaker().unwrap();
    command(&mut speaker, &format!("AUTH {name} {TENANT_TOKEN}"));
    speaker
}

/// Defines a collection without indexes.
pub(crate) fn define(speaker: &mut Speaker, collection: &str) {
    let definition = "{\"write_version\":1,\"rules_version\":4}";
    command(speaker, &format!("RB.COL.DEFINE {collection} {definition}"));
}

/// Writes to one collection; nothing may be rejected.
pub(crate) fn write(
    speaker: &mut Speaker,
    collection: &str,
    operations: Vec<DocumentOperation>,
    atomic: bool,
) {
    let operations = operations.into_iter().map(|operation| {
        Ok(DocumentOperation {
            collection: Some(collection.to_owned()),
            ..operation
        })
    });
    let request = WriteRequest {
        operations: DocumentOperations::new(operations.collect()),
        targets: vec![NamedTarget {
            name: collection.to_owned(),
            collection: 0,
            access: None,
        }],
        atomic,
        expected: Precondition::default(),
    };
    let words: [&[u8]; 4] = [
        b"RB.COL.WRITE",
        &request.encode(),
        collection.as_bytes(),
        b"1",
    ];
    let reply = execute(speaker, &words);
    let result = rillbase_documents::write_format::decode_result(reply.bytes()).unwrap();
    assert!(result.unwrap().iter().all(Result::is_ok));
}
