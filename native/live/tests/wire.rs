//! The encoding of messages round-trips, and nothing else is accepted.

use proptest::collection::vec;
use proptest::prelude::*;
use rillbase_live::message::{
    AfterImage, Cause, EmptyResult, FencingToken, FetchId, FetchedDocument, Foreign, ImageContent,
    LookupSide, NodeEvent, NodeRequest, Notification, NotificationSource, QueryDefinition,
    QueryHash, RemovalReason, ResultRow, StreamId, StreamTick, WindowChange, WriteEntry,
};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_live::wire::request::ACTIVATION_OFFSET;
use rillbase_live::wire::{notification, request, write_entry};

fn bytes() -> impl Strategy<Value = std::sync::Arc<[u8]>> {
    vec(any::<u8>(), 0..40).prop_map(Into::into)
}

fn hash() -> impl Strategy<Value = QueryHash> {
    any::<[u8; 16]>().prop_map(QueryHash)
}

fn snapshot() -> impl Strategy<Value = PgSnapshot> {
    (any::<u64>(), any::<u64>(), vec(any::<u64>(), 0..4)).prop_map(|(xmin, xmax, mut running)| {
        running.sort_unstable();
        PgSnapshot {
            xmin,
            xmax,
            running,
        }
    })
}

fn tick() -> impl Strategy<Value = StreamTick> {
    (
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
        any::<[u8; 16]>(),
        snapshot(),
    )
        .prop_map(
            |(time_us, count, token, incarnation, snapshot)| StreamTick {
                time_us,
                count,
                token: FencingToken(token),
                incarnation,
                snapshot,
            },
        )
}

fn parts() -> impl Strategy<Value = std::sync::Arc<[u16]>> {
    vec(any::<u16>(), 0..4).prop_map(Into::into)
}

fn image() -> impl Strategy<Value = AfterImage> {
    let content = prop_oneof![
        bytes().prop_map(ImageContent::Document),
        bytes().prop_map(ImageContent::Deleted),
        Just(ImageContent::Superseded),
    ];
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<i64>());
    let names = (any::<[u8; 16]>(), any::<[u8; 16]>());
    (numbers, names, any::<i64>(), bytes(), content, parts()).prop_map(
        |((xid, version, rules_version, written_us), names, created_ms, key, content, parts)| {
            AfterImage {
                xid,
                tenant: names.0,
                collection: names.1,
                version,
                rules_version,
                created_ms,
                written_us,
                key,
                content,
                parts,
            }
        },
    )
}

fn row() -> impl Strategy<Value = ResultRow> {
    (bytes(), any::<u64>(), any::<i64>(), any::<i64>(), bytes()).prop_map(
        |(key, version, created_ms, updated_ms, body)| ResultRow {
            key,
            version,
            created_ms,
            updated_ms,
            body,
        },
    )
}

fn definition() -> impl Strategy<Value = QueryDefinition> {
    let names = (hash(), any::<[u8; 16]>(), any::<[u8; 16]>());
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>());
    (
        names,
        numbers,
        any::<Option<u32>>(),
        any::<bool>(),
        (
            bytes(),
            bytes(),
            bytes(),
            (bytes(), vec(side(), 0..3), bytes()),
        ),
    )
        .prop_map(
            |(names, numbers, limit, sorted, (filter, sort, group, (lookups, sides, rule)))| {
                let joins = group.is_empty() && !lookups.is_empty();
                let sides = if joins { sides } else { Vec::new() };
                let lookups = if joins { lookups } else { [].into() };
                QueryDefinition {
                    hash: names.0,
                    activation: numbers.0,
                    tenant: names.1,
                    collection: names.2,
                    rules_version: numbers.1,
                    filter,
                    sort,
                    offset: numbers.2,
                    limit,
                    sorted: sorted || !group.is_empty() || joins,
                    slack: numbers.3,
                    group,
                    lookups,
                    sides: sides.into(),
                    rule,
                }
            },
        )
}

