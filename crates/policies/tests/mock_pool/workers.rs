//! Threads at work on one pool.

use millpond_base::sync::atomic::Ordering::SeqCst;

use millpond_base::Mark;
use millpond_base::sync::atomic::AtomicU32;
use millpond_base::sync::{Arc, thread};
use millpond_policies::contract::HitHook;

use super::pool::{Pool, Setup};

/// The amount of work.
#[derive(Clone, Copy)]
pub struct Load {
    pub threads: u32,
    /// References of each thread.
    pub references: u32,
    pub pages: u64,
    /// 1: all pages alike; more: the low numbers are referenced more often.
    pub skew: i32,
    /// The number of references in 16 that drop the page instead.
    pub drops: u32,
    /// `true` if one more thread evicts ahead.
    pub evicts_ahead: bool,
    pub seed: u64,
}

/// Runs `load` on a new pool; checks it when all is quiet, empties it, and checks again.
pub fn run<T: HitHook>(setup: Setup<T>, load: Load) -> Result<(), String> {
    let pool = Arc::new(Pool::new(setup));
    let running = Arc::new(AtomicU32::new(load.threads));
    let mut threads = Vec::new();
    for number in 0..load.threads {
        let (pool, running) = (pool.clone(), running.clone());
        threads.push(thread::spawn(move || {
            work(&pool, load, u64::from(number));
            running.fetch_sub(1, SeqCst);
        }));
    }
    if load.evicts_ahead {
        let (pool, running) = (pool.clone(), running.clone());
        threads.push(thread::spawn(move || {
            while running.load(SeqCst) > 0 {
                if pool.free_frames() < 2 {
                    pool.evict(2, None);
                }
                thread::yield_now();
            }
        }));
    }
    for thread in threads {
        if let Err(panic) = thread.join() {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
            return Err(format!("a thread panicked: {}", text.unwrap_or_default()));
        }
    }
    pool.check()?;
    pool.empty();
    pool.check()
}

fn work<T: HitHook>(pool: &Pool<T>, load: Load, number: u64) {
    let mut random = fastrand::Rng::with_seed(load.seed * 31 + number);
    let mut ring = Vec::new();
    for _ in 0..load.references {
        let page = (random.f64().powi(load.skew) * load.pages as f64) as u64;
        match random.u32(..16) {
            n if n < load.drops => pool.drop_page(page),
            12.. => pool.reference(page, Mark::WRITE, &mut ring),
            _ => pool.reference(page, Mark::READ, &mut ring),
        }
    }
    pool.drain(&mut ring);
}
