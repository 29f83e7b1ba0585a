//! Where frame headers should lie: the memory accesses of one step down a tree, bare.
//!
//! A step reads the version in a frame's header, the page's first line, and a slot somewhere in
//! the page. Three layouts: header and page side by side, 512 bytes more than a page apart; headers
//! of 128 bytes in an array of their own; header and page side by side in a power of two.

use std::error::Error;

use millpond_device::AlignedBuffer;

use super::setup::{Settings, load, median, own_time};

/// Where the header and the page of frame `i` begin.
struct Layout {
    name: &'static str,
    header: fn(u64, u64, u64) -> u64,
    page: fn(u64, u64, u64) -> u64,
    bytes: fn(u64, u64) -> u64,
}

// Arguments: frame, bytes of a page, number of frames.
const LAYOUTS: [Layout; 3] = [
    Layout {
        name: "interleaved, 512 + page",
        header: |i, page, _| i * (page + 512),
        page: |i, page, _| i * (page + 512) + 512,
        bytes: |page, frames| frames * (page + 512),
    },
    Layout {
        name: "headers apart, 128 each",
        header: |i, _, _| i * 128,
        page: |i, page, frames| frames * 128 + i * page,
        bytes: |page, frames| frames * (page + 128),
    },
    Layout {
        name: "interleaved, power of two",
        header: |i, page, _| i * page,
        page: |i, page, _| i * page + 64,
        bytes: |page, frames| frames * page,
    },
];

fn word(memory: &[u8], at: u64) -> u64 {
    let at = at as usize & !7;
    let bytes = memory.get(at..at + 8).and_then(|b| b.try_into().ok()).unwrap_or([0; 8]);
    u64::from_le_bytes(bytes)
}

/// Nanoseconds of a step; each depends on the one before, as in a descent.
fn steps(layout: &Layout, memory: &[u8], page: u64, frames: u64, count: u64, seed: u64) -> f64 {
    let mut state = seed | 1;
    let started = own_time();
    for _ in 0..count {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let frame = (state >> 33) % frames;
        let version = word(memory, (layout.header)(frame, page, frames));
        let start = (layout.page)(frame, page, frames);
        let first = word(memory, start);
        let slot = word(memory, start + 128 + (state >> 20) % (page - 256));
        // All words are 0, which the compiler cannot know.
        state = state.wrapping_add(version + first + slot);
    }
    let elapsed = (own_time() - started) / count as f64;
    std::hint::black_box(state);
    elapsed
}

/// Prints nanoseconds per step, medians of the rounds.
pub fn run(settings: &Settings) -> Result<(), Box<dyn Error>> {
    let (rounds, count) = (settings.number("rounds", 101), settings.number("count", 100_000));
    println!("page | frames | layout | huge pages | ns per step | load");
    for page in settings.numbers("pages", &[4096, 8192, 16384]) {
        for frames in settings.numbers("frames", &[1000, 30_000]) {
            for huge in [true, false] {
                let mut memories = Vec::new();
                for layout in &LAYOUTS {
                    let bytes = (layout.bytes)(page, frames) as usize;
                    let memory = memory(bytes, huge)?;
                    memories.push(memory);
                }
                let mut times = [const { Vec::new() }; 3];
                for round in 0..rounds {
                    for (at, layout) in LAYOUTS.iter().enumerate() {
                        let memory = memories[at].bytes();
                        times[at].push(steps(layout, memory, page, frames, count, round));
                    }
                }
                for (layout, times) in LAYOUTS.iter().zip(&mut times) {
                    let time = median(times);
                    let (name, load) = (layout.name, load());
                    println!(
                        "{page:>5} | {frames:>6} | {name:<25} | {huge:<5} | {time:6.1} | {load}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Memory with or without huge pages behind it.
struct Memory {
    buffer: AlignedBuffer,
    from: usize,
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..]
    }
}

const HUGE: usize = 2 << 20;

fn memory(bytes: usize, huge: bool) -> Result<Memory, Box<dyn Error>> {
    // A mapping of its own, whose pages nobody touched yet.
    let mut buffer = AlignedBuffer::new(bytes.next_multiple_of(HUGE) + 2 * HUGE);
    let start = std::ptr::NonNull::new(buffer.as_mut_ptr()).ok_or("no memory")?;
    let from = start.as_ptr().align_offset(HUGE);
    if huge {
        // The advice covers whole pages only.
        let within = start.as_ptr().addr() + from;
        let first = std::ptr::NonNull::new(start.as_ptr().with_addr(within)).ok_or("no memory")?;
        millpond::internals::pool::memory::huge::advise(first, bytes.next_multiple_of(HUGE));
    }
    buffer.iter_mut().step_by(4096).for_each(|b| *b = 0);
    Ok(Memory { buffer, from })
}
