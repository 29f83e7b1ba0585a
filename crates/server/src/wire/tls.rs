//! TLS: certificates, and the records of a connection.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use millpond_base::PastPoison;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig};

/// Bytes per record, and per read.
const RECORD: usize = 16 << 10;

/// Certificates that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or lacks the expected content.
    #[error("{} has no {what}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The expected kind of content.
        what: &'static str,
        /// The fault.
        why: String,
    },
    /// The certificate and the key do not match.
    #[error("certificate {} and key {} are of no use: {why}", cert.display(), key.display())]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The fault.
        why: String,
    },
    /// The host name is not valid in a certificate.
    #[error("'{host}' is neither a name nor an address that a certificate could be for")]
    Host {
        /// The name.
        host: String,
    },
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fail = |why: String| TlsError::File { path: path.into(), what: "certificate", why };
    let all = CertificateDer::pem_file_iter(path).map_err(|error| fail(error.to_string()))?;
    let all: Result<Vec<_>, _> = all.collect();
    let all = all.map_err(|error| fail(error.to_string()))?;
    if all.is_empty() { Err(fail("it is no PEM file of one".to_string())) } else { Ok(all) }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let fail = |why: String| TlsError::File { path: path.into(), what: "private key", why };
    PrivateKeyDer::from_pem_file(path).map_err(|error| fail(error.to_string()))
}

fn roots(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let fail = |why: String| TlsError::File { path: path.into(), what: "certificate", why };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| fail(error.to_string()))?;
    }
    Ok(Arc::new(roots))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A server's certificate, and the roots of its clients' certificates.
#[derive(Clone, Debug)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
    asks_clients: bool,
}

impl TlsServer {
    /// Reads PEM files: the server's certificate (with those between it and its root), its private
    /// key, and the roots of clients' certificates. Without the roots, clients need no certificate.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn open(cert: &Path, key_file: &Path, ca: Option<&Path>) -> Result<TlsServer, TlsError> {
        let mismatch =
            |why: String| TlsError::Mismatch { cert: cert.into(), key: key_file.into(), why };
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| mismatch(error.to_string()))?;
        let builder = match ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let fail = |why| TlsError::File { path: path.into(), what: "usable root", why };
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots(path)?, provider());
                let verifier = verifier.build().map_err(|error| fail(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(certificates(cert)?, key(key_file)?);
        let config = config.map_err(|error| mismatch(error.to_string()))?;
        Ok(TlsServer { config: Arc::new(config), asks_clients: ca.is_some() })
    }

    /// Returns `true` if clients need a certificate.
    pub fn asks_clients(&self) -> bool {
        self.asks_clients
    }

    pub(crate) fn begin(&self) -> io::Result<Tls> {
        let connection = rustls::ServerConnection::new(self.config.clone());
        Ok(Tls::new(Connection::Server(connection.map_err(io::Error::other)?)))
    }
}

/// A client's trusted roots, and its own certificate.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    server: ServerName<'static>,
}

impl TlsClient {
    /// Reads `ca-cert.pem` in `folder`, and `client-cert.pem` and `client-key.pem` if they exist,
    /// for the server called `host`.
    pub fn open(folder: &Path, host: &str) -> Result<TlsClient, TlsError> {
        let wrong_host = |_| TlsError::Host { host: host.to_string() };
        let server = match host.parse::<IpAddr>() {
            Ok(address) => ServerName::from(address),
            Err(_) => ServerName::try_from(host.to_string()).map_err(wrong_host)?,
        };
        let (ca, cert) = (folder.join("ca-cert.pem"), folder.join("client-cert.pem"));
        let key_file = folder.join("client-key.pem");
        let mismatch =
            |why: String| TlsError::Mismatch { cert: cert.clone(), key: key_file.clone(), why };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| mismatch(error.to_string()))?
            .with_root_certificates(roots(&ca)?);
        let config = if cert.exists() {
            let config = builder.with_client_auth_cert(certificates(&cert)?, key(&key_file)?);
            config.map_err(|error| mismatch(error.to_string()))?
        } else {
            builder.with_no_client_auth()
        };
        Ok(TlsClient { config: Arc::new(config), server })
    }

    pub fn begin(&self) -> io::Result<Tls> {
        let connection = ClientConnection::new(self.config.clone(), self.server.clone());
        Ok(Tls::new(Connection::Client(connection.map_err(io::Error::other)?)))
    }
}

