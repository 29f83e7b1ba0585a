//! The pool against the twin.

use std::error::Error;
use std::sync::Arc;

use millpond::internals::btree::BTree;
use millpond::internals::io::PageStore;
use millpond::internals::pool::{Optimistic, Pages, Pool, Reclamation, Twin};
use millpond_device::MemoryDevice;

use super::setup::{Measured, Settings, fill, load, lookups, median, own_time, page_size, pool};

type Tree = BTree<Pool<Measured>>;

fn on_pool(rows: u64, page: u64, reclamation: Reclamation) -> Result<Tree, Box<dyn Error>> {
    let frames = (rows * 180 / page) as u32 + 1000;
    let store = PageStore::create_on(Arc::new(MemoryDevice::new()), page_size(page)?)?;
    let pool = pool(frames, Arc::new(store), |lab| {
        lab.reclamation = reclamation;
        lab.prefault = true;
    })?;
    let tree = BTree::create(pool, 1)?;
    fill(&tree, rows)?;
    Ok(tree)
}

/// Nanoseconds of processor time per lookup, with `threads` threads at once. Time on the wall would
/// tell of the machine's other work.
fn time<P: Pages>(tree: &BTree<P>, rows: u64, threads: u64, count: u64, seed: u64) -> f64 {
    let one = move |t: u64| {
        let started = own_time();
        assert_eq!(lookups(tree, rows, count, seed + t), count, "every key is there");
        own_time() - started
    };
    let spent: f64 = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|t| scope.spawn(move || one(t))).collect();
        one(0) + others.into_iter().map(|t| t.join().unwrap_or(f64::NAN)).sum::<f64>()
    });
    spent / (count * threads) as f64
}

/// Prints nanoseconds per lookup and the ratio of throughputs, medians of the rounds.
pub fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let rows = settings.number("rows", 1_000_000);
    // Short rounds: most of them fit between two switches to another process.
    let rounds = settings.number("rounds", 151);
    let count = settings.number("count", 10_000);
    let only = settings.word("only", "all");
    println!("rows page threads | twin ns | pool ns (ratio) | pool with epochs ns (ratio) | load");
    for page in settings.numbers("pages", &[4096, 8192, 16384]) {
        let twin = BTree::create(Arc::new(Twin::<Optimistic>::new(page as usize)?), 1)?;
        fill(&twin, rows)?;
        if only == "twin" {
            println!("{:.1} ns", time(&twin, rows, 1, count * rounds, 1));
            continue;
        }
        let version = on_pool(rows, page, Reclamation::Version)?;
        if only == "pool" {
            println!("{:.1} ns", time(&version, rows, 1, count * rounds, 1));
            continue;
        }
        let epoch = on_pool(rows, page, Reclamation::Epoch)?;
        for threads in settings.numbers("threads", &[1, 2]) {
            let mut times = [const { Vec::new() }; 3];
            let mut ratios = [const { Vec::new() }; 2];
            for round in 0..rounds {
                let seed = round * 1000;
                let t = time(&twin, rows, threads, count, seed);
                let v = time(&version, rows, threads, count, seed);
                let e = time(&epoch, rows, threads, count, seed);
                times.iter_mut().zip([t, v, e]).for_each(|(all, one)| all.push(one));
                ratios[0].push(t / v);
                ratios[1].push(t / e);
            }
            let [t, v, e] = times.each_mut().map(|all| median(all));
            let [rv, re] = ratios.each_mut().map(|all| median(all));
            println!(
                "{rows:>8} {page:>5} {threads} | {t:6.1} | {v:6.1} ({rv:.3}) | {e:6.1} ({re:.3}) \
                 | {}",
                load()
            );
        }
    }
    Ok(())
}
