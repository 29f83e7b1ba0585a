//! A second tier returns the bytes that were written, whatever its cache does. A cache is used
//! again only above the storage that it was made of.

mod back_crash;
mod back_restart;
mod back_slots;
mod model;
mod restart;
mod stress;

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;

use millpond_base::{PageId, Reason};
use millpond_device::{Device, DeviceError, ReadRequest, Tag, WriteRequest};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::{BackTier, Identity, SecondTier, TierError, TierOptions};

/// Every policy of a second tier that can run live.
const POLICIES: [&str; 11] = [
    "t2-lru",
    "t2-rand",
    "t2-mq",
    "t2-arc",
    "lru-hints",
    "mq-hints",
    "tq",
    "lru-io",
    "arc-io",
    "tq-io",
    "tide-io",
];
const PAGE: u64 = 512;

fn options(pages: u64) -> TierOptions {
    let bytes = 8192 + pages * (PAGE + 48);
    TierOptions { bytes, page_bytes: PAGE as u32, unit: PAGE as u32, seed: 7, writes_back: false }
}

/// Of a tier that writes back, with that number of slots.
fn back_options(slots: u64) -> TierOptions {
    let bytes = 16_384 + 65_536 + slots * (PAGE + 96);
    TierOptions { bytes, writes_back: true, ..options(0) }
}

fn open_back(
    below: Arc<dyn Device>,
    fast: Arc<dyn Device>,
    options: &TierOptions,
    policy: &str,
) -> Result<BackTier, TierError> {
    let policy = ChosenPolicy::parse(policy, Tier::Second).unwrap();
    BackTier::open(below, fast, options, |shape| policy.erased_host(shape))
}

fn open_as(
    below: Arc<dyn Device>,
    fast: Arc<dyn Device>,
    options: &TierOptions,
    policy: &str,
    identity: Option<Identity>,
) -> Result<SecondTier, TierError> {
    let policy = ChosenPolicy::parse(policy, Tier::Second).unwrap();
    SecondTier::open(below, fast, options, move |_| identity, |shape| policy.erased_host(shape))
}

fn open(below: Arc<dyn Device>, fast: Arc<dyn Device>, pages: u64, policy: &str) -> SecondTier {
    open_as(below, fast, &options(pages), policy, Some([1; 32])).unwrap()
}

fn read(device: &dyn Device, page: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
    let tags = [Tag { page: PageId(page), reason: Reason::None }];
    let mut parts = [IoSliceMut::new(bytes)];
    let mut requests = [ReadRequest::new(page * PAGE, &mut parts).tagged(&tags)];
    device.read_batch(&mut requests);
    let [request] = requests;
    request.result
}

fn write(device: &dyn Device, page: u64, reason: Reason, bytes: &[u8]) -> Result<(), DeviceError> {
    let tags = [Tag { page: PageId(page), reason }];
    let parts = [IoSlice::new(bytes)];
    let mut requests = [WriteRequest::new(page * PAGE, &parts).tagged(&tags)];
    device.write_batch(&mut requests);
    let [request] = requests;
    request.result
}

/// Returns the bytes of version `version` of `page`.
fn content(page: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![version as u8; PAGE as usize];
    bytes[..8].copy_from_slice(&page.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes
}
