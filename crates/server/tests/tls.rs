//! TLS by STARTTLS over 127.0.0.1: accepted clients, refused clients, and intact data.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use millpond_device::{Device, MemoryDevice};
use millpond_server::client::{NbdDevice, NbdError, NbdOptions, NbdUri};
use millpond_server::protocol::*;
use millpond_server::serve::{Address, ServeError, ServeOptions, Server, TlsError, TlsServer};
use millpond_server::volume::Volume;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::support::LIMIT;

const SIZE: usize = 8 << 20;

/// Creates a root, and certificates signed by it for a server at 127.0.0.1 and for a client.
fn certificates(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let mut root = CertificateParams::new(vec![]).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().unwrap();
    write("ca-cert.pem", &root.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(root, key);
    let leaves = [
        ("server", "127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth),
        ("client", "client.test", ExtendedKeyUsagePurpose::ClientAuth),
    ];
    for (name, subject, usage) in leaves {
        let mut leaf = CertificateParams::new(vec![subject.to_string()]).unwrap();
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = leaf.signed_by(&key, &issuer).unwrap();
        write(&format!("{name}-cert.pem"), &certificate.pem());
        write(&format!("{name}-key.pem"), &key.serialize_pem());
    }
}

/// A server on 127.0.0.1 under TLS, and a folder with certificates.
struct Secured {
    server: Server,
    volume: Arc<Volume>,
    folder: tempfile::TempDir,
}

impl Secured {
    fn new(asks_clients: bool) -> Secured {
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("ours");
        certificates(&ours);
        certificates(&folder.path().join("others"));
        let ca = ours.join("ca-cert.pem");
        let ca = asks_clients.then_some(&*ca);
        let tls = TlsServer::open(&ours.join("server-cert.pem"), &ours.join("server-key.pem"), ca);
        let options = ServeOptions { tls: Some(tls.unwrap()), ..ServeOptions::default() };
        let device = Arc::new(MemoryDevice::from_bytes(&vec![1; SIZE]));
        let volume = Arc::new(Volume::over(device, 4096, false));
        let address = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(volume.clone(), &address, options).unwrap();
        Secured { server, volume, folder }
    }

    fn port(&self) -> u16 {
        let Address::Tcp(address) = self.server.address() else { panic!("not TCP") };
        address.port()
    }

    fn uri(&self, certificates: &str) -> String {
        let folder = self.folder.path().join(certificates);
        let port = self.port();
        format!("nbds://127.0.0.1:{port}/disk?tls-certificates={}", folder.display())
    }

    fn open(&self, certificates: &str) -> Result<NbdDevice, NbdError> {
        NbdDevice::open(&self.uri(certificates).parse().unwrap(), &NbdOptions::default())
    }

    /// Returns a client that has asked for TLS, and may begin it.
    fn raw(&self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        stream
    }
}

#[test]
fn what_is_written_under_tls_is_there_over_several_connections() {
    for asks_clients in [false, true] {
        let secured = Secured::new(asks_clients);
        let device = secured.open("ours").unwrap();
        assert!(device.has_hints());
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let device = &device;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread);
                    for _ in 0..12 {
                        let length = random.usize(1..300_000);
                        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                        device.write(thread * 1_000_000, &bytes).unwrap();
                        let mut found = vec![0; length];
                        device.read(thread * 1_000_000, &mut found).unwrap();
                        assert!(found == bytes);
                    }
                });
            }
        });
        device.sync().unwrap();
        let mut all = vec![0; SIZE];
        device.read(0, &mut all).unwrap();
        assert!(secured.volume.read(0, SIZE as u32).unwrap()[..] == all);
        drop(device);
        assert_eq!(secured.server.stop().broken, 0);
    }
}

#[test]
fn who_has_not_the_right_certificate_does_not_get_in() {
    let secured = Secured::new(true);
    let address = format!("nbd://127.0.0.1:{}/disk", secured.port());
    let plain: NbdUri = address.parse().unwrap();
    let error = NbdDevice::open(&plain, &NbdOptions::default()).unwrap_err();
    let is_it = matches!(&error, NbdError::Refused { kind, .. }
        if *kind == option_replies::ERR_TLS_REQD);
    assert!(is_it, "{error}");
    // No certificate, and one of another root.
    let (ours, none) = (secured.folder.path().join("ours"), secured.folder.path().join("none"));
    let mixed = secured.folder.path().join("mixed");
    for folder in [&none, &mixed] {
        std::fs::create_dir(folder).unwrap();
        std::fs::copy(ours.join("ca-cert.pem"), folder.join("ca-cert.pem")).unwrap();
    }
    for name in ["client-cert.pem", "client-key.pem"] {
        let theirs = secured.folder.path().join("others").join(name);
        std::fs::copy(theirs, mixed.join(name)).unwrap();
    }
    for folder in ["none", "mixed"] {
        let error = secured.open(folder).unwrap_err();
        assert!(matches!(error, NbdError::Connect { .. }), "{folder}: {error}");
    }
    // A server with the wrong name.
    let error = secured.open("others").unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    secured.open("ours").unwrap();
}

