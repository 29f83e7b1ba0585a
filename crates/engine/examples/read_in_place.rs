//! What a look-up costs that hands out a copy of the value, beside one that latches the page and
//! hands out the value itself.
//!
//! `cargo run --release -p millpond --example read_in_place -- [rows] [rounds]`
//!
//! One thread, all in memory, random keys; each round does both in turn. A line says the median of
//! each in ns per look-up, and the geometric mean of the rounds' ratios with its 95 % interval.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use millpond::{Db, Error, Options, RawTree};

/// What is done with a value.
type Work = fn(&[u8]) -> u64;

const WORKS: [(&str, Work); 2] = [
    ("one byte", |value| value.first().map_or(0, |byte| u64::from(*byte))),
    ("all bytes", |value| value.iter().map(|byte| u64::from(*byte)).sum()),
];

/// Spreads 0, 1, 2, … over all 64-bit numbers, each once.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// ns per look-up, over as many random rows as there are.
fn time(
    rows: u64,
    seed: u64,
    mut look_up: impl FnMut(&[u8]) -> Result<Option<u64>, Error>,
) -> Result<f64, Error> {
    let mut random = fastrand::Rng::with_seed(seed);
    let from = Instant::now();
    for _ in 0..rows {
        black_box(look_up(&key(random.u64(..rows)))?);
    }
    Ok(from.elapsed().as_nanos() as f64 / rows as f64)
}

/// Half the width of the 95 % interval of a mean; the factor is Student's for 15 rounds.
fn half_width(values: &[f64], mean: f64) -> f64 {
    let n = values.len() as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    2.145 * (variance / n).sqrt()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn compare(tree: &RawTree, rows: u64, rounds: u64, work: Work) -> Result<String, Error> {
    let (mut copies, mut reads) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        // Which goes first changes, so that neither is always the one with the warm cache.
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                copies.push(time(rows, round, |key| tree.get_with(key, work))?);
            } else {
                reads.push(time(rows, round, |key| tree.read(key, work))?);
            }
        }
    }
    let ratios: Vec<f64> = reads.iter().zip(&copies).map(|(r, c)| (r / c).ln()).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let half = half_width(&ratios, mean);
    let (low, high) = ((mean - half).exp(), (mean + half).exp());
    let ratio = format!("{:.2} [{low:.2}, {high:.2}]", mean.exp());
    Ok(format!("{:>9.0} {:>6.0}   {ratio}", median(copies), median(reads)))
}

/// The table, for `rows` rows of each size.
pub fn run(rows: u64, rounds: u64, out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    writeln!(out, "value  f reads     get_with   read   read / get_with")?;
    for len in [120, 1024, 1900] {
        let memory = (32 << 20) + rows * (len + 100) * 2;
        let db = Db::in_memory(Options::new().memory(memory).page_size(8192))?;
        let tree = db.raw_tree("rows")?;
        for n in 0..rows {
            tree.put(&key(n), &vec![n as u8; len as usize])?;
        }
        for (name, work) in WORKS {
            writeln!(out, "{len:>5}  {name:<10} {}", compare(&tree, rows, rounds, work)?)?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let rows = arguments.next().unwrap_or(Ok(100_000))?;
    let rounds = arguments.next().unwrap_or(Ok(15))?;
    run(rows, rounds, &mut io::stdout().lock())
}
