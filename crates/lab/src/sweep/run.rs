//! Running a sweep.
//!
//! Cells of one trace advance in lock-step: a batch of references is decoded once and every cell
//! simulates it, with the cells distributed among the cores. Cells come in waves, so that memory
//! stays bounded and finished rows appear early. A trace is kept in memory only if a policy needs
//! the future, or if its input needs two passes and can be read only once.

use std::ops::ControlFlow;
use std::time::Duration;

use millpond_base::Size;
use millpond_workload::trace::{Batch, TraceError};
use rayon::prelude::*;

use super::blocks::Blocks;
use super::charge::charged_frames;
use super::check::{check, threads_for};
use super::error::SweepError;
use super::host::{Host, Outlook};
use super::plan::{Model, Plan, Slot, Tables, TraceInput, Warmup};
use super::room::Room;
use super::row::{CONTENT, OPTIONS, Row};
use super::stream::{ALONE_LEN, Dsyncs, Reading, STREAM_LEN, stream};
use crate::registry::Registry;
use crate::sim::{Renumber, SimOptions, Stalled};

/// Receives the progress of a sweep.
pub trait Observer {
    /// Returns `true` to stop now and keep the finished rows. The method is called often.
    fn stop(&self) -> bool {
        false
    }

    /// Reports a pass over a trace: its purpose, the share read if known, and the references
    /// simulated so far over all cells.
    fn progress(&mut self, _what: &str, _share: Option<f64>, _simulated: u64) {}

    /// Receives the row of a finished run. Rows come in the order of the plan.
    ///
    /// # Errors
    /// Any failure to write the row; the sweep stops.
    fn row(&mut self, row: Row) -> Result<(), SweepError>;

    /// Called after some rows were handed out while more will come, which is a good moment to store
    /// them.
    ///
    /// # Errors
    /// Any failure to store them; the sweep stops.
    fn pause(&mut self) -> Result<(), SweepError> {
        Ok(())
    }

    /// Reports a run that could not be finished; the other runs continue.
    fn stalled(&mut self, stalled: &Stalled);

    /// Reports a note on a trace that the user should see.
    fn note(&mut self, _trace: &str, _note: &str) {}

    /// Returns `true` if an earlier run left this row.
    fn done(&mut self, _trace: &str, _policy: &str, _params: &str, _size: u32, _seed: u64) -> bool {
        false
    }
}

/// A sweep, ready to run.
pub struct Sweep<'a> {
    plan: &'a Plan,
    registry: &'a Registry,
    threads: rayon::ThreadPool,
}

struct Running {
    slot: Slot,
    frames: u32,
    host: Host,
    nanoseconds: u128,
    references: u64,
    blocks: Blocks,
    stalled: Option<Stalled>,
}

impl Running {
    fn run(&mut self, batch: &Batch, outlook: Option<&Outlook>) {
        if self.stalled.is_some() {
            return;
        }
        let start = thread_cpu_time();
        let (host, references) = (&mut self.host, self.references);
        self.stalled = self.blocks.run(host, references, batch, outlook).err();
        self.nanoseconds += thread_cpu_time().saturating_sub(start).as_nanos();
        self.references += batch.len() as u64;
    }
}

/// Returns the CPU time of this thread, which does not grow while other threads have the core.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Facts about a trace after a first pass.
#[derive(Default)]
struct Known {
    renumber: Renumber,
    references: Option<u64>,
    content: u64,
    in_memory: Option<(Batch, Outlook)>,
    noted: bool,
}

