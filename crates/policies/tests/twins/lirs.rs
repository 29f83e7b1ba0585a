//! LIRS (SIGMETRICS 2002), with a limited stack and with repetitions ignored, as its authors'
//! program has it.

use std::collections::HashSet;

use crate::model::Outcome;

use super::twin::{Twin, missed, remove};

/// LIRS: the stack newest last, the queue's next victim first.
pub struct LirsTwin {
    pub frames: usize,
    /// LIR pages there may be.
    pub lir_max: usize,
    pub stack_max: usize,
    pub stack: Vec<u64>,
    pub queue: Vec<u64>,
    pub lir: HashSet<u64>,
    pub last: Option<u64>,
}

impl LirsTwin {
    pub fn new(frames: usize, lir_max: usize, stack_max: usize) -> LirsTwin {
        let (stack, queue, lir) = (Vec::new(), Vec::new(), HashSet::new());
        LirsTwin { frames, lir_max, stack_max, stack, queue, lir, last: None }
    }

    /// Only a LIR page may be at the bottom.
    fn prune(&mut self) {
        while self.stack.first().is_some_and(|page| !self.lir.contains(page)) {
            self.stack.remove(0);
        }
    }

    /// `page` becomes LIR; if that is one too many, the page at the bottom is HIR now.
    fn promote(&mut self, page: u64) {
        self.lir.insert(page);
        if self.lir.len() > self.lir_max {
            let bottom = self.stack.remove(0);
            self.lir.remove(&bottom);
            self.queue.push(bottom);
            self.prune();
        }
    }

    /// The oldest HIR page of too long a stack is dropped from it.
    fn limit(&mut self) {
        if self.stack.len() > self.stack_max {
            let oldest = self.stack.iter().position(|page| !self.lir.contains(page));
            oldest.map(|at| self.stack.remove(at));
        }
    }
}

impl Twin for LirsTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        if self.last.replace(page) == Some(page) {
            return Outcome::Hit;
        }
        let was_lir = self.lir.contains(&page);
        let was_queued = remove(&mut self.queue, page);
        let mut outcome = Outcome::Hit;
        if !was_lir && !was_queued {
            let is_full = self.lir.len() + self.queue.len() == self.frames;
            outcome = missed(is_full.then(|| self.queue.remove(0)));
        }
        let was_stacked = remove(&mut self.stack, page);
        self.stack.push(page);
        if was_lir {
            self.prune();
        } else if was_stacked && self.lir_max > 0 || self.lir.len() < self.lir_max {
            self.promote(page);
        } else {
            self.queue.push(page);
        }
        self.limit();
        outcome
    }
}
