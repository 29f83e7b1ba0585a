//! The server: connections, each with a thread that reads requests and one that sends replies, and
//! a pool of workers between them.
//!
//! ```text
//!             reader ──admit──▶ jobs ──▶ workers ──▶ outbox ──▶ sender
//! client ──▶  (one per          (fair    (of the     (of the    (one per   ──▶ client
//!              connection)       queue)   server)     connection) connection)
//! ```
//!
//! - A client that does not read its replies stops its own sender only. Its requests that are not
//!   replied to have bounded bytes and number; then nothing more is read from it.
//! - Workers take turns among connections, and no connection has more than half of them.
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
mod server;
mod session;

pub use access::{Prefix, PrefixError};
pub use address::{Address, AddressError};
pub use error::ServeError;
pub use options::ServeOptions;
pub use server::{ServeCounts, Server};

pub use crate::wire::{TlsError, TlsServer};