fn side() -> impl Strategy<Value = LookupSide> {
    (any::<[u8; 16]>(), any::<u64>(), bytes())
        .prop_map(|(collection, rules, filter)| LookupSide::new([7; 16], collection, rules, filter))
}

fn place() -> impl Strategy<Value = StreamId> {
    (any::<u64>(), any::<u64>()).prop_map(|(ms, number)| StreamId { ms, number })
}

fn fetch_id() -> impl Strategy<Value = FetchId> {
    (hash(), any::<[u64; 3]>()).prop_map(|(query, [activation, token, number])| FetchId {
        query,
        activation,
        token: FencingToken(token),
        number,
    })
}

fn keys() -> impl Strategy<Value = Vec<Vec<std::sync::Arc<[u8]>>>> {
    vec(vec(bytes(), 0..3), 0..3)
}

fn fetched() -> impl Strategy<Value = FetchedDocument> {
    let body = proptest::option::of(bytes());
    (bytes(), any::<u64>(), any::<u64>(), body).prop_map(|(key, version, xid, body)| {
        FetchedDocument {
            key,
            version,
            xid,
            body,
        }
    })
}

fn any_request() -> impl Strategy<Value = NodeRequest> {
    let register = (
        definition(),
        vec(place(), 0..4),
        snapshot(),
        vec(row(), 0..4),
        any::<(bool, bool)>(),
    )
        .prop_map(
            |(query, positions, snapshot, rows, flags)| NodeRequest::Register {
                foreign: query
                    .sides
                    .iter()
                    .map(|_| Foreign {
                        rows: rows.clone(),
                        complete: flags.1,
                    })
                    .collect(),
                query,
                positions,
                snapshot,
                rows,
                complete: flags.0,
                renewal: flags.1,
            },
        );
    prop_oneof![
        register,
        (hash(), any::<u64>())
            .prop_map(|(query, activation)| NodeRequest::Expire { query, activation }),
        (fetch_id(), vec(vec(fetched(), 0..3), 0..3))
            .prop_map(|(fetch, documents)| NodeRequest::Fetched { fetch, documents }),
    ]
}

fn change() -> impl Strategy<Value = WindowChange> {
    prop_oneof![
        (any::<u32>(), row()).prop_map(|(index, row)| WindowChange::Add { index, row }),
        (any::<u32>(), row()).prop_map(|(index, row)| WindowChange::Change { index, row }),
        (any::<u32>(), any::<u32>(), row()).prop_map(|(old_index, index, row)| {
            WindowChange::Move {
                old_index,
                index,
                row,
            }
        }),
        (
            any::<u32>(),
            (bytes(), bytes()),
            any::<u64>(),
            any::<bool>()
        )
            .prop_map(
                |(old_index, (key, id), version, deleted)| WindowChange::Remove {
                    old_index,
                    key,
                    id,
                    version,
                    reason: if deleted {
                        RemovalReason::Deleted
                    } else {
                        RemovalReason::Left
                    },
                }
            ),
    ]
}

