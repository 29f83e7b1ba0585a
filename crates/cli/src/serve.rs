//! `millpond serve`: a file, or another block device, as a block device with a cache, over the NBD
//! protocol.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millpond_lab::results::memory_available;
use millpond_lab::table::{Table, Value};
use millpond_server::serve::{
    Address, Prefix, ServeCounts, ServeError, ServeOptions, Server, TlsServer,
};
use millpond_server::volume::{
    CacheSpec, OpenVolumeError, Volume, VolumeCounts, VolumeError, VolumeSpec,
};
use millpond_tier::{TierCounts, TierOptions};

use crate::error::Failure;
use crate::interrupt;
use crate::output::{complain, print};
use crate::store::size_of;

const EXAMPLES: &str = "Examples:
  truncate -s 100G vol0.img
  millpond serve --nbd unix:/run/vol0.sock --backing vol0.img \\
      --cache /nvme/vol0.tier --cache-size 8GiB
  millpond serve --nbd unix:/run/sdb.sock --backing /dev/sdb \\
      --cache /nvme/sdb.tier --write-back
  millpond serve --nbd 127.0.0.1:10809 --backing vol0.img --read-only
  millpond serve --nbd unix:vol0.sock --nbd 127.0.0.1:10809 --backing vol0.img \\
      --name vol0
  millpond serve --nbd 0.0.0.0:10809 --backing vol0.img --tls-cert server.pem \\
      --tls-key server.key --tls-ca clients-ca.pem --allow 10.1.0.0/16

  nbdcopy system.img 'nbd+unix:///disk?socket=/run/vol0.sock'
  qemu-img info nbd://127.0.0.1:10809/disk
  nbdfuse mnt/disk 'nbd+unix:///disk/replace?socket=/run/vol0.sock'

Any NBD client reads and writes the file through a cache on a faster device: without \
--write-back the cache is write-through, and may be lost at any time. Writes by way of the \
exports NAME/synch, NAME/replace and NAME/recov tell its policy why they come; see \
docs/server.md. Ctrl-C and SIGTERM stop the server: what is under way is finished, the file is \
synced, and the cache is kept for the next time.";

/// Time between two checks for a signal.
const LOOK: Duration = Duration::from_millis(50);

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Address to listen on: unix:PATH, or an address of this machine and a port, such as
    /// 127.0.0.1:10809; may be repeated
    #[arg(long, required = true, value_name = "ADDR")]
    nbd: Vec<Address>,
    /// The file or block device to serve; it must exist, and its length is the device's
    #[arg(long, value_name = "FILE")]
    backing: PathBuf,
    /// A file for the cache, on a faster device; created if it is missing
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
    /// Maximum bytes of the cache's file
    #[arg(long, default_value = "1GiB", requires = "cache", value_name = "SIZE")]
    #[arg(value_parser = size_of)]
    cache_size: u64,
    /// Policy of the cache: any of `millpond policies` that needs no future
    #[arg(long, default_value = "tq", requires = "cache", value_name = "POLICY")]
    policy: String,
    /// Keep writes in the cache, and write them to the backing file later. The two are then one
    /// volume, and the backing file alone is refused until it is served with this cache and without
    /// this flag
    #[arg(long, requires = "cache", conflicts_with = "read_only")]
    write_back: bool,
    /// Bytes of a block, the unit of the cache: a power of two from 512 to 64KiB
    #[arg(long, default_value = "4KiB", value_name = "SIZE", value_parser = size_of)]
    block: u64,
    /// Name of the export, which is also the default export
    #[arg(long, default_value = "disk", value_name = "NAME")]
    name: String,
    /// Maximum number of connections at a time
    #[arg(long, default_value_t = 16, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: u16,
    /// Let only these peers in over TCP: an address, or a prefix such as 10.1.0.0/16; may be
    /// repeated
    #[arg(long, value_name = "PREFIX")]
    allow: Vec<Prefix>,
    /// A certificate for TLS, a PEM file: peers over TCP must begin TLS, and may come from other
    /// machines
    #[arg(long, requires = "tls_key", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, a PEM file
    #[arg(long, requires = "tls_cert", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Let only clients in that have a certificate of these roots, a PEM file
    #[arg(long, requires = "tls_cert", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Refuse writes
    #[arg(long)]
    read_only: bool,
    /// Use the operating system's page cache
    #[arg(long)]
    buffered: bool,
    /// Seed of the policy's random choices
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
}

