//! Traces of an experiment, made or recorded when needed, and kept as long.

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
    /// A recording of the engine, by a caller that can run it.
    Recorded,
}

/// Records a trace of the engine, by name, scale and repetition, which is also the seed.
pub type Record =
    Box<dyn FnMut(&str, Scale, u64, &mut dyn Watch) -> Result<Batch, FigureError> + Send>;

/// Traces of one experiment; the last used ones are kept.
pub struct Library {
    scale: Scale,
    record: Record,
    kinds: Vec<(&'static str, TraceKind)>,
    kept: Vec<std::sync::Arc<Recorded>>,
}

/// Number of traces kept in memory, about 16 MB each.
const KEPT: usize = 8;

impl Library {
    /// Creates a library of traces of these names and kinds.
    pub fn new(scale: Scale, kinds: &[(&'static str, TraceKind)], record: Record) -> Library {
        Library { scale, record, kinds: kinds.to_vec(), kept: Vec::new() }
    }

    /// Returns the trace called `name`, made with the repetition as seed.
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

/// Returns a generator's trace of its default length, which is the paper's, or a small one for
/// smoke tests.
///
/// # Errors
/// [`FigureError`] for an unknown generator.
pub fn generated(name: &str, scale: Scale, seed: u64) -> Result<Batch, FigureError> {
    let params = if scale == Scale::Quick { "pages=1k,refs=20k" } else { "" };
    let params = parse_params(params).map_err(FigureError::of)?;
    let mut source = generate(name, &params, Seed(seed)).map_err(FigureError::of)?;
    let mut batch = Batch::default();
    while source.fill(&mut batch, BATCH_LEN).map_err(FigureError::of)? > 0 {}
    Ok(batch)
}
