//! Options of serving a volume.

use std::time::Duration;

use super::access::Prefix;
use super::error::ServeError;
use crate::protocol::PAYLOAD_BYTES_MAX;
use crate::wire::TlsServer;

/// Bytes of an export's name, at most.
const NAME_MAX: usize = 255;

/// Names and limits of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Name of the export, which is the default one, too.
    pub name: String,
    /// Connections at once, at most; further ones are closed at once.
    pub connections: usize,
    /// Threads that read and write the volume.
    pub workers: usize,
    /// Bytes of requests of a connection that are not replied to, at most; one request is always
    /// taken.
    pub in_flight_bytes: u64,
    /// Requests of a connection that are not replied to, at most.
    pub in_flight_requests: u32,
    /// Time for the handshake.
    pub handshake: Duration,
    /// Time in which a server that is stopped waits for clients to take their replies.
    pub grace: Duration,
    /// Peers over TCP; empty: all that reach the address.
    pub allow: Vec<Prefix>,
    /// Peers over TCP must begin TLS; `None`: nobody can, and only this machine is served.
    pub tls: Option<TlsServer>,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions {
            name: "disk".to_string(),
            connections: 16,
            workers: 16,
            in_flight_bytes: u64::from(PAYLOAD_BYTES_MAX) + (8 << 20),
            in_flight_requests: 256,
            handshake: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            allow: Vec::new(),
            tls: None,
        }
    }
}

impl ServeOptions {
    /// Checks that a server can run with these options.
    ///
    /// # Errors
    /// The name cannot be.
    pub fn check(&self) -> Result<(), ServeError> {
        let name = &self.name;
        if name.is_empty() || name.len() > NAME_MAX || name.contains(['/', '\0']) {
            return Err(ServeError::Name { name: name.clone(), most: NAME_MAX });
        }
        Ok(())
    }
}
