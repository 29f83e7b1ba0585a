//! Who waits where, and the search for circles (rule 7).
//!
//! Only owners that wait are in here. What they wait for is asked of the lock itself, at the
//! time of the search: a copy would have to follow every grant.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use millpond_base::sync::Mutex;

use super::name::Name;
use super::tree::Tree;
use super::waiter::Waiter;

/// The lock in whose queue an owner is.
#[derive(Clone)]
pub(super) enum Place {
    Key(Name),
    Tree(Arc<Tree>),
}

struct Node {
    place: Place,
    waiter: Arc<Waiter>,
    /// The circle that it was chosen to break.
    victim_of: Option<Vec<u64>>,
}

/// All owners that wait.
pub(super) struct Graph {
    nodes: Mutex<HashMap<u64, Node>>,
}

impl Graph {
    pub fn new() -> Graph {
        Graph { nodes: Mutex::new(HashMap::new()) }
    }

    /// `id` is in a queue and is going to sleep. Breaks all circles that this closes; fails with
    /// the circle if `id` itself is the youngest of one, and then has not entered.
    pub fn enter(
        &self,
        id: u64,
        place: Place,
        waiter: &Arc<Waiter>,
        blockers: impl Fn(&Place, u64) -> Vec<u64>,
    ) -> Result<(), Vec<u64>> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.insert(id, Node { place, waiter: Arc::clone(waiter), victim_of: None });
        while let Some(circle) = circle_through(&nodes, id, &blockers) {
            let youngest = circle.iter().copied().max().unwrap_or(id);
            if youngest == id {
                nodes.remove(&id);
                return Err(circle);
            }
            // From here on the search takes it for one that does not wait.
            if let Some(node) = nodes.get_mut(&youngest) {
                node.victim_of = Some(circle);
                node.waiter.wake();
            }
        }
        Ok(())
    }

    /// The circle that `id` was chosen to break, if it was.
    pub fn victim_of(&self, id: u64) -> Option<Vec<u64>> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.get(&id).and_then(|node| node.victim_of.clone())
    }

    /// `id` sleeps no more.
    pub fn leave(&self, id: u64) {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

/// A circle of waiting owners that has `start` in it.
fn circle_through(
    nodes: &HashMap<u64, Node>,
    start: u64,
    blockers: &impl Fn(&Place, u64) -> Vec<u64>,
) -> Option<Vec<u64>> {
    let ahead_of = |id: u64| match nodes.get(&id) {
        Some(Node { place, victim_of: None, .. }) => blockers(place, id),
        _ => Vec::new(),
    };
    let mut seen = HashSet::from([start]);
    // The path from `start`, each with those that it waits for and that are still to be visited.
    let mut path = vec![(start, ahead_of(start))];
    while let Some((_, left)) = path.last_mut() {
        let Some(next) = left.pop() else {
            path.pop();
            continue;
        };
        if next == start {
            return Some(path.iter().map(|(id, _)| *id).collect());
        }
        if seen.insert(next) {
            path.push((next, ahead_of(next)));
        }
    }
    None
}
