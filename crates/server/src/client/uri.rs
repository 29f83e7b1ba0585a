//! The URI of an export.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::error::NbdError;

/// Default port.
const PORT: u16 = 10809;

/// Location of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ServerAddress {
    /// Host, or address, and port.
    Tcp(String, u16),
    Unix(PathBuf),
}

/// An export of a server, as `nbd://HOST:PORT/EXPORT` or `nbd+unix:///EXPORT?socket=/PATH`. Under
/// TLS it is `nbds://HOST:PORT/EXPORT?tls-certificates=/FOLDER`, where the folder has
/// `ca-cert.pem`, and `client-cert.pem` and `client-key.pem` if the server requires them. Without
/// an export it is the server's default one.
///
/// ```
/// use millpond_server::client::NbdUri;
/// let uri: NbdUri = "nbd://[::1]/vol0/recov".parse().unwrap();
/// assert_eq!(uri.export(), "vol0/recov");
/// assert_eq!(uri.to_string(), "nbd://[::1]:10809/vol0/recov");
/// assert!("nbd://host:port/".parse::<NbdUri>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NbdUri {
    pub(super) address: ServerAddress,
    export: String,
    /// Folder of certificates, if TLS is used.
    pub(super) certificates: Option<PathBuf>,
}

impl NbdUri {
    /// Returns the export's name; empty for the default one.
    pub fn export(&self) -> &str {
        &self.export
    }
}

impl FromStr for NbdUri {
    type Err = NbdError;

    fn from_str(text: &str) -> Result<NbdUri, NbdError> {
        let wrong = |why| NbdError::Uri { text: text.to_string(), why };
        let (scheme, rest) = text.split_once("://").ok_or(wrong("there is no nbd://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
        let export = decode(export).ok_or(wrong("a percent sign is followed by two digits"))?;
        let parameter = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.into_iter().find(|(key, _)| *key == name);
            found.filter(|(_, value)| !value.is_empty()).and_then(|(_, value)| decode(value))
        };
        let mut certificates = None;
        let address = match scheme {
            "nbd" | "nbds" => {
                match scheme {
                    "nbds" => {
                        let folder = parameter("tls-certificates");
                        let why = "there is no tls-certificates=/FOLDER";
                        certificates = Some(folder.ok_or(wrong(why))?.into());
                    }
                    _ if !query.is_empty() => return Err(wrong("nbd:// has no parameters")),
                    _ => {}
                }
                let (host, port) = split_port(authority).ok_or(wrong("the port is no number"))?;
                if host.is_empty() {
                    return Err(wrong("there is no host"));
                }
                ServerAddress::Tcp(host.to_string(), port)
            }
            "nbd+unix" => {
                if !authority.is_empty() {
                    return Err(wrong("a Unix socket has no host: write three slashes"));
                }
                let socket = parameter("socket").ok_or(wrong("there is no socket=/PATH"))?;
                ServerAddress::Unix(socket.into())
            }
            _ => return Err(wrong("it begins with neither nbd://, nbds:// nor nbd+unix://")),
        };
        Ok(NbdUri { address, export, certificates })
    }
}

/// Splits host and port; an IPv6 address is in brackets.
fn split_port(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    Some((host, port.map_or(Some(PORT), |port| port.parse().ok())?))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        if *first == b'%' {
            let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            if digits.starts_with('+') {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = behind.get(2..)?;
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let one = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(one).collect()
}

impl fmt::Display for NbdUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let export = encode(&self.export);
        let path_of = |path: &Path| encode(&path.to_string_lossy());
        let scheme = if self.certificates.is_some() { "nbds" } else { "nbd" };
        match &self.address {
            ServerAddress::Tcp(host, port) if host.contains(':') => {
                write!(f, "{scheme}://[{host}]:{port}/{export}")?;
            }
            ServerAddress::Tcp(host, port) => write!(f, "{scheme}://{host}:{port}/{export}")?,
            ServerAddress::Unix(path) => {
                write!(f, "nbd+unix:///{export}?socket={}", path_of(path))?
            }
        }
        match &self.certificates {
            Some(folder) => write!(f, "?tls-certificates={}", path_of(folder)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_printed_as_they_are_read() {
        for text in [
            "nbd://127.0.0.1:10809/",
            "nbd://localhost:1/vol0/synch",
            "nbd://[fd00::1]:10809/a%20b",
            "nbd+unix:///?socket=/run/mill.sock",
            "nbd+unix:///vol%25?socket=/tmp/a%20b",
            "nbds://storage:10809/vol0?tls-certificates=/etc/mill",
        ] {
            assert_eq!(text.parse::<NbdUri>().unwrap().to_string(), text);
        }
        let default: NbdUri = "nbd://host".parse().unwrap();
        assert_eq!((default.export(), default.to_string()), ("", "nbd://host:10809/".into()));
    }

    #[test]
    fn what_is_no_export_is_refused_with_a_reason() {
        for wrong in [
            "",
            "host:1",
            "http://host/",
            "nbd://",
            "nbd://:1/x",
            "nbd://host:x/",
            "nbd://host:70000/",
            "nbd://[::1/x",
            "nbd://host/%2",
            "nbd://host/%ff",
            "nbd://host/x?socket=/y",
            "nbd+unix:///x",
            "nbds://host/x",
            "nbds://host/x?tls-certificates=",
            "nbd+unix://host/x?socket=/y",
            "nbd+unix:///x?socket=",
        ] {
            let error = wrong.parse::<NbdUri>().unwrap_err().to_string();
            assert!(error.contains("nbd://HOST:PORT/EXPORT"), "{error}");
        }
    }
}
