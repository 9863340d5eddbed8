//! Lines for the operator, as JSON: time, level, message.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

fn line(level: &str, message: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0.0, |now| now.as_secs_f64());
    let mut shown = String::new();
    for letter in message.chars() {
        match letter {
            '"' | '\\' => shown.extend(['\\', letter]),
            letter if letter.is_control() => shown.push(' '),
            letter => shown.push(letter),
        }
    }
    // If nobody reads it, nobody is told so.
    let _ = writeln!(
        std::io::stderr(),
        "{{\"time\":{seconds:.3},\"level\":\"{level}\",\"message\":\"{shown}\"}}"
    );
}

pub(crate) fn info(message: &str) {
    line("INFO", message);
}

pub(crate) fn warning(message: &str) {
    line("WARNING", message);
}
