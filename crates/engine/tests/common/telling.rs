//! Running the stories of the campaigns: each in a thread of its own, several at once.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// A story that takes so long does not end.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Number of stories told at once by default. A story's threads wait more than they run, so a few
/// more stories than there are processors end sooner.
pub fn jobs() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// A number that the environment may ask for.
pub fn asked_for(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs `tell` in a thread of its own: it may panic, and it may hang.
pub fn alone<R: Send + 'static>(
    tell: impl FnOnce() -> Result<R, String> + Send + 'static,
) -> Result<R, String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let told = catch_unwind(AssertUnwindSafe(tell)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(format!("a panic: {}", text.unwrap_or_default()))
        });
        // Nobody listens any more if it took too long.
        let _ = sender.send(told);
    });
    let orphaned = |_| Err(format!("the story does not end within {PATIENCE:?}"));
    receiver.recv_timeout(PATIENCE).unwrap_or_else(orphaned)
}

/// Tells `tales` by `tell`, up to `jobs` at once, and hands each with its result to `told`, in the
/// order in which they end. If `told` breaks, no more are begun; those under way are still handed
/// to it.
pub fn tell_all<T: Copy + Send + Sync, R: Send>(
    tales: &[T],
    jobs: usize,
    tell: impl Fn(T) -> Result<R, String> + Sync,
    mut told: impl FnMut(T, Result<R, String>) -> ControlFlow<()>,
) {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, next, is_over, tell) = (sender.clone(), &next, &is_over, &tell);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed)
                    && let Some(&tale) = tales.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if sender.send((tale, tell(tale))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (tale, came) in receiver {
            if told(tale, came).is_break() {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    });
}
