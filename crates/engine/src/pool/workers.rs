//! The pool's own threads: evictors, the background writer, and the thread that populates memory.
//! They sleep when there is nothing to do, and end when [`Workers`] is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_base::sync::thread::{Builder, JoinHandle};

use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::frame::IS_MODEL;
use crate::pool::latch::Latching;
use crate::pool::options::{EvictionMode, PoolStrategy};

/// The threads of one pool.
pub struct Workers<M: PoolStrategy> {
    pool: Arc<Pool<M>>,
    threads: Vec<JoinHandle<()>>,
}

impl<M: PoolStrategy> Workers<M> {
    /// Starts the threads that the pool's options ask for.
    ///
    /// # Errors
    /// The operating system could not start a thread.
    pub fn start(pool: Arc<Pool<M>>) -> Result<Workers<M>, PoolError> {
        pool.stop.store(false, Ordering::Release);
        let mut workers = Workers { pool, threads: Vec::new() };
        workers.pool.evictors.reset();
        let evictors = match workers.pool.evictors.mode() {
            EvictionMode::Worker => 0,
            EvictionMode::Threads(count) | EvictionMode::Adaptive(count) => count.get(),
        };
        for _ in 0..evictors {
            workers.spawn("millpond-evict", Pool::run_evictor)?;
        }
        if workers.pool.reads_ahead() {
            workers.spawn("millpond-write", Pool::background_writer)?;
        }
        if M::Latching::THREADS && !workers.pool.options.prefault && !IS_MODEL {
            workers
                .spawn("millpond-memory", |pool| pool.frames.populate_ahead(|| pool.is_over()))?;
        }
        Ok(workers)
    }

    fn spawn(&mut self, name: &str, work: fn(&Pool<M>)) -> Result<(), PoolError> {
        let pool = self.pool.clone();
        let thread = Builder::new().name(name.to_string());
        let thread = thread
            .spawn(move || work(&pool))
            .map_err(|error| PoolError::Thread { reason: error.to_string() })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Returns the pool.
    pub fn pool(&self) -> &Arc<Pool<M>> {
        &self.pool
    }
}

impl<M: PoolStrategy> Drop for Workers<M> {
    fn drop(&mut self) {
        self.pool.stop.store(true, Ordering::Release);
        self.pool.writeback.wake();
        self.pool.evictors.dismiss();
        self.pool.frames.wake();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the pool ended by a panic");
            }
        }
    }
}