impl Args {
    fn spec(&self) -> Result<VolumeSpec, Failure> {
        let cache = self.cache.as_ref().map(|path| CacheSpec {
            path: path.clone(),
            bytes: self.cache_size,
            policy: self.policy.clone(),
            seed: self.seed,
            write_back: self.write_back,
        });
        let tier = cache.as_ref().and_then(|cache| {
            Some(TierOptions {
                bytes: cache.bytes,
                page_bytes: u32::try_from(self.block).ok()?,
                unit: u32::try_from(self.block).ok()?,
                seed: cache.seed,
                writes_back: cache.write_back,
            })
        });
        if let Some((tier, free)) = tier.zip(memory_available()) {
            fits(&tier, free)?;
        }
        let block = u32::try_from(self.block);
        let too_large = |_| {
            Failure::Usage(format!("blocks cannot have {} bytes: 64KiB are the most", self.block))
        };
        Ok(VolumeSpec {
            backing: self.backing.clone(),
            cache,
            block: block.map_err(too_large)?,
            read_only: self.read_only,
            direct: !self.buffered,
        })
    }

    fn options(&self) -> Result<ServeOptions, Failure> {
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Some(TlsServer::open(cert, key, self.tls_ca.as_deref())),
            _ => None,
        };
        let tls = tls.transpose().map_err(|error| Failure::Serve(error.to_string()))?;
        Ok(ServeOptions {
            tls,
            name: self.name.clone(),
            connections: self.connections.into(),
            allow: self.allow.clone(),
            ..ServeOptions::default()
        })
    }
}

/// Refuses a cache whose tables do not fit into memory, before its file is made.
fn fits(tier: &TierOptions, free: u64) -> Result<(), Failure> {
    // If the size is invalid, the volume reports that.
    let needed = if tier.frames().is_ok() { tier.table_bytes() } else { 0 };
    match needed <= free {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "a cache of {} bytes in blocks of {} needs {} MiB of memory for its tables, and {} MiB \
             are free: give a smaller --cache-size or a larger --block",
            tier.bytes,
            tier.page_bytes,
            needed >> 20,
            free >> 20
        ))),
    }
}

fn not_opened(error: OpenVolumeError) -> Failure {
    match error {
        OpenVolumeError::Block { .. }
        | OpenVolumeError::Policy(_)
        | OpenVolumeError::SameFile { .. } => Failure::Usage(error.to_string()),
        other => Failure::Serve(other.to_string()),
    }
}

fn not_served(error: ServeError) -> Failure {
    match error {
        ServeError::Name { .. } | ServeError::NotLocal { .. } | ServeError::LongPath { .. } => {
            Failure::Usage(error.to_string())
        }
        other => Failure::Serve(other.to_string()),
    }
}

fn not_closed(error: VolumeError) -> Failure {
    Failure::Serve(format!("the file was not made durable: {error}"))
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let terminated = interrupt::terminated();
    let (spec, options) = (args.spec()?, args.options()?);
    options.check().map_err(not_served)?;
    if let Some(address) = args.nbd.iter().find(|address| !address.is_local()) {
        match &options.tls {
            None => return Err(not_served(ServeError::NotLocal { address: address.clone() })),
            Some(tls) if !tls.asks_clients() && options.allow.is_empty() => complain(&format!(
                "anybody who reaches {address} can read and write: --tls-ca or --allow limit that"
            )),
            Some(_) => {}
        }
    }
    let volume = Arc::new(Volume::open(&spec).map_err(not_opened)?);
    let start = |address| Server::start(volume.clone(), address, options.clone());
    let mut servers = Vec::new();
    for address in &args.nbd {
        match start(address) {
            Ok(server) => servers.push(server),
            Err(error) => {
                drop(servers);
                // Closing keeps the cache as it was. The first error is the one to report.
                let _ = volume.close();
                return Err(not_served(error));
            }
        }
    }
    let announced = announce(&spec, &volume, &servers, &args.name);
    while announced.is_ok() && !interrupt::asked() && !terminated.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    complain("stopping: what is under way is finished");
    let counts: Vec<ServeCounts> = servers.into_iter().map(Server::stop).collect();
    let closed = volume.close().map_err(not_closed);
    announced?;
    print(&summary(&counts, &volume.counts(), volume.tier_counts()).to_text())?;
    closed
}

