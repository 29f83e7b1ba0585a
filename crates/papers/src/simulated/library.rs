//! The traces of an experiment: made or recorded when they are needed, kept while they are.

use millpond_base::Seed;
use millpond_workload::generate::{generate, parse_params};
use millpond_workload::trace::{BATCH_LEN, Batch};

use crate::experiment::{FigureError, Scale, Watch};
use millpond_lab::sim::Recorded;

/// Source of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceKind {
    /// One of the generators of `millpond trace gen`, by its name.
    Generated,
    /// Recorded from the engine, by a caller that can run it.
    Recorded,
}

/// Records a trace of the engine: its name, the scale, the repetition, which is the seed.
pub type Record =
    Box<dyn FnMut(&str, Scale, u64, &mut dyn Watch) -> Result<Batch, FigureError> + Send>;

/// The traces of one experiment; the last ones that were used are kept.
pub struct Library {
    scale: Scale,
    record: Record,
    kinds: Vec<(&'static str, TraceKind)>,
    kept: Vec<std::sync::Arc<Recorded>>,
}

/// Traces that are kept in memory: about 16 MB each.
const KEPT: usize = 8;

impl Library {
    /// Traces of these names and kinds.
    pub fn new(scale: Scale, kinds: &[(&'static str, TraceKind)], record: Record) -> Library {
        Library { scale, record, kinds: kinds.to_vec(), kept: Vec::new() }
    }

    /// The trace called `name`, made with the repetition as seed.
    ///
    /// # Errors
    /// [`FigureError`].
    pub fn trace(
        &mut self,
        name: &str,
        repetition: u32,
        watch: &mut dyn Watch,
    ) -> Result<std::sync::Arc<Recorded>, FigureError> {
        let is_it =
            |kept: &std::sync::Arc<Recorded>| kept.name == name && kept.repetition == repetition;
        if let Some(kept) = self.kept.iter().find(|kept| is_it(kept)) {
            return Ok(kept.clone());
        }
        watch.detail(&format!("making the trace {name}"));
        let kind = self.kinds.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let batch = match kind {
            Some(TraceKind::Recorded) => {
                (self.record)(name, self.scale, u64::from(repetition), watch)?
            }
            _ => generated(name, self.scale, u64::from(repetition))?,
        };
        let made = std::sync::Arc::new(Recorded::of(name, repetition, batch));
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        self.kept.push(made.clone());
        Ok(made)
    }
}

/// A generator's trace as long as its default, which is the paper's; a small one for smoke tests.
///
/// # Errors
/// [`FigureError`] for a generator that there is not.
pub fn generated(name: &str, scale: Scale, seed: u64) -> Result<Batch, FigureError> {
    let params = if scale == Scale::Quick { "pages=1k,refs=20k" } else { "" };
    let params = parse_params(params).map_err(FigureError::of)?;
    let mut source = generate(name, &params, Seed(seed)).map_err(FigureError::of)?;
    let mut batch = Batch::default();
    while source.fill(&mut batch, BATCH_LEN).map_err(FigureError::of)? > 0 {}
    Ok(batch)
}
