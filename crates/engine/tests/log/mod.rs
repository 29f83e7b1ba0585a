//! The log: what goes in comes out, from memory and from storage, beside failures and crashes.

mod arbitrary;
#[path = "../../../../fuzz/bodies/log.rs"]
mod body;
mod crashes;
mod cut;
mod cut_back;
mod damage;
mod failures;
mod largest;
mod odd_length;
mod stories;
mod support;
mod threads;