fn announce(
    spec: &VolumeSpec,
    volume: &Volume,
    servers: &[Server],
    name: &str,
) -> Result<(), Failure> {
    let (length, block) = (volume.length(), volume.block());
    let there = std::fs::metadata(&spec.backing).map_or(length, |found| found.len());
    if there > length {
        complain(&format!(
            "the last {} bytes of {} are no whole block of {block}, and are not served",
            there - length,
            spec.backing.display()
        ));
    }
    let how = if spec.read_only { "for reading only" } else { "for reading and writing" };
    let file = spec.backing.display();
    let mut text = format!("{file}: {length} bytes in blocks of {block}, {how}\n");
    if let (Some(cache), Some(tier)) = (&spec.cache, volume.tier_counts()) {
        text.push_str(&format!(
            "cache {}: room for {} blocks, {} there, policy {}, {} bytes of memory\n",
            cache.path.display(),
            tier.frames,
            tier.resident,
            cache.policy,
            tier.memory_bytes,
        ));
    }
    text.push_str(&format!("exports: {name}, {name}/synch, {name}/replace, {name}/recov\n"));
    for server in servers {
        text.push_str(&format!("listening at {}\n", server.address()));
    }
    print(&text)
}

/// Returns the counts of a run, layer by layer from the servers down.
fn summary(servers: &[ServeCounts], volume: &VolumeCounts, tier: Option<TierCounts>) -> Table {
    let sum = |count: fn(&ServeCounts) -> u64| servers.iter().map(count).sum::<u64>();
    let mut rows = vec![
        ("connections", sum(|counts| counts.connections)),
        ("connections refused", sum(|counts| counts.refused)),
        ("connections broken", sum(|counts| counts.broken)),
        ("reads", volume.reads),
        ("bytes read", volume.read_bytes),
        ("writes", volume.writes),
        ("bytes written", volume.written_bytes),
        ("blocks completed", volume.partial_blocks),
        ("syncs", volume.syncs),
    ];
    if let Some(tier) = tier {
        rows.extend([
            ("cache: room, blocks", tier.frames),
            ("cache: blocks kept", tier.resident),
            ("cache: reads", tier.reads),
            ("cache: read hits", tier.read_hits),
            ("cache: served", tier.served),
            ("cache: writes", tier.writes),
            ("cache: write hits", tier.write_hits),
            ("cache: passed by", tier.bypasses),
            ("cache: evictions", tier.evictions),
            ("cache: fills", tier.fills),
            ("cache: mismatches", tier.mismatches),
            ("cache: blocks that the file has not", tier.dirty),
            ("cache: written to the file later", tier.destaged),
            ("cache: never had to be", tier.spared),
            ("cache: errors", tier.errors),
        ]);
    }
    let mut table = Table::new(["count", "number"]);
    table.rows = rows.into_iter().map(|(name, n)| vec![name.into(), Value::Int(n)]).collect();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_whose_tables_do_not_fit_into_memory_is_refused() {
        let tier = |bytes| TierOptions {
            bytes,
            page_bytes: 4096,
            unit: 4096,
            seed: 1,
            writes_back: false,
        };
        let error = fits(&tier(100 << 40), 8 << 30).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("smaller --cache-size"), "{error}");
        assert!(fits(&tier(1 << 30), 8 << 30).is_ok() && fits(&tier(0), 0).is_ok());
    }
}
