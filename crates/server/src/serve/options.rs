//! Options of serving a volume.

use std::time::Duration;

use super::access::Prefix;
use super::error::ServeError;
use crate::protocol::PAYLOAD_BYTES_MAX;
use crate::wire::TlsServer;

/// Maximum bytes of an export's name.
const NAME_MAX: usize = 255;

/// Names and limits of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Name of the export, which is also the default export.
    pub name: String,
    /// Maximum number of connections; further ones are closed immediately.
    pub connections: usize,
    /// Threads that read and write the volume.
    pub workers: usize,
    /// Maximum bytes of a connection's unreplied requests; one request is always accepted.
    pub in_flight_bytes: u64,
    /// Maximum number of a connection's unreplied requests.
    pub in_flight_requests: u32,
    /// Time limit of the handshake.
    pub handshake: Duration,
    /// Time that a stopping server gives clients to read their replies.
    pub grace: Duration,
    /// Networks that may connect over TCP; if empty, every peer may.
    pub allow: Vec<Prefix>,
    /// TLS, required of peers over TCP. With `None`, TLS is unavailable and only this machine is
    /// served.
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
    /// The name is not allowed.
    pub fn check(&self) -> Result<(), ServeError> {
        let name = &self.name;
        if name.is_empty() || name.len() > NAME_MAX || name.contains(['/', '\0']) {
            return Err(ServeError::Name { name: name.clone(), most: NAME_MAX });
        }
        Ok(())
    }
}
