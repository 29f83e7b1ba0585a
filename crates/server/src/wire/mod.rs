//! Sockets, and their bytes with time limits and under TLS: for the server and for the client.

mod socket;
mod stream;
mod tls;

pub(crate) use socket::Socket;
pub(crate) use stream::Wire;
pub(crate) use tls::TlsClient;
pub use tls::{TlsError, TlsServer};
