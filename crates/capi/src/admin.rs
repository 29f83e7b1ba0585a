//! Backups, checks and statistics.

use std::ffi::{c_char, c_void};
use std::fmt::Write;
use std::ops::ControlFlow;

use crate::buffer::{buffer, mp_buffer};
use crate::guard::guard;
use crate::pointer::{handle, path, place, set, string};
use crate::status::{Failure, mp_status};
use crate::store::mp_store;

/// Writes a backup to a new file at `path_of_backup`, while the store is in use. The backup is a
/// store of its own with everything that was committed before the call. `progress`, which may be
/// NULL, receives the bytes done and the bytes in all, of the pages and then of the log. If it
/// returns anything but 0, the backup is cancelled: the call returns MP_CANCELLED, and no file is
/// left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_backup(
    store: *const mp_store,
    path_of_backup: *const c_char,
    progress: Option<unsafe extern "C" fn(done: u64, total: u64, user: *mut c_void) -> i32>,
    user: *mut c_void,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let (store, target) = unsafe {
            (handle(store, "the store")?, path(path_of_backup, "the path of the backup")?)
        };
        store.db.backup_with(target, &mut |at| match progress {
            // SAFETY: the caller's function, with the caller's pointer.
            Some(progress) if unsafe { progress(at.done, at.total, user) } != 0 => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })?;
        Ok(mp_status::MP_OK)
    })
}

/// Reads and checks everything, while the store is in use. `sound` receives true if there is no
/// fault. `report`, which may be NULL, receives a text with a line for each tree and each fault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_check(
    store: *const mp_store,
    sound: *mut bool,
    report: *mut mp_buffer,
) -> mp_status {
    guard(|| {
        let sound = place(sound, "the place for the outcome")?;
        // SAFETY: the crate's contract.
        let store = unsafe { handle(store, "the store") }?;
        let found = store.db.check()?;
        if !report.is_null() {
            let mut text = String::new();
            for structure in &found.structures {
                // Writing to a string does not fail.
                let _ = writeln!(text, "{structure}");
            }
            // SAFETY: the crate's contract.
            unsafe { buffer(report, "the report") }?.set(text.as_bytes());
        }
        // SAFETY: `place` returned it.
        unsafe { set(sound, found.is_sound()) };
        Ok(mp_status::MP_OK)
    })
}

/// Returns all statistics, as a JSON object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_stats(store: *const mp_store, json: *mut mp_buffer) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let (store, json) = unsafe { (handle(store, "the store")?, buffer(json, "the buffer")?) };
        json.set(store.db.stats().to_json().as_bytes());
        Ok(mp_status::MP_OK)
    })
}

/// Returns one number of the statistics by its name in JSON, such as "puts". Returns MP_NO_SUCH if
/// no statistic has that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_stat(
    store: *const mp_store,
    name: *const c_char,
    value: *mut u64,
) -> mp_status {
    guard(|| {
        let value = place(value, "the place for the number")?;
        // SAFETY: the crate's contract.
        let (store, name) = unsafe { (handle(store, "the store")?, string(name, "the name")?) };
        let json = store.db.stats().to_json();
        let all: serde_json::Value = serde_json::from_str(&json)
            .map_err(|error| Failure::Misuse(format!("the statistics are no JSON: {error}")))?;
        let Some(number) = all.get(name).and_then(serde_json::Value::as_u64) else {
            crate::status::set_message(format!("there is no statistic '{name}': see mp_stats"));
            return Ok(mp_status::MP_NO_SUCH);
        };
        // SAFETY: `place` returned it.
        unsafe { set(value, number) };
        Ok(mp_status::MP_OK)
    })
}