#[test]
fn nothing_that_was_said_before_tls_counts() {
    let secured = Secured::new(false);
    let list = ClientOption::List.encode();
    let mut stream = secured.raw();
    stream.write_all(&list).unwrap();
    let mut reply = [0; OptionReplyHeader::BYTES];
    stream.read_exact(&mut reply).unwrap();
    let header = OptionReplyHeader::decode(&reply).unwrap();
    assert_eq!(header.kind, option_replies::ERR_TLS_REQD);
    // Plain bytes after STARTTLS are taken for TLS, and rejected.
    let mut stream = secured.raw();
    stream.write_all(&[ClientOption::StartTls.encode(), list].concat()).unwrap();
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(OptionReplyHeader::decode(&reply).unwrap().kind, option_replies::ACK);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let is_option_reply = rest.windows(8).any(|eight| eight == OPTION_REPLY_MAGIC.to_be_bytes());
    assert!(!is_option_reply, "{rest:?}");
    // Without TLS at all there is no export.
    let mut stream = secured.raw();
    stream.write_all(&ClientOption::ExportName("disk".into()).encode()).unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn any_bytes_in_place_of_tls_end_one_connection_only() {
    let secured = Secured::new(true);
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stream = secured.raw();
        stream.write_all(&ClientOption::StartTls.encode()).unwrap();
        let mut bytes: Vec<u8> = (0..random.usize(1..400)).map(|_| random.u8(..)).collect();
        if seed % 2 == 0 {
            // The head of a handshake record.
            bytes.splice(..0, [22, 3, 1, 0, random.u8(..), 1]);
        }
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    secured.open("ours").unwrap();
}

#[test]
fn certificates_that_cannot_be_used_say_why() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let at = |name: &str| folder.path().join(name);
    let open = |cert: &str, key: &str, ca: &str| {
        TlsServer::open(&at(cert), &at(key), Some(&at(ca))).map(|_| ()).unwrap_err()
    };
    let missing = open("missing", "server-key.pem", "ca-cert.pem");
    assert!(missing.to_string().contains("missing has no certificate"), "{missing}");
    let swapped = open("server-key.pem", "server-cert.pem", "ca-cert.pem");
    assert!(matches!(swapped, TlsError::File { .. }), "{swapped}");
    let other = open("server-cert.pem", "client-key.pem", "ca-cert.pem");
    assert!(matches!(other, TlsError::Mismatch { .. }), "{other}");
    let root = open("server-cert.pem", "server-key.pem", "client-key.pem");
    assert!(matches!(root, TlsError::File { .. }), "{root}");
    // With a certificate, an address that other machines can reach is no reason to refuse; that
    // this machine does not have the address is one.
    let tls = TlsServer::open(&at("server-cert.pem"), &at("server-key.pem"), None).unwrap();
    let options = ServeOptions { tls: Some(tls), ..ServeOptions::default() };
    let volume = Arc::new(Volume::over(Arc::new(MemoryDevice::from_bytes(&[0; 512])), 512, false));
    let error = Server::start(volume, &"192.0.2.1:0".parse().unwrap(), options).unwrap_err();
    assert!(matches!(error, ServeError::Listen { .. }), "{error}");
}

#[test]
#[allow(clippy::print_stdout)] // what is left out is named
fn clients_that_others_wrote_come_in_by_tls() {
    let secured = Secured::new(true);
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned() + &error)
    };
    if Command::new("nbdinfo").arg("--version").output().is_err() {
        println!("no nbdinfo here: libnbd is left out; the package libnbd-bin has it");
    } else {
        let (is_well, text) = run("nbdinfo", &["--size", &secured.uri("ours")]);
        assert!(is_well && text.trim() == SIZE.to_string(), "{text}");
        let plain = format!("nbd://127.0.0.1:{}/disk", secured.port());
        let (is_well, text) = run("nbdinfo", &["--size", &plain]);
        assert!(!is_well, "{text}");
    }
    if Command::new("qemu-img").arg("--version").output().is_err() {
        println!("no qemu-img here: QEMU is left out; the package qemu-utils has it");
        return;
    }
    let folder = secured.folder.path().join("ours");
    let credentials = format!("tls-creds-x509,id=tls,dir={},endpoint=client", folder.display());
    let port = secured.port();
    let image = format!("driver=nbd,host=127.0.0.1,port={port},export=disk,tls-creds=tls");
    let arguments = ["info", "--output=json", "--object", &credentials, "--image-opts", &image];
    let (is_well, text) = run("qemu-img", &arguments);
    assert!(is_well && text.contains(&format!("\"virtual-size\": {SIZE}")), "{text}");
}
