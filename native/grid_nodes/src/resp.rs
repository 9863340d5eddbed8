//! A blocking connection to Valkey: RESP2, with pipelined commands.
//!
//! Each connection belongs to one thread. Queued commands are sent together, and replies arrive in
//! their order. After any failure except a rejected command, the connection is unusable.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::error::ValkeyError;
use crate::server::{ValkeyAddress, ValkeyServer};
use crate::tls;

/// Longer than any command blocks.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const BUFFER_BYTES: usize = 1 << 18;
/// The maximum size of a string in Valkey.
const MAX_BULK_BYTES: usize = 512 << 20;
const MAX_ITEMS: usize = 1 << 24;
const MAX_DEPTH: usize = 8;

/// A reply to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValkeyReply {
    /// A string, or a status.
    Bytes(Vec<u8>),
    /// A number.
    Integer(i64),
    /// A list of replies.
    List(Vec<ValkeyReply>),
    /// Nothing.
    Nil,
    /// An error.
    Error(String),
}

impl ValkeyReply {
    /// The reply, or the error that it contains.
    pub fn accepted(self) -> Result<Self, ValkeyError> {
        match self {
            Self::Error(text) => Err(ValkeyError::Refused(text)),
            other => Ok(other),
        }
    }

    /// The items of a list; nil is an empty list.
    pub fn list(self) -> Result<Vec<Self>, ValkeyError> {
        match self.accepted()? {
            Self::List(items) => Ok(items),
            Self::Nil => Ok(Vec::new()),
            _ => Err(ValkeyError::UnexpectedReply("a list was expected")),
        }
    }

    /// A string.
    pub fn bytes(self) -> Result<Vec<u8>, ValkeyError> {
        match self.accepted()? {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(ValkeyError::UnexpectedReply("a string was expected")),
        }
    }

    /// A non-negative number.
    pub fn number(self) -> Result<u64, ValkeyError> {
        match self.accepted()? {
            Self::Integer(number) => u64::try_from(number)
                .map_err(|_| ValkeyError::UnexpectedReply("a number was negative")),
            _ => Err(ValkeyError::UnexpectedReply("a number was expected")),
        }
    }
}

/// A bidirectional stream. Reading and writing alternate.
trait DuplexStream: Read + Write + Send {}

impl<S: Read + Write + Send> DuplexStream for S {}

/// An open, authenticated connection.
pub struct ValkeyConnection {
    stream: BufReader<Box<dyn DuplexStream>>,
    unsent: Vec<u8>,
}

impl fmt::Debug for ValkeyConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl ValkeyConnection {
    /// Connects, authenticates and selects the database.
    pub fn open(server: &ValkeyServer) -> Result<Self, ValkeyError> {
        let stream = connect(server)?;
        let mut connection = Self {
            stream: BufReader::with_capacity(BUFFER_BYTES, stream),
            unsent: Vec::new(),
        };
        if !server.password.is_empty() {
            let (user, password) = (server.user.as_bytes(), server.password.as_bytes());
            if user.is_empty() {
                connection.call(&[b"AUTH", password])?;
            } else {
                connection.call(&[b"AUTH", user, password])?;
            }
        }
        if server.database != 0 {
            connection.call(&[b"SELECT", server.database.to_string().as_bytes()])?;
        }
        Ok(connection)
    }

    /// Queues a command.
    pub fn queue(&mut self, command: &[&[u8]]) {
        self.begin(command.len());
        for part in command {
            self.argument(part);
        }
    }

    /// Begins a command of `parts` parts; `argument` adds each of them.
    pub fn begin(&mut self, parts: usize) {
        self.unsent
            .extend_from_slice(format!("*{parts}\r\n").as_bytes());
    }

    /// Adds one part of the command that was begun.
    pub fn argument(&mut self, part: &[u8]) {
        self.unsent
            .extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        self.unsent.extend_from_slice(part);
        self.unsent.extend_from_slice(b"\r\n");
    }

    /// Sends the queued commands.
    pub fn flush(&mut self) -> Result<(), ValkeyError> {
        // Bytes that were read stay in the buffer.
        let stream = self.stream.get_mut();
        stream.write_all(&self.unsent)?;
        stream.flush()?;
        self.unsent.clear();
        Ok(())
    }

    /// Reads the next reply.
    pub fn reply(&mut self) -> Result<ValkeyReply, ValkeyError> {
        read_reply(&mut self.stream, 0)
    }

    /// Sends one command and waits for its reply.
    pub fn call(&mut self, command: &[&[u8]]) -> Result<ValkeyReply, ValkeyError> {
        self.queue(command);
        self.flush()?;
        self.reply()?.accepted()
    }
}

