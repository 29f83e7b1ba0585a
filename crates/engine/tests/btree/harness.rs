//! The memories that tests run on, and keys and values for them.

use std::sync::Arc;

use millpond::internals::btree::KINDS;
use millpond::internals::pool::{
    HostedPolicy, Latched, Optimistic, Pool, PoolOptions, Twin, Unlatched,
};
use millpond::internals::store::combinations::Compiled;
use millpond_policies::config::Spec;
use millpond_policies::contract::{PolicySpec, Shape};
use millpond_policies::policy::LeanEvict;

use crate::pool::storage::MemoryStorage;

/// Creates a memory with pages of this many bytes.
pub type Make<P> = fn(usize) -> Arc<P>;

pub fn optimistic(page_size: usize) -> Arc<Twin<Optimistic>> {
    Arc::new(Twin::new(page_size).unwrap())
}

pub fn latched(page_size: usize) -> Arc<Twin<Latched>> {
    Arc::new(Twin::new(page_size).unwrap())
}

pub fn unlatched(page_size: usize) -> Arc<Twin<Unlatched>> {
    Arc::new(Twin::new(page_size).unwrap())
}

pub type Swizzled = Compiled<Optimistic, <LeanEvict as PolicySpec>::Hook, true>;

/// A pool, which remembers pages by hints as no twin does, and evicts those of larger trees.
pub fn pooled(page_size: usize) -> Arc<Pool<Swizzled>> {
    let frames = 600;
    let shape = Shape { frames, pages_dense: None, seed: 1 };
    let hosted =
        HostedPolicy::exact::<LeanEvict>(&Spec::parse("lean-evict").unwrap(), &shape).unwrap();
    let options = PoolOptions { background_writer: false, ..PoolOptions::new(frames) };
    let storage = Arc::new(MemoryStorage::new(page_size));
    let pool = Arc::new(Pool::open(options, storage, hosted).unwrap());
    KINDS.into_iter().for_each(|(page_type, kind)| pool.register(page_type, kind));
    pool
}

/// Runs a generic test on every memory that one thread may use.
macro_rules! on_each {
    ($($test:ident),* $(,)?) => {
        mod on_optimistic {
            use crate::btree::harness::optimistic as make;
            $(#[test] fn $test() { super::$test(make); })*
        }
        mod on_pool {
            use crate::btree::harness::pooled as make;
            $(#[test] fn $test() { super::$test(make); })*
        }
        mod on_latched {
            use crate::btree::harness::latched as make;
            $(#[test] fn $test() { super::$test(make); })*
        }
        mod on_unlatched {
            use crate::btree::harness::unlatched as make;
            $(#[test] fn $test() { super::$test(make); })*
        }
    };
}
pub(crate) use on_each;

/// Returns a key of up to `max` bytes, of few: many share prefixes, some are prefixes of others.
pub fn key(random: &mut fastrand::Rng, max: usize) -> Vec<u8> {
    let prefix: &[u8] =
        [&b""[..], b"a", b"prefix", b"prefix/long/and/longer", &[0, 0, 0], &[255; 9]]
            [random.usize(..6)];
    let mut key = prefix.to_vec();
    for _ in 0..random.usize(..5) {
        key.push([0, 1, b'a', b'b', 255][random.usize(..5)]);
    }
    key.truncate(max);
    key
}

/// Returns a value of `len` bytes that differs from the others.
pub fn value(random: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    let seed = random.u8(..);
    (0..len).map(|i| seed.wrapping_add(i as u8)).collect()
}
