//! The list of all policies: one line each.

use crate::contract::{OpenPolicy, Policy};
use crate::policy as p;
use crate::tier2 as t;

/// Something to do with every policy's type: make a simulator of it, test it, list it.
pub trait Visitor {
    /// Visits one policy.
    fn visit<P: Policy>(&mut self);

    /// Visits one that any number of threads may use at once.
    fn visit_open<P: OpenPolicy>(&mut self) {
        self.visit::<P>();
    }
}

/// Visits every policy that is compiled, in the order of the catalog: all that ship with Millpond
/// with the feature `all`, and those of every store without it.
pub fn visit_all(visitor: &mut impl Visitor) {
    #[cfg(feature = "all")]
    visit_catalog(visitor);
    #[cfg(not(feature = "all"))]
    visit_usual(visitor);
}

/// Policies of every store: the default, those that the guides name, and for a second tier the
/// defaults there.
#[cfg(not(feature = "all"))]
fn visit_usual(visitor: &mut impl Visitor) {
    visitor.visit_open::<p::Random>();
    visitor.visit::<p::Lru>();
    visitor.visit_open::<p::Clock>();
    visitor.visit_open::<p::Watt>();
    visitor.visit::<p::Tide>();
    visitor.visit::<t::T2Lru>();
    visitor.visit::<t::Tq>();
    visitor.visit::<t::TideIo>();
}

#[cfg(feature = "all")]
fn visit_catalog(visitor: &mut impl Visitor) {
    visitor.visit_open::<p::Random>();
    visitor.visit_open::<p::Loop>();
    visitor.visit::<p::Fifo>();
    visitor.visit::<p::Filo>();
    visitor.visit::<p::Lru>();
    visitor.visit_open::<p::SortingLru>();
    visitor.visit::<p::Mru>();
    visitor.visit::<p::LruK>();
    visitor.visit_open::<p::SortingLruK>();
    visitor.visit::<p::Lru2History>();
    visitor.visit::<p::Slru>();
    visitor.visit_open::<p::Clock>();
    visitor.visit_open::<p::Zclock>();
    visitor.visit_open::<p::GclockV1>();
    visitor.visit_open::<p::GclockV2>();
    visitor.visit_open::<p::DgclockV1>();
    visitor.visit_open::<p::DgclockV2>();
    visitor.visit::<p::LrdV1>();
    visitor.visit::<p::LrdV2>();
    visitor.visit::<p::Lfu>();
    visitor.visit::<p::Lfuda>();
    visitor.visit::<p::LfuAging>();
    visitor.visit::<p::LeanEvict>();
    visitor.visit::<p::Fbr>();
    visitor.visit::<p::TwoQ>();
    visitor.visit::<p::TwoQSimple>();
    visitor.visit::<p::Lrfu>();
    visitor.visit::<p::Lirs>();
    visitor.visit::<p::Arc>();
    visitor.visit::<p::Car>();
    visitor.visit::<p::Cart>();
    visitor.visit::<p::ClockPro>();
    visitor.visit::<p::ClockProPlus>();
    visitor.visit::<p::Dlirs>();
    visitor.visit::<p::LruPartitioned>();
    visitor.visit_open::<p::AgeScan>();
    visitor.visit::<p::Mq>();
    visitor.visit::<p::Cflru>();
    visitor.visit::<p::LruWsr>();
    visitor.visit_open::<p::Watt>();
    visitor.visit_open::<p::Hyperbolic>();
    visitor.visit::<p::Opt>();
    visitor.visit::<p::S3Fifo>();
    visitor.visit::<p::Sieve>();
    visitor.visit::<p::Tide>();
    visitor.visit::<p::WTinyLfu>();
    visitor.visit_open::<p::ClockSweep>();
    visitor.visit::<p::MidpointLru>();
    visitor.visit::<t::T2Lru>();
    visitor.visit_open::<t::T2Rand>();
    visitor.visit::<t::T2Mq>();
    visitor.visit::<t::T2Arc>();
    visitor.visit::<t::LruHints>();
    visitor.visit::<t::MqHints>();
    visitor.visit::<t::Tq>();
    visitor.visit::<t::LruIo>();
    visitor.visit::<t::ArcIo>();
    visitor.visit::<t::TqIo>();
    visitor.visit::<t::TideIo>();
    visitor.visit::<t::T2Opt>();
    visitor.visit::<t::MinRw>();
    visitor.visit::<t::ProIo>();
}

/// Ids of all policies that ship with Millpond, compiled or not, in the order of the catalog.
pub const IDS: [&str; 62] = [
    "random",
    "loop",
    "fifo",
    "filo",
    "lru",
    "sorting-lru",
    "mru",
    "lru-k",
    "sorting-lru-k",
    "lru-2-history",
    "slru",
    "clock",
    "zclock",
    "gclock-v1",
    "gclock-v2",
    "dgclock-v1",
    "dgclock-v2",
    "lrd-v1",
    "lrd-v2",
    "lfu",
    "lfuda",
    "lfu-aging",
    "lean-evict",
    "fbr",
    "2q",
    "2q-simple",
    "lrfu",
    "lirs",
    "arc",
    "car",
    "cart",
    "clock-pro",
    "clock-pro-plus",
    "dlirs",
    "lru-partitioned",
    "age-scan",
    "mq",
    "cflru",
    "lru-wsr",
    "watt",
    "hyperbolic",
    "opt",
    "s3-fifo",
    "sieve",
    "tide",
    "w-tinylfu",
    "clock-sweep",
    "midpoint-lru",
    "t2-lru",
    "t2-rand",
    "t2-mq",
    "t2-arc",
    "lru-hints",
    "mq-hints",
    "tq",
    "lru-io",
    "arc-io",
    "tq-io",
    "tide-io",
    "t2-opt",
    "min-rw",
    "pro-io",
];

#[cfg(all(test, feature = "all"))]
mod tests {
    use super::*;

    #[test]
    fn the_ids_are_those_of_the_catalog() {
        struct Ids(Vec<&'static str>);
        impl Visitor for Ids {
            fn visit<P: Policy>(&mut self) {
                self.0.push(P::INFO.id);
            }
        }
        let mut ids = Ids(Vec::new());
        visit_all(&mut ids);
        assert_eq!(ids.0, IDS);
    }
}
