//! The server: connections, each with a thread that reads requests, and a pool of workers that do
//! them and reply.
//!
//! ```text
//!             reader ──admit──▶ jobs ──▶ workers ──▶ outbox ──▶ client, as far as it takes
//! client ──▶  (one per          (fair    (of the     (of the    replies at once;
//!              connection)       queue)   server)     connection) the rest ──▶ sender ──▶ client
//! ```
//!
//! - What costs most is the system calls and wake-ups of each request. So requests that came
//!   together are queued together, reads among them are done together and replied to together, and
//!   nobody is woken who need not be.
//! - A client that does not read its replies stops its own sender only, a thread for this. Its
//!   requests that are not replied to have bounded bytes and number; then nothing more is read from
//!   it.
//! - Workers take turns among connections, and of several connections none has more than half of
//!   them.
//! - Stopping: nobody is let in, no request is read any more, those that were read are finished
//!   and replied to.

mod access;
mod address;
mod connection;
mod error;
mod execute;
mod exports;
mod jobs;
mod listener;
mod negotiate;
mod options;
mod outbox;
mod sending;
mod server;
mod session;

pub use access::{Prefix, PrefixError};
pub use address::{Address, AddressError};
pub use error::ServeError;
pub use options::ServeOptions;
pub use server::{ServeCounts, Server};

pub use crate::wire::{TlsError, TlsServer};
