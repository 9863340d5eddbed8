//! The metrics page and the health probes: `GET /metrics`, `/healthz`, `/readyz`.
//!
//! One request at a time with a short timeout: only monitoring uses it.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::health::WriteAvailability;
use crate::node::NodeCore;
use crate::prometheus;

const PATIENCE: Duration = Duration::from_secs(1);
/// The interval at which shutdown is checked.
const PAUSE: Duration = Duration::from_millis(50);
const MAX_REQUEST_BYTES: usize = 8 << 10;

/// Serves until the node stops.
pub(super) fn serve(node: &NodeCore, listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    while !node.is_stopping() {
        match listener.accept() {
            // Clients that disconnect early do not matter.
            Ok((stream, _)) => drop(answer(node, stream)),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    Ok(())
}

fn answer(node: &NodeCore, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    let until = Instant::now() + PATIENCE;
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut piece)?;
        // Also limits slow requests, because others wait.
        if read == 0 || request.len() > MAX_REQUEST_BYTES || Instant::now() > until {
            return Ok(());
        }
        request.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    let mut words = request.split(|&byte| byte == b' ').skip(1);
    let (status, kind, body) = page(node, words.next().unwrap_or_default());
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Status, type and body of a path.
fn page(node: &NodeCore, path: &[u8]) -> (&'static str, &'static str, String) {
    const JSON: &str = "application/json";
    match path {
        b"/metrics" => (
            "200 OK",
            "text/plain; version=0.0.4",
            prometheus::page(node),
        ),
        b"/healthz" | b"/readyz" => {
            let health = node.health();
            let status = match health {
                // Reads continue, and a restart would not free space.
                WriteAvailability::Available | WriteAvailability::Full => "200 OK",
                WriteAvailability::Failed => "503 Service Unavailable",
            };
            let (status_word, engine) = health.words();
            let body =
                format!("{{\"status\":\"{status_word}\",\"checks\":{{\"engine\":\"{engine}\"}}}}");
            (status, JSON, body)
        }
        _ => (
            "404 Not Found",
            JSON,
            "{\"status\":\"no such page\"}".into(),
        ),
    }
}