impl<'a> Sweep<'a> {
    /// Checks the plan.
    ///
    /// # Errors
    /// [`SweepError`] for faults that are visible before anything runs.
    pub fn new(plan: &'a Plan, registry: &'a Registry) -> Result<Sweep<'a>, SweepError> {
        check(plan, registry)?;
        let threads = threads_for(plan.threads, plan.cells(registry));
        let threads = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let threads =
            threads.map_err(|e| SweepError::Plan(format!("cannot start threads: {e}")))?;
        Ok(Sweep { plan, registry, threads })
    }

    /// Runs all cells, and stops early if the observer asks for that.
    ///
    /// # Errors
    /// [`SweepError`]; rows handed out before the error stay valid.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<(), SweepError> {
        for (index, trace) in self.plan.traces.iter().enumerate() {
            let slots = self.plan.slots(index, self.registry);
            if slots.is_empty() || observer.stop() {
                continue;
            }
            self.run_trace(trace, &slots, observer)?;
        }
        Ok(())
    }

    fn is_parallel(&self) -> bool {
        self.threads.current_num_threads() > 1
    }

    fn reading(&self, len: usize) -> Reading {
        let is_pool = self.plan.model == Model::Pool;
        let dsyncs = if is_pool { Dsyncs::Skip } else { Dsyncs::Keep };
        Reading { dsyncs, ahead: self.is_parallel(), len }
    }

    fn run_trace(
        &self,
        trace: &TraceInput,
        slots: &[Slot],
        observer: &mut dyn Observer,
    ) -> Result<(), SweepError> {
        let Some(mut known) = self.first_pass(trace, slots, observer)? else { return Ok(()) };
        let pages = known.renumber.distinct();
        let mut wanted = Vec::new();
        for &slot in slots {
            let frames = self.frames_of(slot, pages)?;
            let spec = &self.plan.policies[slot.policy];
            let params = params_text(spec);
            if !observer.done(&trace.name, &spec.id, &params, frames, slot.seed) {
                wanted.push((slot, frames));
            }
        }
        let waves: Vec<_> = wanted.chunks(self.wave_len(&wanted)?).collect();
        if waves.len() > 1 && !trace.repeatable && known.in_memory.is_none() {
            return Err(SweepError::Plan(format!(
                "{} can be read only once, and {} runs need {} passes: store it in a file",
                trace.name,
                wanted.len(),
                waves.len()
            )));
        }
        for wave in waves {
            if observer.stop() || !self.run_wave(trace, wave, &mut known, observer)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads a trace beforehand if sizes in percent, a warm-up in percent, blocks or the future
    /// need it. Returns `None` if the observer asked to stop in the meantime.
    fn first_pass(
        &self,
        trace: &TraceInput,
        slots: &[Slot],
        observer: &mut dyn Observer,
    ) -> Result<Option<Known>, SweepError> {
        let plan = self.plan;
        let mut known = Known::default();
        let mut future = false;
        for slot in slots {
            future |= self.registry.find(&plan.policies[slot.policy].id)?.needs_future;
        }
        let share = slots.iter().any(|s| matches!(plan.sizes[s.size], Size::Share(_)));
        let share = share || matches!(plan.warmup, Warmup::Share(_)) || plan.blocks > 0;
        if !future && !share {
            return Ok(Some(known));
        }
        // Standard input cannot be read twice, so anything that needs two passes needs memory.
        let keep = future || !trace.repeatable;
        let mut whole = Batch::default();
        let source = (trace.open)()?;
        let streamed =
            stream(source, Some(&mut known.renumber), self.reading(STREAM_LEN), |batch, p| {
                if keep {
                    whole.pages.extend_from_slice(&batch.pages);
                    whole.marks.extend_from_slice(&batch.marks);
                }
                observer.progress(&format!("{}: first pass", trace.name), p, 0);
                if observer.stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        if streamed.stopped {
            return Ok(None);
        }
        note_once(&mut known.noted, trace, &streamed.notes, observer);
        if streamed.references == 0 {
            return Err(TraceError::Empty { path: trace.name.clone().into() }.into());
        }
        known.references = Some(streamed.references);
        known.content = streamed.content;
        if keep {
            let outlook = Outlook::of(plan.model, &whole, known.renumber.distinct());
            known.in_memory = Some((whole, outlook));
        }
        Ok(Some(known))
    }

    /// Returns the number of cells that run at once: several for each thread, limited by the
    /// memory.
    fn wave_len(&self, wanted: &[(Slot, u32)]) -> Result<usize, SweepError> {
        let most = (self.threads.current_num_threads() * 8).max(8);
        let mut room = Room::now();
        for (slot, frames) in wanted {
            let entry = self.registry.find(&self.plan.policies[slot.policy].id)?;
            let room = room.add(&entry.info, u64::from(*frames));
            room.map_err(|e| SweepError::Plan(e.to_string()))?;
        }
        Ok(room.at_once(most))
    }

    fn frames_of(&self, slot: Slot, pages: u64) -> Result<u32, SweepError> {
        let plan = self.plan;
        let frames = plan.sizes[slot.size].frames(plan.page_size, pages);
        // The limit is half the range of u32, because lists and tables use the rest as marks.
        let frames = u32::try_from(frames).ok().filter(|f| *f < u32::MAX / 2).ok_or_else(|| {
            SweepError::Plan(format!("a cache of {frames} frames is too large: at most 2^31"))
        })?;
        if frames < plan.batch {
            let batch = plan.batch;
            return Err(SweepError::Plan(format!(
                "a cache of {frames} frames cannot evict {batch} at a time"
            )));
        }
        let spec = &plan.policies[slot.policy];
        let entry = self.registry.find(&spec.id)?;
        Ok(charged_frames(entry, spec, frames, plan.charge_ghosts, plan.page_size)?)
    }

    /// Runs some cells of a trace; returns `false` if the observer asked to stop.
    fn run_wave(
        &self,
        trace: &TraceInput,
        wave: &[(Slot, u32)],
        known: &mut Known,
        observer: &mut dyn Observer,
    ) -> Result<bool, SweepError> {
        let plan = self.plan;
        let dense = match plan.tables {
            Tables::Dense => true,
            Tables::Hashed => known.in_memory.is_some(),
            Tables::Auto => trace.repeatable || wave.len() > 1 || known.references.is_some(),
        };
        let mut cells = Vec::new();
        for &(slot, frames) in wave {
            cells.push(self.start(slot, frames, dense, known)?);
        }
        let what = format!("{}: {} runs", trace.name, cells.len());
        let mut simulated = 0;
        let mut step = |cells: &mut Vec<Running>,
                        batch: &Batch,
                        share: Option<f64>,
                        outlook: Option<&Outlook>,
                        observer: &mut dyn Observer| {
            if self.is_parallel() && cells.len() > 1 {
                self.threads.install(|| cells.par_iter_mut().for_each(|c| c.run(batch, outlook)));
            } else {
                cells.iter_mut().for_each(|c| c.run(batch, outlook));
            }
            simulated += batch.len() as u64 * cells.len() as u64;
            observer.progress(&what, share, simulated);
            if observer.stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = if let Some((whole, outlook)) = &known.in_memory {
            let mut stopped = false;
            let mut part = Batch::default();
            for start in (0..whole.len()).step_by(STREAM_LEN) {
                let end = (start + STREAM_LEN).min(whole.len());
                part.clear();
                part.pages.extend_from_slice(&whole.pages[start..end]);
                part.marks.extend_from_slice(&whole.marks[start..end]);
                let share = Some(end as f64 / whole.len() as f64);
                stopped |= step(&mut cells, &part, share, Some(outlook), observer).is_break();
                if stopped {
                    break;
                }
            }
            stopped
        } else {
            let renumber = dense.then_some(&mut known.renumber);
            let len = if wave.len() == 1 { ALONE_LEN } else { STREAM_LEN };
            let streamed = stream((trace.open)()?, renumber, self.reading(len), |batch, share| {
                step(&mut cells, batch, share, None, observer)
            })?;
            note_once(&mut known.noted, trace, &streamed.notes, observer);
            if streamed.references == 0 && !streamed.stopped {
                return Err(TraceError::Empty { path: trace.name.clone().into() }.into());
            }
            known.content = streamed.content;
            streamed.stopped
        };
        if stopped {
            return Ok(false);
        }
        for cell in cells {
            self.finish(trace, known.content, cell, observer)?;
        }
        observer.pause()?;
        Ok(true)
    }

    fn start(
        &self,
        slot: Slot,
        frames: u32,
        dense: bool,
        known: &Known,
    ) -> Result<Running, SweepError> {
        let spec = &self.plan.policies[slot.policy];
        let entry = self.registry.find(&spec.id)?;
        let warmup = match self.plan.warmup {
            Warmup::References(n) => n,
            Warmup::Share(s) => (s * known.references.unwrap_or(0) as f64) as u64,
        };
        let options = SimOptions {
            frames,
            pages_dense: dense.then(|| known.renumber.distinct()),
            seed: slot.seed,
            warmup,
            batch: self.plan.batch,
            scan_hints: self.plan.scan_hints,
        };
        let host = Host::new(entry, spec, &options, self.plan.model)?;
        let counted = warmup..known.references.unwrap_or(0);
        let blocks = Blocks::new(self.plan.blocks, counted).map_err(SweepError::Plan)?;
        Ok(Running { slot, frames, host, nanoseconds: 0, references: 0, blocks, stalled: None })
    }

    fn finish(
        &self,
        trace: &TraceInput,
        content: u64,
        cell: Running,
        observer: &mut dyn Observer,
    ) -> Result<(), SweepError> {
        if let Some(stalled) = &cell.stalled {
            observer.stalled(stalled);
            return Ok(());
        }
        let spec = &self.plan.policies[cell.slot.policy];
        let measured = cell.host.measured();
        if measured.counts.references == 0 && self.plan.warmup != Warmup::References(0) {
            return Err(SweepError::Plan(format!(
                "{}: the warm-up is longer than the trace of {} references: nothing is counted",
                trace.name, cell.references
            )));
        }
        let mut extra = measured.extra;
        extra.push((CONTENT, format!("{content:016x}").into()));
        extra.push((OPTIONS, self.plan.options().into()));
        let row = Row {
            trace: trace.name.clone(),
            policy: spec.id.clone(),
            params: params_text(spec),
            size: cell.frames,
            seed: cell.slot.seed,
            counts: measured.counts,
            misses: measured.misses,
            writes: measured.writes,
            ns_per_reference: cell.nanoseconds as f64 / cell.references.max(1) as f64,
            extra,
        };
        match self.plan.blocks {
            0 => observer.row(row),
            _ => cell.blocks.rows(&row).into_iter().try_for_each(|row| observer.row(row)),
        }
    }
}

fn note_once(noted: &mut bool, trace: &TraceInput, notes: &[String], observer: &mut dyn Observer) {
    if !std::mem::replace(noted, true) {
        notes.iter().for_each(|note| observer.note(&trace.name, note));
    }
}

fn params_text(spec: &millpond_policies::config::Spec) -> String {
    let pairs: Vec<String> = spec.params.iter().map(|(n, v)| format!("{n}={v}")).collect();
    pairs.join(",")
}
