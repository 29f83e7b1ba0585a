//! Sockets, and their bytes with time limits: for the server and for the client.

mod socket;
mod stream;

pub(crate) use socket::Socket;
pub(crate) use stream::Wire;
