//! The server: connections, each with a thread that reads requests, and a pool of workers that do
//! them and reply.
//!
//! ```text
//!             reader ──admit──▶ jobs ──▶ workers ──▶ outbox ──▶ client, as far as it takes
//! client ──▶  (one per          (fair    (of the     (of the    replies at once;
//!              connection)       queue)   server)     connection) the rest ──▶ sender ──▶ client
//! ```
//!
//! - The largest costs are the system calls and wake-ups of each request. So requests that arrive
//!   together are queued together; reads among them are done together and replied to together. No
//!   thread is woken without need.
//! - A client that does not read its replies blocks only its own sender, a thread for this purpose.
//!   The number and bytes of its unreplied requests are bounded; at the bound nothing more is read
//!   from it.
//! - Workers take turns among connections. Of several connections, none has more than half of the
//!   workers.
//! - Stop: no connection is accepted, and no request is read any more. Requests that were read are
//!   finished and replied to.

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
