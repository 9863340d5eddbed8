//! Registers queries in bulk with the grid's function, without a database.

use rillbase_grid_nodes::resp::{ValkeyConnection, ValkeyReply};
use rillbase_grid_nodes::server::ValkeyServer;
use rillbase_live::message::{NodeRequest, StreamId};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_live::wire::request;

use crate::Fallible;
use crate::notification_reader::NotificationReader;
use crate::options::LoadOptions;
use crate::workload::GridWorkload;

/// The number of queries per call.
const BATCH_QUERIES: usize = 500;
/// The maximum number of unanswered requests. The request stream must not be trimmed before nodes
/// have read it.
const UNANSWERED: usize = 50_000;

/// Registers all queries and waits until every node watches them.
pub(crate) fn register(
    server: &ValkeyServer,
    options: &LoadOptions,
    workload: &GridWorkload,
    reader: &mut NotificationReader,
) -> Fallible<()> {
    let mut connection = ValkeyConnection::open(server)?;
    let filters = usize::try_from(options.write_partitions)?;
    let answers = filters + usize::from(workload.is_grouped());
    let numbers: Vec<usize> = (0..workload.len()).collect();
    let mut sent = 0;
    for batch in numbers.chunks(BATCH_QUERIES) {
        let ends = ends(&mut connection, options)?;
        for partition in 0..options.query_partitions {
            send(
                &mut connection,
                options,
                workload,
                (partition, batch),
                &ends,
            )?;
        }
        sent += batch.len();
        while reader.answered() + UNANSWERED * answers < sent * answers {
            reader.read(100)?;
        }
    }
    while reader.answered() < workload.len() * answers {
        reader.read(100)?;
    }
    if reader.refused > 0 {
        return Err(format!("{} registrations were rejected", reader.refused).into());
    }
    Ok(())
}

/// Registers the queries of a batch that belong to a partition.
fn send(
    connection: &mut ValkeyConnection,
    options: &LoadOptions,
    workload: &GridWorkload,
    (partition, batch): (u64, &[usize]),
    ends: &Ends,
) -> Fallible<()> {
    let mut arguments = Vec::new();
    for number in batch {
        let query = workload.definition(*number)?;
        if workload.partition(&query.hash) == partition {
            arguments.push(query.hash.0.to_vec());
            arguments.push(request::encode_definition(&query));
            arguments.push(request::encode(&NodeRequest::Register {
                query,
                positions: ends.positions.clone(),
                snapshot: PgSnapshot {
                    xmin: 1,
                    xmax: 1,
                    running: Vec::new(),
                },
                rows: workload.rows(*number)?,
                complete: true,
                foreign: Vec::new(),
                renewal: false,
            }));
        }
    }
    if arguments.is_empty() {
        return Ok(());
    }
    connection.begin(8 + arguments.len());
    let partition = partition.to_string();
    let function = "rillbase_grid_2_register_all";
    for part in [
        "FCALL",
        function,
        "1",
        &options.prefix,
        "1",
        &partition,
        "load",
    ] {
        connection.argument(part.as_bytes());
    }
    connection.argument(&ends.incarnation);
    for argument in &arguments {
        connection.argument(argument);
    }
    connection.flush()?;
    connection.reply()?.accepted()?;
    Ok(())
}

/// The ends of the write streams and the incarnation of the event layer.
struct Ends {
    positions: Vec<StreamId>,
    incarnation: Vec<u8>,
}

fn ends(connection: &mut ValkeyConnection, options: &LoadOptions) -> Fallible<Ends> {
    let partitions = options.write_partitions.to_string();
    let command: [&[u8]; 7] = [
        b"FCALL",
        b"rillbase_grid_2_ends",
        b"1",
        options.prefix.as_bytes(),
        b"1",
        partitions.as_bytes(),
        b"0",
    ];
    let mut answer = connection.call(&command)?.list()?.into_iter();
    let positions = answer
        .nth(1)
        .unwrap_or(ValkeyReply::Nil)
        .list()?
        .into_iter();
    let positions = positions.map(|end| stream_id(&end.bytes()?));
    Ok(Ends {
        positions: positions.collect::<Fallible<_>>()?,
        incarnation: answer.nth(1).unwrap_or(ValkeyReply::Nil).bytes()?,
    })
}

fn stream_id(bytes: &[u8]) -> Fallible<StreamId> {
    let (ms, number) = std::str::from_utf8(bytes)?
        .split_once('-')
        .ok_or("an id was expected")?;
    Ok(StreamId {
        ms: ms.parse()?,
        number: number.parse()?,
    })
}
