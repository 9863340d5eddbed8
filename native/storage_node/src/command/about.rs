//! What there is to know: INFO, COMMAND, CLIENT.

use std::sync::atomic::Ordering;

use super::table::{COMMANDS, Command, find};
use super::{Access, Run, Step};
use crate::metrics;
use crate::node::Node;
use crate::refusal::{Refusal, Result};
use crate::resp::Reply;
use crate::session::{Caller, Session};
use crate::words::{Words, unknown};

pub(super) fn info(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let mut asked = Vec::new();
    while !words.is_empty() {
        asked.push(words.keyword()?);
    }
    let mut sections = vec![("Server", server(node))];
    match &session.caller {
        Caller::Tenant(namespace, _) => {
            let topics = namespace.topics().len();
            let text = format!("name:{}\r\ntopics:{topics}\r\n", namespace.name);
            sections.push(("Namespace", text));
        }
        // What the whole node does says something of every tenant.
        Caller::Admin | Caller::Stranger => sections.push(("Stats", metrics::lines(node))),
    }
    let is_wanted = |name: &str| {
        let wanted = |one: &String| one.eq_ignore_ascii_case(name);
        asked.is_empty()
            || asked
                .iter()
                .any(|one| wanted(one) || one == "ALL" || one == "EVERYTHING" || one == "DEFAULT")
    };
    let shown = sections.iter().filter(|(name, _)| is_wanted(name));
    let shown: Vec<String> = shown
        .map(|(name, text)| format!("# {name}\r\n{text}"))
        .collect();
    reply.text(&shown.join("\r\n"));
    Ok(Step::Done)
}

fn server(node: &Node) -> String {
    format!(
        "server_name:rillbase-node\r\nrillbase_version:{}\r\nprocess_id:{}\r\nuptime_in_seconds:{}\r\nengine:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        node.metrics.started.elapsed().as_secs(),
        node.health().words().1,
    )
}

pub(super) fn client(
    node: &Node,
    session: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    match words.keyword()?.as_str() {
        "ID" => reply.integer(session.client.id),
        "INFO" => reply.text(&format!("{}\n", session.client.line())),
        "LIST" => reply.text(&list(node, session)),
        "GETNAME" => {
            let name = session.client.name.lock().clone();
            if name.is_empty() {
                reply.null();
            } else {
                reply.text(&name);
            }
        }
        "SETNAME" => {
            let name = words.text()?;
            if name.len() > 128 || !name.bytes().all(|byte| (b'!'..=b'~').contains(&byte)) {
                return Err(Refusal::syntax(
                    "a client's name is 128 visible characters at most",
                ));
            }
            name.clone_into(&mut session.client.name.lock());
            reply.ok();
        }
        "SETINFO" => {
            let (_, _) = (words.next()?, words.next()?);
            reply.ok();
        }
        "KILL" => kill(node, session, words.clone(), reply)?,
        other => return Err(unknown(other.as_bytes())),
    }
    Ok(Step::Done)
}

/// Whether a session may know of a client: tenants know of their own.
fn may_see(session: &Session, namespace: Option<&str>) -> bool {
    match &session.caller {
        Caller::Admin => true,
        Caller::Tenant(own, _) => namespace == Some(own.name.as_str()),
        Caller::Stranger => false,
    }
}

fn list(node: &Node, session: &Session) -> String {
    let all = node.clients.all();
    let seen = all
        .iter()
        .filter(|client| may_see(session, client.namespace.lock().as_deref()));
    seen.map(|client| client.line() + "\n").collect()
}

fn kill(node: &Node, session: &Session, mut words: Words<'_>, reply: &mut Reply<'_>) -> Result<()> {
    if !words.take("ID") {
        return Err(Refusal::syntax("CLIENT KILL ID id"));
    }
    let found = node.clients.find(words.number()?);
    let found = found.filter(|client| may_see(session, client.namespace.lock().as_deref()));
    if let Some(client) = &found {
        client.is_killed.store(true, Ordering::Relaxed);
        node.has_revoked.store(true, Ordering::Release);
    }
    reply.integer(u64::from(found.is_some()));
    Ok(())
}

pub(super) fn command(
    _: &Node,
    _: &mut Session,
    mut words: Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<Step> {
    let asked = if words.is_empty() {
        "INFO".into()
    } else {
        words.keyword()?
    };
    match asked.as_str() {
        "COUNT" => reply.integer(COMMANDS.len() as u64),
        "LIST" => {
            reply.array(COMMANDS.len());
            COMMANDS
                .iter()
                .for_each(|command| reply.text(&command.name.to_ascii_lowercase()));
        }
        "INFO" => {
            let found = named(words)?;
            reply.array(found.len());
            found.iter().for_each(|found| match found {
                Some(command) => describe(command, reply),
                None => reply.null(),
            });
        }
        "DOCS" => {
            let found: Vec<&Command> = named(words)?.into_iter().flatten().collect();
            reply.map(found.len());
            found.iter().for_each(|command| document(command, reply));
        }
        other => return Err(unknown(other.as_bytes())),
    }
    Ok(Step::Done)
}

/// The commands of names; all, if none is named.
fn named(mut words: Words<'_>) -> Result<Vec<Option<&'static Command>>> {
    if words.is_empty() {
        return Ok(COMMANDS.iter().map(Some).collect());
    }
    let mut found = Vec::with_capacity(words.count());
    while !words.is_empty() {
        found.push(find(words.next()?));
    }
    Ok(found)
}

/// Name, arity, flags, no keys: as clients expect it.
fn describe(command: &Command, reply: &mut Reply<'_>) {
    let (least, most) = command.words;
    let words = least as u64 + 1;
    reply.array(6);
    reply.text(&command.name.to_ascii_lowercase());
    if most == least {
        reply.integer(words);
    } else {
        reply.raw(format!(":-{words}\r\n").as_bytes());
    }
    let mut flags = Vec::new();
    if matches!(command.run, Run::Write(_)) {
        flags.push("write");
    }
    match command.access {
        Access::Anyone => flags.push("no_auth"),
        Access::Admin => flags.push("admin"),
        Access::Known | Access::Tenant => {}
    }
    reply.array(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    (0..3).for_each(|_| reply.integer(0));
}

fn document(command: &Command, reply: &mut Reply<'_>) {
    reply.text(&command.name.to_ascii_lowercase());
    reply.map(3);
    for (name, value) in [
        ("summary", command.summary),
        ("syntax", command.usage),
        ("group", "rillbase"),
    ] {
        reply.text(name);
        reply.text(value);
    }
}
