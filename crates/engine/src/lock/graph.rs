//! The wait-for graph, and the search for its cycles, which are deadlocks (rule 7).
//!
//! Only waiting owners are nodes. Edges are read from the locks at the time of the search, since a
//! copy of them would have to follow every grant.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use millpond_base::PastPoison;
use millpond_base::sync::Mutex;

use super::name::Name;
use super::own::Claim;
use super::tree::Tree;
use super::waiter::Waiter;

/// The lock in whose queue an owner waits.
#[derive(Clone)]
pub(super) enum AwaitedLock {
    Key(Name),
    Tree(Arc<Tree>),
}

/// The thread that an owner waits on, and the other transactions of that thread, which go on only
/// after the wait.
pub(super) struct WaitingThread {
    pub thread: u64,
    pub own: Vec<(u64, Arc<Claim>)>,
}

/// Reason why an owner must not wait.
pub(super) enum WaitCycle {
    /// The owner is the victim: the youngest waiting owner of a cycle.
    Youngest(Vec<u64>),
    /// The owner would wait for this transaction, and its own thread runs the transaction's
    /// closure.
    Own(u64),
}

struct Node {
    awaited: AwaitedLock,
    waiter: Arc<Waiter>,
    waiting_thread: WaitingThread,
    /// The deadlock cycle that this owner, its victim, must break.
    victim_of: Option<Vec<u64>>,
}

#[derive(Default)]
struct Nodes {
    waiting: HashMap<u64, Node>,
    /// Owners that do not wait themselves, but whose thread does, each with the owner that waits
    /// there.
    kept: HashMap<u64, u64>,
}

/// The wait-for graph.
pub(super) struct Graph {
    nodes: Mutex<Nodes>,
}

impl Nodes {
    fn enter(&mut self, id: u64, node: Node) {
        self.kept.extend(node.waiting_thread.own.iter().map(|(own, _)| (*own, id)));
        let other = self.waiting.insert(id, node);
        assert!(other.is_none(), "owner {id} waits twice");
    }

    fn leave(&mut self, id: u64) {
        let Some(node) = self.waiting.remove(&id) else { return };
        for (own, _) in &node.waiting_thread.own {
            // Another thread may have this owner by now, and wait, too.
            if self.kept.get(own) == Some(&id) {
                self.kept.remove(own);
            }
        }
    }

    /// Returns the successors of `id`: its blockers or, if another owner of its thread waits
    /// instead of it, that owner.
    fn ahead_of(&self, id: u64, blockers: &impl Fn(&AwaitedLock, u64) -> Vec<u64>) -> Vec<u64> {
        match self.waiting.get(&id) {
            Some(Node { awaited, victim_of: None, .. }) => return blockers(awaited, id),
            Some(_) => return Vec::new(),
            None => {}
        }
        let kept_by = self.kept.get(&id).filter(|waiting| {
            let waiting_thread = self.waiting.get(waiting).map(|node| &node.waiting_thread);
            waiting_thread.is_some_and(|WaitingThread { thread, own }| {
                own.iter().any(|(own, claim)| *own == id && claim.is_of_thread(id, *thread))
            })
        });
        kept_by.map_or(Vec::new(), |waiting| vec![*waiting])
    }
}

impl Graph {
    pub fn new() -> Graph {
        Graph { nodes: Mutex::new(Nodes::default()) }
    }

    /// Enters `id`, which is in a queue and is about to sleep, and chooses a victim for each cycle
    /// that this closes. Fails if `id` itself is a victim, or would wait for its own thread; it has
    /// then not entered.
    pub fn enter(
        &self,
        id: u64,
        awaited: AwaitedLock,
        waiter: &Arc<Waiter>,
        waiting_thread: WaitingThread,
        blockers: impl Fn(&AwaitedLock, u64) -> Vec<u64>,
    ) -> Result<(), WaitCycle> {
        if !waiting_thread.own.is_empty() {
            let ahead = blockers(&awaited, id);
            if let Some((own, _)) = waiting_thread.own.iter().find(|(own, _)| ahead.contains(own)) {
                return Err(WaitCycle::Own(*own));
            }
        }
        debug_assert!(
            waiting_thread.own.iter().all(|(own, _)| *own != id),
            "owner {id} is not one of those that wait for it"
        );
        let mut nodes = self.nodes.lock().past_poison();
        nodes.enter(
            id,
            Node { awaited, waiter: Arc::clone(waiter), waiting_thread, victim_of: None },
        );
        while let Some(cycle) = cycle_through(&nodes, id, &blockers) {
            debug_assert_eq!(cycle.first(), Some(&id), "the cycle is one that this owner closes");
            let waiting = cycle.iter().copied().filter(|id| nodes.waiting.contains_key(id));
            let youngest = waiting.max().unwrap_or(id);
            if youngest == id {
                nodes.leave(id);
                return Err(WaitCycle::Youngest(cycle));
            }
            debug_assert!(youngest > id, "the youngest of the cycle is the victim");
            // From here on the search treats it as not waiting.
            if let Some(node) = nodes.waiting.get_mut(&youngest) {
                node.victim_of = Some(cycle);
                node.waiter.wake();
            }
        }
        Ok(())
    }

    /// Returns the cycle that has `id` as its victim, if there is one.
    pub fn victim_of(&self, id: u64) -> Option<Vec<u64>> {
        let nodes = self.nodes.lock().past_poison();
        nodes.waiting.get(&id).and_then(|node| node.victim_of.clone())
    }

    /// Wakes all waiting owners, which check again.
    pub fn wake_all(&self) {
        let nodes = self.nodes.lock().past_poison();
        nodes.waiting.values().for_each(|node| node.waiter.wake());
    }

    /// Removes `id`, which no longer sleeps.
    pub fn leave(&self, id: u64) {
        self.nodes.lock().past_poison().leave(id);
    }
}

/// Returns a cycle through `start`, if there is one: each owner, or its thread, waits for the next.
fn cycle_through(
    nodes: &Nodes,
    start: u64,
    blockers: &impl Fn(&AwaitedLock, u64) -> Vec<u64>,
) -> Option<Vec<u64>> {
    let mut seen = HashSet::from([start]);
    // The path from `start`, each owner with the ones it waits for that are still to be visited.
    let mut path = vec![(start, nodes.ahead_of(start, blockers))];
    while let Some((_, left)) = path.last_mut() {
        let Some(next) = left.pop() else {
            path.pop();
            continue;
        };
        if next == start {
            return Some(path.iter().map(|(id, _)| *id).collect());
        }
        if seen.insert(next) {
            path.push((next, nodes.ahead_of(next, blockers)));
        }
    }
    None
}
