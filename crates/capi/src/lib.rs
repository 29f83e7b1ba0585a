//! Millpond for C and C++.
//!
//! The header is `include/millpond.h`, made of this crate by cbindgen and compared with it by a
//! test; `docs/c.md` is the guide. What holds for all functions:
//!
//! - They return an [`mp_status`](status::mp_status): negative for an error, with a message for
//!   the calling thread ([`mp_error_message`](status::mp_error_message)). What they give back
//!   otherwise goes through pointers, which are left alone if there is an error.
//! - No panic leaves this crate: it becomes `MP_PANIC`.
//! - A handle keeps alive what it needs: handles may be closed in any order, each once. A handle
//!   that is `NULL` is an error where it is used, and nothing where it is closed.
//! - Stores, trees, snapshots and transactions may be used by several threads at once, and
//!   cursors and buffers by one at a time.
//!
//! Each function that takes a pointer is `unsafe` in Rust: the caller promises that the pointer
//! is of a handle that is not closed, or `NULL`; that bytes are there as told; and that the rules
//! on threads are kept.
#![deny(missing_docs)]
#![allow(non_camel_case_types, reason = "they are the names in C")]
#![allow(clippy::missing_safety_doc, reason = "the same for all: above")]

pub mod admin;
pub mod buffer;
pub mod cursor;
pub mod entry;
mod guard;
pub mod key;
pub mod options;
mod pointer;
pub mod range;
pub mod snapshot;
pub mod status;
pub mod store;
pub mod tree;
pub mod txn;
