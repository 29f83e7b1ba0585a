//! A trace that streams through: one thread decodes (and renumbers) it, others simulate it.

use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

use millpond_workload::trace::{Batch, Source, TraceError};

use crate::sim::Renumber;

/// References per batch if several simulations take turns on it. With long batches each simulation
/// warms its tables rarely, and the distribution among cores is cheap.
pub(crate) const STREAM_LEN: usize = 1 << 18;

/// References per batch for a single simulation. The batch stays in a core's L2 cache, beside the
/// simulation's tables, from the decoder to the policy.
pub(crate) const ALONE_LEN: usize = 1 << 16;

/// Parameters of reading a trace.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub dsyncs: Dsyncs,
    /// If `true`, another thread decodes the next batches in the meantime.
    pub ahead: bool,
    /// References per batch.
    pub len: usize,
}

/// Findings from reading a trace to its end.
#[derive(Default)]
pub(crate) struct Streamed {
    pub references: u64,
    /// A hash of the references: see [`Content`].
    pub content: u64,
    pub notes: Vec<String>,
    /// `true` if the consumer asked to stop before the end.
    pub stopped: bool,
}

/// Treatment of requests for durability.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dsyncs {
    /// Requests are left out, because a buffer pool has none.
    Skip,
    /// Requests are passed on.
    Keep,
}

fn fill(
    source: &mut dyn Source,
    renumber: Option<&mut Renumber>,
    reading: Reading,
    content: &mut Content,
    batch: &mut Batch,
) -> Result<usize, TraceError> {
    batch.clear();
    while batch.len() < reading.len {
        if source.fill(batch, reading.len - batch.len())? == 0 {
            break;
        }
        if reading.dsyncs == Dsyncs::Skip {
            batch.drop_dsyncs();
        }
    }
    content.add(batch);
    if let Some(renumber) = renumber {
        renumber.apply(batch);
    }
    Ok(batch.len())
}

/// A hash of references: equal for equal references, from any file and in any batches. The hash
/// distinguishes traces; it does not protect against deliberate collisions.
#[derive(Clone, Copy, Default)]
pub struct Content(u64);

impl Content {
    /// Adds the references of a batch.
    pub fn add(&mut self, batch: &Batch) {
        for (page, mark) in batch.pages.iter().zip(&batch.marks) {
            let page = page.wrapping_add(u64::from(mark.to_bits()).rotate_left(48));
            self.0 = folded(self.0 ^ page.wrapping_add(0x9e37_79b9_7f4a_7c15), self.0 | 1);
        }
    }

    /// Returns the hash of all references so far.
    pub fn hash(self) -> u64 {
        self.0
    }
}

/// Returns both halves of a 128-bit product, xored; `twist` makes the result depend on the order.
fn folded(value: u64, twist: u64) -> u64 {
    let product = u128::from(value) * 0xa076_1d64_78bd_642f;
    (product as u64) ^ ((product >> 64) as u64) ^ twist.rotate_left(29)
}

/// Passes the whole trace to `consume`, batch by batch.
pub(crate) fn stream(
    mut source: Box<dyn Source>,
    mut renumber: Option<&mut Renumber>,
    reading: Reading,
    mut consume: impl FnMut(&Batch, Option<f64>) -> ControlFlow<()>,
) -> Result<Streamed, TraceError> {
    let mut result = Streamed::default();
    if !reading.ahead {
        let (mut batch, mut content) = (Batch::with_capacity(reading.len), Content::default());
        let mut next = |batch: &mut Batch, source: &mut dyn Source| {
            fill(source, renumber.as_deref_mut(), reading, &mut content, batch)
        };
        while next(&mut batch, source.as_mut())? > 0 {
            result.references += batch.len() as u64;
            if consume(&batch, source.progress()).is_break() {
                result.stopped = true;
                break;
            }
        }
        result.notes = source.notes();
        result.content = content.hash();
        return Ok(result);
    }
    std::thread::scope(|scope| {
        let (full_in, full_out) = sync_channel::<(Batch, Option<f64>)>(2);
        let (empty_in, empty_out) = sync_channel::<Batch>(4);
        let reader = scope.spawn(move || -> Result<(Vec<String>, u64), TraceError> {
            let mut content = Content::default();
            loop {
                let mut batch =
                    empty_out.try_recv().unwrap_or_else(|_| Batch::with_capacity(reading.len));
                let renumber = renumber.as_deref_mut();
                if fill(source.as_mut(), renumber, reading, &mut content, &mut batch)? == 0 {
                    break;
                }
                let progress = source.progress();
                if full_in.send((batch, progress)).is_err() {
                    break; // The consumer has had enough.
                }
            }
            Ok((source.notes(), content.hash()))
        });
        for (batch, progress) in &full_out {
            result.references += batch.len() as u64;
            if consume(&batch, progress).is_break() {
                result.stopped = true;
                break;
            }
            // If the pile of empty batches is full, the batch is dropped.
            let _ = empty_in.try_send(batch);
        }
        drop(full_out);
        match reader.join() {
            Ok(read) => (result.notes, result.content) = read?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(result)
    })
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;

    fn hash(parts: &[&[u64]], mark: Mark) -> u64 {
        let mut content = Content::default();
        for part in parts {
            let mut batch = Batch::default();
            part.iter().for_each(|page| batch.push(*page, mark));
            content.add(&batch);
        }
        content.hash()
    }

    #[test]
    fn contents_differ_by_page_order_number_and_mark_and_not_by_batch() {
        let one = hash(&[&[1, 2, 3]], Mark::READ);
        assert_eq!(one, hash(&[&[1], &[], &[2, 3]], Mark::READ));
        for other in [&[1, 3, 2][..], &[1, 2], &[1, 2, 3, 0], &[0, 1, 2, 3], &[1, 2, 4]] {
            assert_ne!(one, hash(&[other], Mark::READ), "{other:?}");
        }
        assert_ne!(one, hash(&[&[1, 2, 3]], Mark::WRITE));
        assert_ne!(hash(&[&[0]], Mark::READ), hash(&[&[0, 0]], Mark::READ));
    }
}
