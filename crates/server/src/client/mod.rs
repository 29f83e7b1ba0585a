//! A device backed by an export of an NBD server, Millpond's or another one.

mod connection;
mod device;
mod error;
mod handshake;
mod transfer;
mod uri;

pub use device::{NbdDevice, NbdOptions};
pub use error::NbdError;
pub use uri::NbdUri;
