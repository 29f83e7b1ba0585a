//! Tests of the storage server.
#![allow(clippy::single_range_in_vec_init, reason = "lists of one range are lists of ranges")]

mod block_device;
mod displaced;
mod hostile;
mod kill;
mod limits;
mod model;
mod parsers;
mod protocol;
mod restart;
mod standard_clients;
mod support;
mod tls;
mod volume;
