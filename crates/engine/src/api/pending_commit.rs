//! Commits that return before they are durable.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use crate::log::LogError;
use crate::store::error::Error;
use crate::txn::TxnError;
use millpond_base::PastPoison;

/// A commit that may not be durable yet, returned by
/// [`Txn::commit_async`](crate::Txn::commit_async). Other transactions already read its changes.
///
/// A thread can [wait](PendingCommit::wait) for it, a task can await it (it is a [`Future`]), and a
/// function can be [called](PendingCommit::on_durable) when it is durable. If it is dropped, the
/// commit becomes durable all the same. Commits of a store become durable in order: once a commit
/// is durable, all earlier ones are.
///
/// ```
/// use millpond::{Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let db = Db::open(folder.path().join("pond.db"), Options::new().memory(16 << 20))?;
/// let ponds = db.tree::<u32, u32>("ponds")?;
/// let mut last = None;
/// for pond in 0..100 {
///     let tx = db.begin()?;
///     tx.tree(&ponds).put(&pond, &7)?;
///     last = Some(tx.commit_async()?);
/// }
/// // The hundred commits need a few writes to the disk, not a hundred.
/// if let Some(commit) = last {
///     commit.wait()?;
/// }
/// # Ok(()) }
/// ```
#[must_use = "a commit that nobody waits for may be lost in a crash"]
pub struct PendingCommit {
    shared: Arc<Shared>,
    /// The process that made the commit.
    pid: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
enum State {
    /// Only waiting threads are to be notified.
    #[default]
    Pending,
    Awaited(Waker),
    Listened(Box<dyn FnOnce(Result<(), Error>) + Send>),
    Ended(Result<(), LogError>),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().past_poison()
    }

    /// Passes the outcome to the waiter.
    fn end(&self, outcome: Result<(), LogError>) {
        let before = std::mem::replace(&mut *self.state(), State::Ended(outcome.clone()));
        match before {
            State::Listened(call) => call(outcome.map_err(error)),
            State::Awaited(waker) => waker.wake(),
            State::Pending => self.ended.notify_all(),
            State::Ended(_) => debug_assert!(false, "a commit ends once"),
        }
    }
}

impl PendingCommit {
    /// Returns a commit and the function that ends it.
    pub(crate) fn new() -> (PendingCommit, impl FnOnce(Result<(), LogError>) + Send + 'static) {
        let shared = Arc::new(Shared::default());
        let ends = shared.clone();
        let commit = PendingCommit { shared, pid: std::process::id() };
        (commit, move |outcome| ends.end(outcome))
    }

    /// Locks the state.
    ///
    /// # Errors
    /// [`TxnError::Forked`]: the process is a child of the one that made the commit, and the
    /// outcome was not known at the fork. Threads of the parent will make it known, and may have
    /// held the lock.
    fn state(&self) -> Result<MutexGuard<'_, State>, Error> {
        if std::process::id() == self.pid {
            return Ok(self.shared.state());
        }
        match self.shared.state.try_lock() {
            Ok(state) if matches!(*state, State::Ended(_)) => Ok(state),
            _ => Err(TxnError::Forked.into()),
        }
    }

    /// Waits until the commit is durable.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let tx = db.begin()?;
    /// tx.tree(&ponds).put("mill", &7)?;
    /// let commit = tx.commit_async()?;
    /// // Other work, while the disk is busy.
    /// commit.wait()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The log failed: the next opening of the store shows if the transaction is durable. Until
    /// then this process reads its changes as committed. In a child of the process that made the
    /// commit: [`TxnError::Forked`].
    pub fn wait(self) -> Result<(), Error> {
        let mut state = self.state()?;
        loop {
            if let State::Ended(outcome) = &*state {
                return outcome.clone().map_err(error);
            }
            // A task may have polled it before, and will not again.
            *state = State::Pending;
            state = self.shared.ended.wait(state).past_poison();
        }
    }

    /// Returns `true` if the outcome is known: the commit is durable, or the log failed.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let commit = db.begin()?.commit_async()?;
    /// assert!(commit.has_ended(), "a store in memory has nothing to wait for");
    /// # Ok(()) }
    /// ```
    pub fn has_ended(&self) -> bool {
        matches!(*self.shared.state(), State::Ended(_))
    }

    /// Runs `call` once the commit is durable or the log has failed: on a thread of the store, or
    /// immediately if the outcome is known. A store runs these calls one after the other, in the
    /// order of the commits, so `call` should be short.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let (acknowledge, acknowledged) = mpsc::channel();
    /// let tx = db.begin()?;
    /// tx.commit_async()?.on_durable(move |outcome| {
    ///     let _ = acknowledge.send(outcome.is_ok());
    /// });
    /// assert_eq!(acknowledged.recv(), Ok(true));
    /// # Ok(()) }
    /// ```
    pub fn on_durable(self, call: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let outcome = match self.state() {
            Ok(mut state) => match &*state {
                State::Ended(outcome) => outcome.clone().map_err(error),
                _ => {
                    *state = State::Listened(Box::new(call));
                    return;
                }
            },
            Err(error) => Err(error),
        };
        call(outcome);
    }
}

/// Returns the error of a commit whose log failed.
fn error(error: LogError) -> Error {
    TxnError::Log(error).into()
}

impl Future for PendingCommit {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut state = match self.state() {
            Ok(state) => state,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if let State::Ended(outcome) = &*state {
            return Poll::Ready(outcome.clone().map_err(error));
        }
        *state = State::Awaited(context.waker().clone());
        Poll::Pending
    }
}

impl std::fmt::Debug for PendingCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingCommit").field("has_ended", &self.has_ended()).finish()
    }
}
