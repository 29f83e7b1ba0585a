//! Tests of the storage server.
#![allow(clippy::single_range_in_vec_init, reason = "lists of one range are lists of ranges")]

mod hostile;
mod limits;
mod model;
mod protocol;
mod restart;
mod standard_clients;
mod support;
mod tls;
mod volume;
