//! A trace streaming through: decoded (and renumbered) in one thread, simulated in others.

use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;

use millpond_workload::trace::{Batch, Source, TraceError};

use crate::sim::Renumber;

/// References per batch where several simulations take turns on it: long enough that each warms
/// its own tables seldom, and that sharing out among cores costs nothing.
pub(crate) const STREAM_LEN: usize = 1 << 18;

/// References per batch for a single simulation: such a batch stays in a core's L2 cache, beside
/// the simulation's tables, from the decoder to the policy.
pub(crate) const ALONE_LEN: usize = 1 << 16;

/// How a trace is read.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub dsyncs: Dsyncs,
    /// Whether another thread decodes the next batches meanwhile.
    pub ahead: bool,
    /// References per batch.
    pub len: usize,
}

/// What reading a trace to its end found.
#[derive(Default)]
pub(crate) struct Streamed {
    pub references: u64,
    pub notes: Vec<String>,
    /// The consumer asked to stop before the end.
    pub stopped: bool,
}

/// What becomes of requests for durability.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dsyncs {
    /// They are left out: a buffer pool knows none.
    Skip,
    /// They are handed on.
    Keep,
}

fn fill(
    source: &mut dyn Source,
    renumber: Option<&mut Renumber>,
    reading: Reading,
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
    if let Some(renumber) = renumber {
        renumber.apply(batch);
    }
    Ok(batch.len())
}

/// Hands the whole trace to `consume`, batch by batch.
pub(crate) fn stream(
    mut source: Box<dyn Source>,
    mut renumber: Option<&mut Renumber>,
    reading: Reading,
    mut consume: impl FnMut(&Batch, Option<f64>) -> ControlFlow<()>,
) -> Result<Streamed, TraceError> {
    let mut result = Streamed::default();
    if !reading.ahead {
        let mut batch = Batch::with_capacity(reading.len);
        while fill(source.as_mut(), renumber.as_deref_mut(), reading, &mut batch)? > 0 {
            result.references += batch.len() as u64;
            if consume(&batch, source.progress()).is_break() {
                result.stopped = true;
                break;
            }
        }
        result.notes = source.notes();
        return Ok(result);
    }
    std::thread::scope(|scope| {
        let (full_in, full_out) = sync_channel::<(Batch, Option<f64>)>(2);
        let (empty_in, empty_out) = sync_channel::<Batch>(4);
        let reader = scope.spawn(move || -> Result<Vec<String>, TraceError> {
            loop {
                let mut batch =
                    empty_out.try_recv().unwrap_or_else(|_| Batch::with_capacity(reading.len));
                if fill(source.as_mut(), renumber.as_deref_mut(), reading, &mut batch)? == 0 {
                    break;
                }
                let progress = source.progress();
                if full_in.send((batch, progress)).is_err() {
                    break; // The consumer has had enough.
                }
            }
            Ok(source.notes())
        });
        for (batch, progress) in &full_out {
            result.references += batch.len() as u64;
            if consume(&batch, progress).is_break() {
                result.stopped = true;
                break;
            }
            // The pile of empty batches may be full: then this one is simply dropped.
            let _ = empty_in.try_send(batch);
        }
        drop(full_out);
        match reader.join() {
            Ok(notes) => result.notes = notes?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(result)
    })
}