fn event() -> impl Strategy<Value = NodeEvent> {
    let cause = (any::<u64>(), any::<u64>(), any::<i64>(), parts()).prop_map(
        |(xid, rules_version, written_us, parts)| Cause {
            xid,
            rules_version,
            written_us,
            parts,
        },
    );
    let named = || (hash(), any::<u64>());
    let hashes = || vec(hash(), 0..3);
    prop_oneof![
        Just(NodeEvent::Start),
        (image(), hashes(), hashes(), hashes()).prop_map(|(image, added, changed, removed)| {
            NodeEvent::Match {
                image,
                added,
                changed,
                removed,
            }
        }),
        any::<u64>().prop_map(|xid| NodeEvent::Done { xid }),
        (named(), place()).prop_map(|((query, activation), request)| NodeEvent::Active {
            query,
            activation,
            request
        }),
        (named(), place()).prop_map(|((query, activation), request)| NodeEvent::TooOld {
            query,
            activation,
            request
        }),
        (hash(), "[a-zé_]{0,9}", "[a-zé ]{0,9}").prop_map(|(query, code, detail)| {
            NodeEvent::Failed {
                query,
                code,
                detail,
            }
        }),
        tick().prop_map(NodeEvent::Tick),
        (
            named(),
            (snapshot(), any::<u64>()),
            vec(row(), 0..3),
            any::<u32>(),
            any::<bool>()
        )
            .prop_map(
                |((query, activation), (snapshot, rules_version), rows, part, last)| {
                    NodeEvent::Rebase {
                        query,
                        activation,
                        snapshot,
                        rules_version,
                        rows,
                        part,
                        last,
                    }
                }
            ),
        snapshot().prop_map(|snapshot| NodeEvent::Rebased { snapshot }),
        (
            (named(), any::<u64>()),
            proptest::option::of(cause),
            vec(change(), 0..4)
        )
            .prop_map(|(((query, activation), rules_version), image, changes)| {
                NodeEvent::Window {
                    query,
                    activation,
                    rules_version,
                    image,
                    changes,
                }
            }),
        (named(), any::<u32>()).prop_map(|((query, activation), slack)| NodeEvent::Renew {
            query,
            activation,
            slack
        }),
        (fetch_id(), keys()).prop_map(|(fetch, keys)| NodeEvent::Fetch { fetch, keys }),
        hashes().prop_map(|queries| NodeEvent::Unevaluated { queries }),
        empty(),
    ]
}

fn empty() -> impl Strategy<Value = NodeEvent> {
    let result =
        (hash(), any::<u64>(), any::<u64>()).prop_map(|(query, activation, rules)| EmptyResult {
            query,
            activation,
            rules_version: rules,
        });
    (vec(result, 0..3), snapshot(), place()).prop_map(|(queries, snapshot, request)| {
        NodeEvent::Empty {
            queries,
            snapshot,
            request,
        }
    })
}

fn any_notification() -> impl Strategy<Value = Notification> {
    let source = prop_oneof![
        any::<u16>().prop_map(NotificationSource::Filter),
        Just(NotificationSource::Sort)
    ];
    (source, any::<u64>(), any::<u64>(), event()).prop_map(|(source, token, count, event)| {
        Notification {
            source,
            token: FencingToken(token),
            count,
            event,
        }
    })
}

proptest! {
    #[test]
    fn entries_of_write_streams_are_read_as_they_were_written(
        entry in prop_oneof![
            tick().prop_map(WriteEntry::Tick),
            image().prop_map(|mut image| {
                image.created_ms = image.written_us.div_euclid(1_000);
                WriteEntry::Image(image)
            }),
        ]
    ) {
        let (bytes, parts) = write_entry::encode(&entry);
        prop_assert_eq!(write_entry::decode(&bytes, Some(&parts)), Ok(entry));
    }

    #[test]
    fn requests_are_read_as_they_were_written(fetch in any_request()) {
        prop_assert_eq!(request::decode(&request::encode(&fetch)), Ok(fetch));
    }

    #[test]
    fn questions_are_read_as_they_were_written(fetch in fetch_id(), keys in keys()) {
        let bytes = request::encode_question(&fetch, &keys);
        prop_assert_eq!(request::decode_question(&bytes), Ok((fetch, keys)));
    }

    #[test]
    fn definitions_are_read_as_they_were_written(query in definition()) {
        let bytes = request::encode_definition(&query);
        prop_assert_eq!(request::decode_definition(&bytes), Ok(query));
    }

    #[test]
    fn notifications_are_read_as_they_were_written(message in any_notification()) {
        prop_assert_eq!(notification::decode(&notification::encode(&message)), Ok(message));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        kind in 0_u8..13,
        bytes in vec(prop_oneof![4 => Just(0_u8), 1 => any::<u8>()], 0..300),
    ) {
        let message: Vec<u8> = [1, kind].into_iter().chain(bytes).collect();
        let _ = write_entry::decode(&message, Some(&[0, 1]));
        let _ = request::decode(&message);
        let _ = request::decode_definition(&message);
        let _ = request::decode_question(&message);
        let _ = notification::decode(&message);
    }

    #[test]
    fn truncated_messages_are_rejected(message in any_notification(), cut in 1_usize..30) {
        let bytes = notification::encode(&message);
        let kept = bytes.len().saturating_sub(cut);
        prop_assert!(notification::decode(&bytes[..kept]).is_err());
    }

    #[test]
    fn the_activation_stands_at_one_place_in_requests_and_definitions(
        mut query in definition(),
        activation in any::<u64>(),
    ) {
        let expire = NodeRequest::Expire { query: query.hash, activation: query.activation };
        let messages = [request::encode(&expire), request::encode_definition(&query)];
        query.activation = activation;
        for mut bytes in messages {
            bytes[ACTIVATION_OFFSET..ACTIVATION_OFFSET + 8]
                .copy_from_slice(&activation.to_be_bytes());
            let read = match request::decode(&bytes) {
                Ok(NodeRequest::Expire { activation, .. }) => activation,
                _ => request::decode_definition(&bytes).unwrap().activation,
            };
            prop_assert_eq!(read, activation);
        }
    }
}

