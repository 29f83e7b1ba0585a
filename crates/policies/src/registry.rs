//! The list of all policies: one line each.

use crate::contract::{OpenPolicy, Policy};
use crate::policy as p;
use crate::tier2 as t;

/// Work for every policy's type: building a simulator, testing, listing.
pub trait Visitor {
    /// Visits one policy.
    fn visit<P: Policy>(&mut self);

    /// Visits a policy that any number of threads may use at once.
    fn visit_open<P: OpenPolicy>(&mut self) {
        self.visit::<P>();
    }
}

/// Visits every policy that ships with Millpond, in the order of the catalog.
pub fn visit_all(visitor: &mut impl Visitor) {
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
