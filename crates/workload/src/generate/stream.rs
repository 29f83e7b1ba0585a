//! Adapter from a generator of single references to a trace.

use millpond_base::Mark;

use crate::trace::{Batch, Source, TraceError};

/// Generator of references, one at a time.
pub(crate) trait References: Send {
    /// Returns the next reference; `None` at the end.
    fn next(&mut self) -> Option<(u64, Mark)>;
}

/// A generator as a trace.
pub(crate) struct Stream<G>(pub G);

impl<G: References> Source for Stream<G> {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        for n in 0..limit {
            match self.0.next() {
                Some((page, mark)) => batch.push(page, mark),
                None => return Ok(n),
            }
        }
        Ok(limit)
    }
}