#[test]
fn the_put_of_the_specification_is_read() {
    let mut bytes = vec![1, 1];
    bytes.extend(5_u64.to_be_bytes());
    bytes.extend([10; 16]);
    bytes.extend([44; 16]);
    bytes.extend(3_u64.to_be_bytes());
    bytes.extend(1_u64.to_be_bytes());
    bytes.extend([0, 0, 0x01, 0xa1, 0xfd, 0x8c, 0x69, 0]);
    bytes.extend([0, 6, 0x60, 0xc6, 0x6c, 0x7a, 0x28, 0]);
    bytes.extend([0, 1, 0, 0, 0, 5, 0x6b]);
    bytes.extend([5, 0, 0, 0, 0]);
    let Ok(WriteEntry::Image(image)) = write_entry::decode(&bytes, None) else {
        panic!("refused");
    };
    assert_eq!((image.xid, image.version), (5, 3));
    assert_eq!(image.created_ms * 1_000, image.written_us);
    assert_eq!(
        image.content,
        ImageContent::Document([5, 0, 0, 0, 0].into())
    );
    assert!(image.parts.is_empty());
}

#[test]
fn the_active_of_the_specification_is_read() {
    let mut bytes = vec![1, 4, 0, 0, 1];
    bytes.extend(7_u64.to_be_bytes());
    bytes.extend(2_u64.to_be_bytes());
    bytes.extend([0xab; 16]);
    bytes.extend(12_u64.to_be_bytes());
    bytes.extend(1_700_000_000_000_u64.to_be_bytes());
    bytes.extend(3_u64.to_be_bytes());
    let notification = notification::decode(&bytes).unwrap();
    assert_eq!(notification.source, NotificationSource::Filter(1));
    assert_eq!(
        (notification.token, notification.count),
        (FencingToken(7), 2)
    );
    let query = QueryHash([0xab; 16]);
    assert_eq!(
        notification.event,
        NodeEvent::Active {
            query,
            activation: 12,
            request: StreamId {
                ms: 1_700_000_000_000,
                number: 3
            }
        }
    );
}

#[test]
fn a_list_that_claims_more_than_there_is_reserves_nothing() {
    let mut bytes = vec![1, 1];
    bytes.extend(
        request::encode_definition(&QueryDefinition {
            hash: QueryHash([0; 16]),
            activation: 0,
            tenant: [0; 16],
            collection: [0; 16],
            rules_version: 0,
            filter: [].into(),
            sort: [].into(),
            offset: 0,
            limit: None,
            sorted: false,
            slack: 0,
            group: [].into(),
            lookups: [].into(),
            sides: [].into(),
            rule: [].into(),
        })
        .into_iter()
        .skip(2),
    );
    bytes.extend([0, 0xff, 0xff, 0xff, 0xff]);
    assert!(request::decode(&bytes).is_err());
}
