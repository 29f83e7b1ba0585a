//! ARC, CAR and CART, as their papers' figures have them; all lists newest last.

use crate::model::Outcome;

use super::twin::{Twin, missed, remove};

/// `max(1, a / b)`, real or whole.
fn step(a: usize, b: usize, real: bool) -> f64 {
    let quotient = a as f64 / b as f64;
    if real { quotient.max(1.0) } else { quotient.floor().max(1.0) }
}

/// ARC (FAST 2003, figure 4).
#[derive(Default)]
pub struct ArcTwin {
    pub c: usize,
    pub real: bool,
    pub p: f64,
    pub t1: Vec<u64>,
    pub t2: Vec<u64>,
    pub b1: Vec<u64>,
    pub b2: Vec<u64>,
}

impl ArcTwin {
    fn replace(&mut self, is_in_b2: bool) -> u64 {
        let t1 = self.t1.len() as f64;
        if !self.t1.is_empty() && (t1 > self.p || (is_in_b2 && t1 == self.p)) {
            let victim = self.t1.remove(0);
            self.b1.push(victim);
            victim
        } else {
            let victim = self.t2.remove(0);
            self.b2.push(victim);
            victim
        }
    }

    /// Case IV: a page without a ghost.
    fn make_room(&mut self) -> Option<u64> {
        let in_cache = self.t1.len() + self.t2.len();
        let all = in_cache + self.b1.len() + self.b2.len();
        if self.t1.len() + self.b1.len() == self.c {
            if self.t1.len() == self.c {
                return Some(self.t1.remove(0));
            }
            self.b1.remove(0);
            return Some(self.replace(false));
        }
        if all < self.c {
            return None;
        }
        if all == 2 * self.c {
            self.b2.remove(0);
        }
        (in_cache == self.c).then(|| self.replace(false))
    }
}

impl Twin for ArcTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        if remove(&mut self.t1, page) || remove(&mut self.t2, page) {
            self.t2.push(page);
            return Outcome::Hit;
        }
        let (b1, b2) = (self.b1.len(), self.b2.len());
        let in_b2 = self.b2.contains(&page);
        if !in_b2 && !self.b1.contains(&page) {
            let victim = self.make_room();
            self.t1.push(page);
            return missed(victim);
        }
        self.p = if in_b2 {
            (self.p - step(b1, b2, self.real)).max(0.0)
        } else {
            (self.p + step(b2, b1, self.real)).min(self.c as f64)
        };
        let victim = self.replace(in_b2);
        let _ = remove(&mut self.b1, page) || remove(&mut self.b2, page);
        self.t2.push(page);
        Outcome::Replaced(victim)
    }
}

/// CAR (FAST 2004, figure 2). Clocks are lists whose front is under the hand.
#[derive(Default)]
pub struct CarTwin {
    pub c: usize,
    pub real: bool,
    pub p: f64,
    pub t1: Vec<(u64, bool)>,
    pub t2: Vec<(u64, bool)>,
    pub b1: Vec<u64>,
    pub b2: Vec<u64>,
}

impl CarTwin {
    fn replace(&mut self) -> u64 {
        loop {
            if self.t1.len() as f64 >= self.p.max(1.0) {
                let (page, marked) = self.t1.remove(0);
                if !marked {
                    self.b1.push(page);
                    return page;
                }
                self.t2.push((page, false));
            } else {
                let (page, marked) = self.t2.remove(0);
                if !marked {
                    self.b2.push(page);
                    return page;
                }
                self.t2.push((page, false));
            }
        }
    }
}

