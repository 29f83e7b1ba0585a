//! Options of a store and of a transaction.

use std::ffi::c_char;
use std::time::Duration;

use millpond::{Compression, Durability, Isolation, Options, TxnOptions};

use crate::guard::{drop_handle, guard};
use crate::pointer::{exclusive, path, string, take};
use crate::status::{Failure, mp_status};

/// A commit returns when it is durable.
pub const MP_SYNC: i32 = 0;
/// A commit waits a little for others, whose flush it shares, and returns when it is durable.
pub const MP_GROUP: i32 = 1;
/// A commit returns at once and is durable soon after.
pub const MP_ASYNC: i32 = 2;
/// A commit returns at once and is durable with the next flush or checkpoint.
pub const MP_BULK: i32 = 3;

/// Transactions behave as if they ran one after the other.
pub const MP_SERIALIZABLE: i32 = 0;
/// Each read sees the data committed at its time.
pub const MP_READ_COMMITTED: i32 = 1;

/// Options for opening a store.
pub struct mp_options {
    pub(crate) options: Options,
}

/// Options of a transaction. Initialise them with MP_TXN_OPTIONS_INIT.
#[repr(C)]
pub struct mp_txn_options {
    /// MP_SYNC, MP_GROUP, MP_ASYNC or MP_BULK; -1 for the store's durability.
    pub durability: i32,
    /// MP_SERIALIZABLE or MP_READ_COMMITTED.
    pub isolation: i32,
    /// Longest wait for a lock in milliseconds; -1 for no limit, since deadlocks are found.
    pub wait_ms: i64,
}

fn durability(number: i32) -> Result<Durability, Failure> {
    match number {
        MP_SYNC => Ok(Durability::Sync),
        MP_GROUP => Ok(Durability::Group),
        MP_ASYNC => Ok(Durability::Async),
        MP_BULK => Ok(Durability::Bulk),
        other => Err(Failure::Misuse(format!("{other} is no durability"))),
    }
}

/// Returns the options at `options`, or those of MP_TXN_OPTIONS_INIT if that is null.
///
/// # Safety
/// `options` is null, or points to options.
pub(crate) unsafe fn txn_options(
    options: *const mp_txn_options,
    store: Durability,
) -> Result<TxnOptions, Failure> {
    const INIT: mp_txn_options =
        mp_txn_options { durability: -1, isolation: MP_SERIALIZABLE, wait_ms: -1 };
    // SAFETY: the caller's promise.
    let given = unsafe { options.as_ref() }.unwrap_or(&INIT);
    let durability = if given.durability == -1 { store } else { durability(given.durability)? };
    let isolation = match given.isolation {
        MP_SERIALIZABLE => Isolation::Serializable,
        MP_READ_COMMITTED => Isolation::ReadCommitted,
        other => return Err(Failure::Misuse(format!("{other} is no isolation"))),
    };
    let wait_max = match given.wait_ms {
        -1 => Duration::MAX,
        ms => {
            let why = |_| Failure::Misuse(format!("{ms} ms are no time to wait"));
            Duration::from_millis(u64::try_from(ms).map_err(why)?)
        }
    };
    let options = TxnOptions::default().durability(durability).isolation(isolation);
    Ok(options.wait_max(wait_max))
}

/// Returns the default options, never NULL. Free them with mp_options_free; an open store does not
/// need them.
#[unsafe(no_mangle)]
pub extern "C" fn mp_options_new() -> *mut mp_options {
    Box::into_raw(Box::new(mp_options { options: Options::new() }))
}

/// Frees options. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_free(options: *mut mp_options) {
    // SAFETY: the crate's contract.
    drop_handle(unsafe { take(options) });
}

/// Changes options.
///
/// # Safety
/// Same as [`exclusive`].
unsafe fn change(
    options: *mut mp_options,
    how: impl FnOnce(Options) -> Result<Options, Failure>,
) -> mp_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let options = unsafe { exclusive(options, "the options") }?;
        options.options = how(options.options.clone())?;
        Ok(mp_status::MP_OK)
    })
}

/// Sets the bytes of memory for everything. Default: a quarter of the memory that the process may
/// use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_memory(options: *mut mp_options, bytes: u64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.memory(bytes))) }
}

/// Sets the bytes per page of a new store, a power of two from 4096 to 65536.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_page_size(options: *mut mp_options, bytes: u32) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.page_size(bytes))) }
}

/// Sets the compression of the pages of a new store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_compression(options: *mut mp_options, on: bool) -> mp_status {
    let compression = if on { Compression::Lz4 } else { Compression::None };
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.compression(compression))) }
}

/// Sets the replacement policy, such as "watt(write_weight=2)"; `millpond policies` lists them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_policy(
    options: *mut mp_options,
    policy: *const c_char,
) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.policy(string(policy, "the policy")?))) }
}

/// Opens the store for reading only; it must exist. Default: no.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_read_only(options: *mut mp_options, on: bool) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.read_only(on))) }
}

/// Creates a missing store. Default: yes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_create_if_missing(
    options: *mut mp_options,
    on: bool,
) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.create_if_missing(on))) }
}

/// Sets the durability of commits, unless a transaction's options set it: MP_SYNC (the default),
/// MP_GROUP, MP_ASYNC or MP_BULK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_durability(options: *mut mp_options, when: i32) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.durability(durability(when)?))) }
}

/// Sets the approximate bytes of log that a recovery may have to read. Default: 512 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_log_gap(options: *mut mp_options, bytes: u64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.log_gap(bytes))) }
}

/// Sets the maximum bytes of the spill file beside the store. It takes data of large transactions
/// and old snapshots that does not fit into memory; with 0 there is no such file. Default: 16 GiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_spill_max(options: *mut mp_options, bytes: u64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { change(options, |o| Ok(o.spill_max(bytes))) }
}

/// Sets a second tier: `bytes` of the file at `path_of_cache`, on a faster device than the store's,
/// are a cache of pages under `policy`, such as "tq". With `write_back` the two files are one
/// store: see docs/second-tier.md.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_options_second_tier(
    options: *mut mp_options,
    path_of_cache: *const c_char,
    bytes: u64,
    policy: *const c_char,
    write_back: bool,
) -> mp_status {
    let how = |options: Options| {
        // SAFETY: the crate's contract.
        let (file, policy) = unsafe {
            (path(path_of_cache, "the path of the cache")?, string(policy, "the policy")?)
        };
        Ok(options.second_tier(file, bytes, policy).write_back(write_back))
    };
    // SAFETY: the crate's contract.
    unsafe { change(options, how) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the longest wait for a lock of a transaction with these options.
    fn waits(options: *const mp_txn_options) -> Option<Duration> {
        // SAFETY: null, or options on the caller's stack.
        let options = unsafe { txn_options(options, Durability::Sync) };
        options.ok().and_then(|options| options.wait_max)
    }

    #[test]
    fn a_wait_of_minus_one_is_for_ever_and_so_is_that_of_no_options() {
        let mut given = mp_txn_options { durability: -1, isolation: MP_SERIALIZABLE, wait_ms: -1 };
        assert_eq!(waits(&given), Some(Duration::MAX));
        assert_eq!(waits(std::ptr::null()), Some(Duration::MAX));
        given.wait_ms = 5;
        assert_eq!(waits(&given), Some(Duration::from_millis(5)));
        given.wait_ms = -2;
        assert_eq!(waits(&given), None);
    }
}
