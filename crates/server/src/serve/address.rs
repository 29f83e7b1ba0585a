//! Addresses at which a server listens and a client connects.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// A text that is not an address to listen at.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is no address: write unix:/path/to/socket, 127.0.0.1:10809 or [::1]:10809")]
pub struct AddressError {
    /// The rejected text.
    pub text: String,
}

/// An address to listen at.
///
/// ```
/// use millpond_server::serve::Address;
/// assert!("unix:/run/mill.sock".parse::<Address>().unwrap().is_local());
/// assert!("127.0.0.1:10809".parse::<Address>().unwrap().is_local());
/// assert!(!"[::]:10809".parse::<Address>().unwrap().is_local());
/// assert!("everywhere".parse::<Address>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A Unix socket's file.
    Unix(PathBuf),
    /// An address and port of TCP; port 0 takes any free one.
    Tcp(SocketAddr),
}

impl Address {
    /// Returns `true` if only this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(address) => address.ip().is_loopback(),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError { text: text.to_string() };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Address::Unix(path.into())) };
        }
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_string(),
        };
        numeric.parse().map(Address::Tcp).map_err(|_| wrong())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}