impl Twin for CarTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        if let Some(slot) = self.t1.iter_mut().chain(&mut self.t2).find(|s| s.0 == page) {
            slot.1 = true;
            return Outcome::Hit;
        }
        let mut victim = None;
        let (in_b1, in_b2) = (self.b1.contains(&page), self.b2.contains(&page));
        if self.t1.len() + self.t2.len() == self.c {
            victim = Some(self.replace());
            let all = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
            if !in_b1 && !in_b2 && self.t1.len() + self.b1.len() == self.c {
                self.b1.remove(0);
            } else if !in_b1 && !in_b2 && all == 2 * self.c {
                self.b2.remove(0);
            }
        }
        let (b1, b2) = (self.b1.len(), self.b2.len());
        if in_b1 {
            self.p = (self.p + step(b2, b1, self.real)).min(self.c as f64);
        } else if in_b2 {
            self.p = (self.p - step(b1, b2, self.real)).max(0.0);
        }
        let was_remembered = remove(&mut self.b1, page) || remove(&mut self.b2, page);
        if was_remembered {
            self.t2.push((page, false))
        } else {
            self.t1.push((page, false))
        }
        missed(victim)
    }
}

/// A page of CART: its bit, and whether its utility is taken for long-term.
#[derive(Clone, Copy)]
pub struct Filtered {
    page: u64,
    marked: bool,
    long: bool,
}

/// CART (FAST 2004, figure 3).
#[derive(Default)]
pub struct CartTwin {
    pub c: usize,
    pub real: bool,
    /// `min` of the paper's figure, or `max` of the Caffeine simulator.
    pub filter_min: bool,
    pub p: f64,
    pub q: i64,
    pub t1: Vec<Filtered>,
    pub t2: Vec<Filtered>,
    pub b1: Vec<u64>,
    pub b2: Vec<u64>,
}

impl CartTwin {
    fn short(&self) -> usize {
        self.t1.iter().filter(|f| !f.long).count()
    }

    fn long(&self) -> usize {
        self.t1.len() + self.t2.len() - self.short()
    }

    fn raise_q(&mut self) {
        if self.t2.len() + self.b2.len() + self.t1.len() - self.short() >= self.c {
            self.q = (self.q + 1).min(2 * self.c as i64 - self.t1.len() as i64);
        }
    }

    fn replace(&mut self) -> u64 {
        while self.t2.first().is_some_and(|f| f.marked) {
            let page = self.t2.remove(0);
            self.t1.push(Filtered { marked: false, ..page });
            self.raise_q();
        }
        while self.t1.first().is_some_and(|f| f.marked || f.long) {
            let first = self.t1.remove(0);
            if first.marked {
                self.t1.push(Filtered { marked: false, ..first });
                let (t1, b1) = (self.t1.len() as f64, self.b1.len() as f64);
                let enough =
                    if self.filter_min { (self.p + 1.0).min(b1) } else { (self.p + 1.0).max(b1) };
                if t1 >= enough {
                    self.t1.last_mut().expect("it was pushed just now").long = true;
                }
            } else {
                self.t2.push(first);
                self.q = (self.q - 1).max(self.c as i64 - self.t1.len() as i64);
            }
        }
        if self.t1.len() as f64 >= self.p.max(1.0) {
            let page = self.t1.remove(0).page;
            self.b1.push(page);
            page
        } else {
            let page = self.t2.remove(0).page;
            self.b2.push(page);
            page
        }
    }
}

impl Twin for CartTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        if let Some(slot) = self.t1.iter_mut().chain(&mut self.t2).find(|f| f.page == page) {
            slot.marked = true;
            return Outcome::Hit;
        }
        let mut victim = None;
        let (in_b1, in_b2) = (self.b1.contains(&page), self.b2.contains(&page));
        if self.t1.len() + self.t2.len() == self.c {
            victim = Some(self.replace());
            if !in_b1 && !in_b2 && self.b1.len() + self.b2.len() == self.c + 1 {
                if self.b1.len() as i64 > self.q.max(0) || self.b2.is_empty() {
                    self.b1.remove(0);
                } else {
                    self.b2.remove(0);
                }
            }
        }
        if in_b1 {
            self.p = (self.p + step(self.short(), self.b1.len(), self.real)).min(self.c as f64);
        } else if in_b2 {
            self.p = (self.p - step(self.long(), self.b2.len(), self.real)).max(0.0);
        }
        let long = remove(&mut self.b1, page) || remove(&mut self.b2, page);
        self.t1.push(Filtered { page, marked: false, long });
        if in_b2 {
            self.raise_q();
        }
        missed(victim)
    }
}
