//! Engines that have a C interface and no maintained binding: a C file each that makes plain
//! functions of it, and safe types over those.

#[cfg(feature = "berkeleydb")]
pub(crate) mod berkeleydb;
#[cfg(feature = "wiredtiger")]
pub(crate) mod wiredtiger;
