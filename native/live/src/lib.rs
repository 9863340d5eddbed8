//! Real-time queries: who watches what, and what they must be told.
//!
//! Filter node, sort node and hub are pure state machines: (state, message, time) → (state,
//! messages). They do no I/O, read no clock and draw no random numbers, so production loops and the
//! simulation run the same code.
//!
//! In the order in which data flows:
//!
//! - [`message`] — what the parties say to one another; [`snapshot`] — which transactions a reader
//!   has seen.
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]

pub mod message;
pub mod snapshot;
