//! Sockets and their streams, with time limits and TLS, for both server and client.

mod socket;
mod stream;
mod tls;

pub(crate) use socket::Socket;
pub(crate) use stream::Wire;
pub(crate) use tls::TlsClient;
pub use tls::{TlsError, TlsServer};
