//! One fetch for equal misses: later requests for a part wait for the first one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use millpond_base::PastPoison;
use object_store::path::Path;
use tokio::sync::watch;

type Waiting = watch::Receiver<Option<Bytes>>;

/// Parts that are being fetched, by number.
#[derive(Default)]
pub(crate) struct Flights {
    flying: Mutex<HashMap<u64, Waiting>>,
}

/// Role of a request that missed: it fetches the part, or waits for the fetch.
pub(crate) enum Seat<'f> {
    Pilot(Flight<'f>),
    Passenger(Waiting),
}

/// A fetch that others may wait for. Once it is dropped, waiters see that it failed, unless the
/// part arrived.
pub(crate) struct Flight<'f> {
    flights: &'f Flights,
    number: u64,
    arrival: watch::Sender<Option<Bytes>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().past_poison()
}

impl Flights {
    pub fn join(&self, number: u64) -> Seat<'_> {
        let mut flying = lock(&self.flying);
        if let Some(waiting) = flying.get(&number) {
            return Seat::Passenger(waiting.clone());
        }
        let (arrival, waiting) = watch::channel(None);
        flying.insert(number, waiting);
        Seat::Pilot(Flight { flights: self, number, arrival })
    }
}

impl Flight<'_> {
    /// Hands the part to all waiters. The flight stays until it is dropped, for late requests.
    pub fn arrive(&self, bytes: Bytes) {
        self.arrival.send_replace(Some(bytes));
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        lock(&self.flights.flying).remove(&self.number);
    }
}

/// Returns the part, or `None` if the fetch failed or was given up.
pub(crate) async fn arrival(mut waiting: Waiting) -> Option<Bytes> {
    waiting.wait_for(Option::is_some).await.ok()?.clone()
}

/// Locks by path: one request at a time for each.
#[derive(Default)]
pub(crate) struct Turns {
    turns: Mutex<HashMap<Path, Arc<tokio::sync::Mutex<()>>>>,
}

/// A held lock of a path; the next request gets it when this is dropped.
pub(crate) struct Turn<'t> {
    turns: &'t Turns,
    path: Path,
    held: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl Turns {
    pub async fn wait(&self, path: &Path) -> Turn<'_> {
        let mutex = lock(&self.turns).entry(path.clone()).or_default().clone();
        // Created before the wait, so that a request dropped while it waits cleans up, too.
        let mut turn = Turn { turns: self, path: path.clone(), held: None };
        turn.held = Some(mutex.lock_owned().await);
        turn
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut turns = lock(&self.turns.turns);
        if turns.get(&self.path).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(&self.path);
        }
    }
}
