//! Transactions as what a simulated first tier asks of storage for them.

use millpond_base::Mark;
use millpond_policies::policy::Lru;
use millpond_workload::trace::{Batch, Source, TraceError};

use crate::storage::Requests;
use millpond_lab::tier1::{Tier1, Tier1Options};

/// A pool under LRU, and how many page references a transaction has.
pub(super) struct Served {
    tier: Tier1,
    per: u64,
    row: Batch,
    /// The transaction to which the row belongs.
    of: u64,
    next: u64,
    transactions: u64,
}

impl Served {
    /// `transactions` transactions of `per` references each, above a pool like `options`.
    pub fn new(
        options: &Tier1Options,
        source: Box<dyn Source>,
        per: u64,
        transactions: u64,
    ) -> Served {
        let tier = Tier1::new::<Lru>(&Default::default(), options, source);
        Served { tier, per: per.max(1), row: Batch::default(), of: 0, next: 0, transactions }
    }
}

impl Requests for Served {
    fn next(&mut self, rows: &mut Vec<(u64, Mark)>) -> Result<bool, TraceError> {
        if self.next == self.transactions {
            return Ok(false);
        }
        loop {
            if self.row.is_empty() {
                if self.tier.fill(&mut self.row, 1)? == 0 {
                    break;
                }
                self.of = (self.tier.counts().references - 1) / self.per;
            }
            if self.of > self.next {
                break;
            }
            rows.push((self.row.pages[0], self.row.marks[0]));
            self.row.clear();
        }
        self.next += 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pages(Vec<u64>, usize);

    impl Source for Pages {
        fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
            let end = self.0.len().min(self.1 + limit);
            self.0[self.1..end].iter().for_each(|page| batch.push(*page, Mark::READ));
            Ok(end - std::mem::replace(&mut self.1, end))
        }
    }

    #[test]
    fn each_transaction_has_the_requests_of_its_references() {
        let source = Pages(vec![1, 2, 1, 1, 1, 2, 3, 4, 5], 0);
        let mut served = Served::new(&Tier1Options::new(100, 100), Box::new(source), 2, 4);
        let mut pages = Vec::new();
        loop {
            let mut rows = Vec::new();
            if !served.next(&mut rows).unwrap() {
                break;
            }
            pages.push(rows.into_iter().map(|(page, _)| page).collect::<Vec<_>>());
        }
        assert_eq!(pages, [vec![1, 2], vec![], vec![], vec![3, 4]], "the ninth is of no whole one");
    }
}
