//! Millpond for C and C++.
//!
//! The header is `include/millpond.h`, generated from this crate by cbindgen and compared with it
//! by a test; `docs/c.md` is the guide. These rules hold for all functions:
//!
//! - They return an [`mp_status`](status::mp_status): negative for an error, with a message for the
//!   calling thread ([`mp_error_message`](status::mp_error_message)). Other results are written
//!   through pointers, which are left alone on an error.
//! - No panic leaves this crate: it becomes `MP_PANIC`.
//! - A handle keeps everything alive that it needs: handles may be closed in any order, each once.
//!   A `NULL` handle is an error where it is used, and ignored where it is closed.
//! - Stores, trees, snapshots and transactions may be used by several threads at once, and
//!   cursors and buffers by one at a time.
//!
//! Each function that takes a pointer is `unsafe` in Rust. The caller promises that the pointer is
//! `NULL`, or belongs to a handle that is not closed; that a pointer with a length has as many
//! readable bytes; and that the rules on threads are kept.
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
