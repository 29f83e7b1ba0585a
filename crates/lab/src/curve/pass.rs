//! Curves of a trace file: one pass counts its pages, a second one draws the curves.

use std::ops::ControlFlow;

use millpond_base::Size;
use millpond_policies::config::Spec;
use millpond_workload::trace::{Batch, TraceError};

use super::run::{Curve, CurveError, Point, curve_sizes};
use crate::registry::Registry;
use crate::sim::{Future, Renumber};
use crate::sweep::TraceInput;
use crate::sweep::stream::{Dsyncs, Reading, STREAM_LEN, stream};

const READING: Reading = Reading { dsyncs: Dsyncs::Skip, ahead: true, len: STREAM_LEN };

/// Request for curves of a trace.
pub struct CurveTask<'a> {
    /// The registry of the policies.
    pub registry: &'a Registry,
    /// The policies to draw.
    pub policies: &'a [Spec],
    /// Cache sizes; if empty, 24 sizes from 1/1000 of the distinct pages to all of them.
    pub sizes: &'a [Size],
    /// Bytes per page, for sizes in bytes.
    pub page_size: u64,
    /// Seed of the policies' random choices.
    pub seed: u64,
    /// `true` if every point is also simulated exactly.
    pub check: bool,
}

/// A point with its exact value, if the task asked for it.
pub struct CurveRow {
    /// The point.
    pub point: Point,
    /// The exact miss ratio.
    pub exact: Option<f64>,
}

/// The points of some curves over a trace.
pub struct Curves {
    /// The points, policy by policy, sizes ascending; empty if the run was stopped.
    pub rows: Vec<CurveRow>,
    /// Hash of the trace's references, as defined by [`Content`](crate::sweep::Content).
    pub content: u64,
    /// The reader's notes on the trace.
    pub notes: Vec<String>,
}

const POINTS: u32 = 24;

impl CurveTask<'_> {
    /// Draws the curves over `trace`. `step` receives the progress (name of the pass, the share
    /// read, references so far) and returns `true` to stop; a stopped run has no rows.
    ///
    /// # Errors
    /// [`CurveError`].
    pub fn run(
        &self,
        trace: &TraceInput,
        step: &mut dyn FnMut(&str, Option<f64>, u64) -> bool,
    ) -> Result<Curves, CurveError> {
        Size::check_all(self.sizes, self.page_size)?;
        let flow = |stop| if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let probe = Curve::new(self.registry, self.policies, vec![1], 1, self.seed)?;
        let keep = probe.needs_future() || self.check || !trace.repeatable;
        let (mut renumber, mut whole) = (Renumber::new(), Batch::default());
        let counted = stream((trace.open)()?, Some(&mut renumber), READING, |batch, share| {
            if keep {
                whole.pages.extend_from_slice(&batch.pages);
                whole.marks.extend_from_slice(&batch.marks);
            }
            flow(step("first pass", share, 0))
        })?;
        let (content, notes) = (counted.content, counted.notes);
        if counted.stopped {
            return Ok(Curves { rows: Vec::new(), content, notes });
        }
        if counted.references == 0 {
            return Err(TraceError::Empty { path: trace.name.clone().into() }.into());
        }
        let pages = renumber.distinct();
        let future = keep.then(|| Future::of(&whole, pages));
        let mut curve =
            Curve::new(self.registry, self.policies, self.sizes(pages), pages, self.seed)?;
        let stopped = if keep {
            self.over_memory(&whole, future.as_ref(), &mut curve, step)?
        } else {
            let (mut done, mut failed) = (0, None);
            let streamed =
                stream((trace.open)()?, Some(&mut renumber), READING, |batch, share| {
                    failed = curve.run(batch, None).err();
                    done += batch.len() as u64;
                    flow(failed.is_some() || step("curves", share, done))
                })?;
            failed.map_or(Ok(()), Err)?;
            streamed.stopped
        };
        if stopped {
            return Ok(Curves { rows: Vec::new(), content, notes });
        }
        let mut exact = Vec::new();
        if self.check {
            step("exact runs", None, 0);
            exact = curve.exact(&whole, future.as_ref(), pages, self.seed)?;
        }
        let mut exact = exact.into_iter();
        let rows = curve.points().into_iter();
        let rows = rows.map(|point| CurveRow { point, exact: exact.next() }).collect();
        Ok(Curves { rows, content, notes })
    }

    fn over_memory(
        &self,
        whole: &Batch,
        future: Option<&Future>,
        curve: &mut Curve<'_>,
        step: &mut dyn FnMut(&str, Option<f64>, u64) -> bool,
    ) -> Result<bool, CurveError> {
        for start in (0..whole.len()).step_by(STREAM_LEN) {
            let end = (start + STREAM_LEN).min(whole.len());
            let mut part = Batch::default();
            part.pages.extend_from_slice(&whole.pages[start..end]);
            part.marks.extend_from_slice(&whole.marks[start..end]);
            curve.run(&part, future)?;
            if step("curves", Some(end as f64 / whole.len() as f64), end as u64) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sizes(&self, pages: u64) -> Vec<u64> {
        if self.sizes.is_empty() {
            return curve_sizes(pages, POINTS);
        }
        let mut sizes: Vec<u64> =
            self.sizes.iter().map(|s| s.frames(self.page_size, pages)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}
