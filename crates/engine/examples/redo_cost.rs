//! What recovery costs per GiB of log: `redo_cost [MiB of log] [directory]`, in memory unless a
//! directory is named.
//!
//! The log begins with an image of each of the pages, an eighth of it in bytes; the rest are
//! changes of 40 bytes to pages chosen at random, one to the record, as a bare update of a row is.
#![allow(clippy::print_stdout, reason = "a measurement tells what it found")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond::internals::io::PageStore;
use millpond::internals::log::{Log, LogOptions, Record};
use millpond::internals::page::PageSize;
use millpond::internals::page::record_body::{put_image, put_physiological};
use millpond::internals::page::record_undo::put_undo;
use millpond::internals::pool::mini_transaction::kind;
use millpond::internals::recovery::{Analysis, Checkpoint, RedoOptions, redo};
use millpond_base::{Lsn, PageId};
use millpond_device::{Device, FileDevice, FileOptions, MemoryDevice};

type Failure = Box<dyn std::error::Error>;

const NOTE: usize = 40;

/// Puts the note where its first two bytes say.
fn apply_note(page: &mut [u8], note: &[u8]) -> bool {
    let Some((&[low, high], bytes)) = note.split_first_chunk() else { return false };
    let at = usize::from(u16::from_le_bytes([low, high]));
    match page.get_mut(at..at + bytes.len()) {
        Some(place) => place.copy_from_slice(bytes),
        None => return false,
    }
    true
}

fn device(directory: Option<&PathBuf>, name: &str) -> Result<Arc<dyn Device>, Failure> {
    Ok(match directory {
        None => Arc::new(MemoryDevice::new()),
        Some(path) => Arc::new(FileDevice::create(&path.join(name), &FileOptions::default())?),
    })
}

/// Fills `log` with `bytes` bytes, and returns the number of pages that it is about.
fn fill(store: &PageStore, log: &Log, bytes: u64) -> Result<usize, Failure> {
    let size = store.page_size().bytes();
    let pages = store.allocate_many((bytes / 8) as usize / size)?;
    let begin = log.tail();
    let taken = store.taken_words();
    let checkpoint = Checkpoint { redo: begin, begin, taken, ..Checkpoint::default() };
    store.set_log_position(checkpoint.write(log)?, None, None)?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut body = Vec::new();
    for &page in &pages {
        let mut image = vec![0; size];
        image[16..24].copy_from_slice(&page.0.to_le_bytes());
        random.fill(&mut image[32..]);
        body.clear();
        put_image(&mut body, page, &image);
        log.append(&Record { kind: kind::PAGES, tx: 0, prev: Lsn(0), parts: &[&body] });
    }
    let mut note = [7; NOTE];
    while log.tail().0 - begin.0 < bytes {
        let page: PageId = pages[random.usize(0..pages.len())];
        let at = random.u16(32..(size - NOTE) as u16);
        note[..2].copy_from_slice(&at.to_le_bytes());
        body.clear();
        put_physiological(&mut body, page, &note);
        put_undo(&mut body, &note[..16], None);
        log.append(&Record { kind: kind::UPDATE, tx: 1, prev: Lsn(0), parts: &[&body] });
    }
    log.wait_durable(log.tail())?;
    Ok(pages.len())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mib: u64 = arguments.next().map_or(Ok(256), |text| text.parse())?;
    let directory = arguments.next().map(PathBuf::from);
    let store = PageStore::create_on(device(directory.as_ref(), "redo.mill")?, PageSize::KIB_4)?;
    let options = LogOptions::default();
    let log = Log::create(device(directory.as_ref(), "redo.log")?, store.uuid(), Lsn(0), &options)?;
    let pages = fill(&store, &log, mib << 20)?;
    let gib = (mib << 20) as f64 / (1u64 << 30) as f64;
    for threads in [1, 2, 4] {
        for memory_bytes in [1 << 30, (pages << 12) / 2] {
            let checkpoint = Checkpoint::read(&log, store.log_position())?;
            let started = Instant::now();
            let analysis = Analysis::of(&log, &checkpoint, store.placement(), &mut |_| {})?;
            let analysed = started.elapsed();
            let options = RedoOptions { threads, memory_bytes };
            let redone = redo(&store, &log, &analysis, apply_note, &options, &mut |_| {})?;
            let whole = started.elapsed();
            let rate = |time: Duration| gib / time.as_secs_f64();
            println!(
                "{threads} threads, {:4} MiB: {} records of {gib:.2} GiB, {} pages, {} passes; \
                 analysis {:.2} s ({:.2} GiB/s), redo {:.2} s, {:.2} s per GiB in all; index {} KiB",
                memory_bytes >> 20,
                analysis.records,
                redone.pages,
                redone.passes,
                analysed.as_secs_f64(),
                rate(analysed),
                (whole - analysed).as_secs_f64(),
                whole.as_secs_f64() / gib,
                analysis.index.bytes() >> 10,
            );
        }
    }
    log.close()?;
    store.close(None)?;
    Ok(())
}
