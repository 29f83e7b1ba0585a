//! Storage-level traces: the mix of requests, and their successors on the same page.
//!
//! The mix is li's table 3.2 (shares of SYNCH, REPLACE, RECOV and READ). The successors
//! extend its tables 5.3 and 5.5 (next request to the same page after a READ or a REPLACE) to
//! all types, and count requests without a successor.

use millpond_base::{Mark, Reason};
use serde::Serialize;

/// The type of a storage request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestType {
    /// A page is read.
    Read,
    /// A worker wrote the page to have its frame.
    Synch,
    /// A page cleaner wrote it to make room.
    Replace,
    /// A page cleaner wrote it to bound recovery time.
    Recov,
    /// A write without a reason in the trace.
    Write,
}

const TYPES: [RequestType; 5] = [
    RequestType::Read,
    RequestType::Synch,
    RequestType::Replace,
    RequestType::Recov,
    RequestType::Write,
];

impl RequestType {
    /// Returns the type of a request; `None` for a dsync, which is no page request.
    pub fn of(mark: Mark) -> Option<RequestType> {
        match mark.reason() {
            Reason::Dsync => None,
            _ if !mark.is_write() => Some(RequestType::Read),
            Reason::Synch => Some(RequestType::Synch),
            Reason::Replace => Some(RequestType::Replace),
            Reason::Recov => Some(RequestType::Recov),
            Reason::None => Some(RequestType::Write),
        }
    }
}

/// Successors on the same page of the requests of one type.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct NextRequest {
    /// The type.
    pub request: RequestType,
    /// Requests of this type.
    pub requests: u64,
    /// Share of this type in all requests, 0 to 1.
    pub share: f64,
    /// Number followed by a READ of the same page.
    pub then_read: u64,
    /// … by a SYNCH.
    pub then_synch: u64,
    /// … by a REPLACE.
    pub then_replace: u64,
    /// … by a RECOV.
    pub then_recov: u64,
    /// … by a write without a reason.
    pub then_write: u64,
    /// … by nothing.
    pub then_none: u64,
}

impl NextRequest {
    /// Returns the number followed by a write of any reason.
    pub fn then_any_write(&self) -> u64 {
        self.then_synch + self.then_replace + self.then_recov + self.then_write
    }
}

/// The storage view of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StorageStat {
    /// Page requests.
    pub requests: u64,
    /// Requests to make earlier writes durable (not among `requests`).
    pub dsyncs: u64,
    /// One row per type that occurs, in the order READ, SYNCH, REPLACE, RECOV, write.
    pub types: Vec<NextRequest>,
}

/// Collects the storage view.
#[derive(Default)]
pub(crate) struct Storage {
    before: Vec<u8>,
    counts: [u64; 5],
    pairs: [[u64; 5]; 5],
    reasons: u64,
    pub(crate) dsyncs: u64,
}

impl Storage {
    /// Takes a request to page `number`, numbered by first appearance.
    #[inline]
    pub(crate) fn touch(&mut self, number: u32, is_new: bool, mark: Mark) {
        let Some(request) = RequestType::of(mark) else { return };
        let request = request as u8;
        self.counts[request as usize] += 1;
        self.reasons += u64::from(mark.reason() != Reason::None);
        if is_new {
            self.before.push(request);
        } else {
            let before = std::mem::replace(&mut self.before[number as usize], request);
            self.pairs[before as usize][request as usize] += 1;
        }
    }

    /// Returns the storage view, if the trace has any write reason or dsync.
    pub(crate) fn finish(&self) -> Option<StorageStat> {
        if self.reasons == 0 && self.dsyncs == 0 {
            return None;
        }
        let requests: u64 = self.counts.iter().sum();
        let row = |request: &RequestType| {
            let i = *request as usize;
            let then = self.pairs[i];
            NextRequest {
                request: *request,
                requests: self.counts[i],
                share: self.counts[i] as f64 / requests.max(1) as f64,
                then_read: then[0],
                then_synch: then[1],
                then_replace: then[2],
                then_recov: then[3],
                then_write: then[4],
                then_none: self.counts[i] - then.iter().sum::<u64>(),
            }
        };
        let types = TYPES.iter().map(row).filter(|r| r.requests > 0).collect();
        Some(StorageStat { requests, dsyncs: self.dsyncs, types })
    }
}
