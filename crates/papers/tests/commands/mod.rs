//! `millpond-papers` as a user meets it: each paper's experiment at the quick scale, and what is
//! refused.

mod default;
mod gilbert;
mod leanstore;
mod leanstore_hits;
mod li;
mod looking_glass;
mod luan;
mod support;
mod watt;