/// The records of a connection. One thread reads, and one writes. Neither holds a lock that the
/// other needs while it waits for the socket.
#[derive(Debug)]
pub(crate) struct Tls {
    state: Mutex<State>,
    /// Held from the creation of records until they are sent, since they must be sent in order.
    sending: Mutex<()>,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    /// Received bytes that are not processed yet, from `at` on.
    received: Vec<u8>,
    at: usize,
}

impl State {
    /// Processes some received bytes; `false` if there are none.
    fn take_in(&mut self) -> io::Result<bool> {
        let State { connection, received, at } = self;
        let mut rest = received.get(*at..).unwrap_or(&[]);
        if rest.is_empty() {
            return Ok(false);
        }
        *at += connection.read_tls(&mut rest)?;
        connection.process_new_packets().map_err(io::Error::other)?;
        Ok(true)
    }

    /// Returns the records to be sent.
    fn outgoing(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut bytes)?;
        }
        Ok(bytes)
    }
}

impl Tls {
    fn new(connection: Connection) -> Tls {
        let state = State { connection, received: Vec::new(), at: 0 };
        Tls { state: Mutex::new(state), sending: Mutex::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked in between has broken only its own connection.
        self.state.lock().past_poison()
    }

    /// Sends due records.
    fn send_due(&self, raw: &mut impl Write) -> io::Result<()> {
        let _sending = self.sending.lock().past_poison();
        let bytes = self.state().outgoing()?;
        if bytes.is_empty() { Ok(()) } else { raw.write_all(&bytes) }
    }

    /// Receives more bytes, and reports faults in them to the peer.
    fn receive(&self, raw: &mut (impl Read + Write)) -> io::Result<()> {
        let mut room = vec![0; RECORD];
        let count = raw.read(&mut room)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        room.truncate(count);
        let mut state = self.state();
        (state.received, state.at) = (room, 0);
        Ok(())
    }

    fn take_in(&self, raw: &mut impl Write) -> io::Result<bool> {
        let taken = self.state().take_in();
        if taken.is_err() {
            // Sends the alert; it does not matter if that fails.
            let _ = self.send_due(raw);
        }
        taken
    }

    /// Completes the handshake.
    pub fn complete(&self, raw: &mut (impl Read + Write)) -> io::Result<()> {
        loop {
            self.send_due(raw)?;
            if !self.state().connection.is_handshaking() {
                return Ok(());
            }
            if !self.take_in(raw)? {
                self.receive(raw)?;
            }
        }
    }

    /// Reads bytes; 0 if the peer has ended its stream.
    pub fn read(&self, raw: &mut (impl Read + Write), bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state().connection.reader().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.take_in(raw)? {
                self.receive(raw)?;
            } else if self.state().connection.wants_write() {
                self.send_due(raw)?;
            }
        }
    }

    /// Sends all bytes.
    pub fn write(&self, raw: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        let _sending = self.sending.lock().past_poison();
        for piece in bytes.chunks(RECORD) {
            let records = {
                let mut state = self.state();
                state.connection.writer().write_all(piece)?;
                state.outgoing()?
            };
            raw.write_all(&records)?;
        }
        Ok(())
    }

    /// Tells the peer that the stream ends.
    pub fn finish(&self, raw: &mut impl Write) -> io::Result<()> {
        self.state().connection.send_close_notify();
        self.send_due(raw)
    }
}
