//! Tests of the cache in front of an object store.

mod concurrent;
mod faults;
mod hints;
mod model;
mod restart;
mod standard;
mod support;
mod unfinished;