fn connect(server: &ValkeyServer) -> Result<Box<dyn DuplexStream>, ValkeyError> {
    match &server.address {
        ValkeyAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            Ok(Box::new(stream))
        }
        ValkeyAddress::Tcp(place) => {
            let stream = connect_any(place)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            match &server.tls {
                None => Ok(Box::new(stream)),
                Some(tls) => Ok(Box::new(tls::over(stream, tls)?)),
            }
        }
    }
}

/// Tries every address of a name.
fn connect_any(place: &str) -> Result<TcpStream, ValkeyError> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

fn read_reply(reader: &mut impl BufRead, depth: usize) -> Result<ValkeyReply, ValkeyError> {
    let line = read_line(reader)?;
    let (kind, text) = line
        .split_first()
        .ok_or(ValkeyError::UnexpectedReply("an empty line"))?;
    match kind {
        b'+' => Ok(ValkeyReply::Bytes(text.to_vec())),
        b'-' => Ok(ValkeyReply::Error(
            String::from_utf8_lossy(text).into_owned(),
        )),
        b':' => Ok(ValkeyReply::Integer(number(text)?)),
        b'$' => match usize::try_from(number(text)?) {
            Ok(length) => read_bulk(reader, length),
            Err(_) => Ok(ValkeyReply::Nil),
        },
        b'*' => match usize::try_from(number(text)?) {
            Ok(length) => read_list(reader, length, depth + 1),
            Err(_) => Ok(ValkeyReply::Nil),
        },
        _ => Err(ValkeyError::UnexpectedReply("an unknown kind of reply")),
    }
}

fn read_list(
    reader: &mut impl BufRead,
    length: usize,
    depth: usize,
) -> Result<ValkeyReply, ValkeyError> {
    if length > MAX_ITEMS || depth > MAX_DEPTH {
        return Err(ValkeyError::UnexpectedReply("a reply is too large"));
    }
    let mut items = Vec::with_capacity(length.min(1024));
    for _ in 0..length {
        items.push(read_reply(reader, depth)?);
    }
    Ok(ValkeyReply::List(items))
}

fn read_bulk(reader: &mut impl BufRead, length: usize) -> Result<ValkeyReply, ValkeyError> {
    if length > MAX_BULK_BYTES {
        return Err(ValkeyError::UnexpectedReply("a reply is too large"));
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    let mut end = [0; 2];
    reader.read_exact(&mut end)?;
    if end == *b"\r\n" {
        Ok(ValkeyReply::Bytes(bytes))
    } else {
        Err(ValkeyError::UnexpectedReply(
            "a string does not end where it should",
        ))
    }
}

/// Reads a line, without its terminator.
fn read_line(reader: &mut impl BufRead) -> Result<Vec<u8>, ValkeyError> {
    let mut line = Vec::new();
    reader.take(1 << 16).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(text.to_vec()),
        None => Err(ValkeyError::UnexpectedReply("a line does not end")),
    }
}

fn number(text: &[u8]) -> Result<i64, ValkeyError> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(ValkeyError::UnexpectedReply("not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<ValkeyReply, ValkeyError> {
        read_reply(&mut io::Cursor::new(bytes), 0)
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        let reply = read(b"*5\r\n+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*0\r\n").unwrap();
        let expected = vec![
            ValkeyReply::Bytes(b"OK".to_vec()),
            ValkeyReply::Integer(-7),
            ValkeyReply::Bytes(b"a\r\n".to_vec()),
            ValkeyReply::Nil,
            ValkeyReply::List(vec![]),
        ];
        assert_eq!(reply, ValkeyReply::List(expected));
    }

    #[test]
    fn a_refusal_is_an_answer_too() {
        let reply = read(b"-NOAUTH no\r\n").unwrap();
        assert!(matches!(reply.accepted(), Err(ValkeyError::Refused(text)) if text == "NOAUTH no"));
    }

    #[test]
    fn truncated_and_foreign_replies_are_errors() {
        for bytes in [
            &b"$5\r\nab"[..],
            b"*2\r\n:1\r\n",
            b"HTTP/1.1\r\n",
            b"",
            b"$1\r\nabc",
        ] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
        let deep = b"*1\r\n".repeat(MAX_DEPTH + 1);
        assert!(matches!(read(&deep), Err(ValkeyError::UnexpectedReply(_))));
        assert!(matches!(
            read(b"$99999999999\r\n"),
            Err(ValkeyError::UnexpectedReply(_))
        ));
    }
}
