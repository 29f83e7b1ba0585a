//! Cost of a call through the C library beside the same call in Rust, as
//! `docs/reports/performance/c.md` has it:
//!
//! ```sh
//! cargo run --release -p millpond-capi --example overhead -- [ROUNDS [KEYS [CALLS]]]
//! ```
//!
//! In each round a program in C and this one do the same, in turn: reads and writes of resident
//! keys of 8 bytes with values of 8 bytes, by themselves and within a transaction. The C program is
//! linked with the static library. Ratios are geometric means over the rounds, with 95 % intervals.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use millpond::{Db, Error, Options, RawTree};
use millpond_handles::Transaction;
use millpond_lab::interval::Interval;

/// Reason that a measurement stops: a failed call, or a missing compiler.
type Failed = Box<dyn std::error::Error>;

/// The measured calls, in the order of the lines that the program in C prints.
const CALLS: [&str; 4] = ["get", "put", "get in a transaction", "put in a transaction"];

/// Nanoseconds per call of each kind.
type Times = [f64; CALLS.len()];

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The time of a call, over `calls` of them, each with a random key.
fn timed(
    keys: u64,
    calls: u64,
    mut call: impl FnMut([u8; 8], u64) -> Result<(), Failed>,
) -> Result<f64, Failed> {
    let mut state = 88_172_645_463_325_252u64;
    let begun = cpu_time();
    for at in 0..calls {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        call((state % keys).to_be_bytes(), at)?;
    }
    Ok((cpu_time() - begun).as_nanos() as f64 / calls as f64)
}

/// Copies the value into a buffer that is used again, as the library does.
fn keep(buffer: &mut Vec<u8>, value: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(value);
}

fn filled(keys: u64) -> Result<(Db, RawTree), Error> {
    let db = Db::in_memory(Options::new().memory(256 << 20))?;
    let tree = db.raw_tree("tree")?;
    for number in 0..keys {
        tree.put(&number.to_be_bytes(), &number.to_ne_bytes())?;
    }
    Ok((db, tree))
}

/// Through the handles that the library is made of: a transaction that any thread may use.
fn owned(db: &Db, tree: &RawTree, keys: u64, calls: u64) -> Result<Times, Failed> {
    let mut buffer = Vec::new();
    let get = timed(keys, calls, |key, _| {
        Ok(tree.get_with(&key, |value| keep(&mut buffer, value)).map(drop)?)
    })?;
    let put = timed(keys, calls, |key, at| Ok(tree.put(&key, &at.to_ne_bytes()).map(drop)?))?;
    let tx = Transaction::begin(db, None)?;
    let get_in = timed(keys, calls, |key, _| {
        let read = tx.call(|tx| tx.tree(tree).get_with(&key, |value| keep(&mut buffer, value)));
        Ok(read.map(drop)?)
    })?;
    tx.commit()?;
    let tx = Transaction::begin(db, None)?;
    let put_in = timed(keys, calls, |key, at| {
        Ok(tx.call(|tx| tx.tree(tree).put(&key, &at.to_ne_bytes())).map(drop)?)
    })?;
    tx.commit()?;
    Ok([get, put, get_in, put_in])
}

/// Calls the engine as programs in Rust do: typed, and with a transaction that is borrowed.
fn borrowed(db: &Db, keys: u64, calls: u64) -> Result<Times, Failed> {
    let number = u64::from_be_bytes;
    let tree = db.tree::<u64, u64>("typed")?;
    for key in 0..keys {
        tree.put(&key, &key)?;
    }
    let get = timed(keys, calls, |key, _| Ok(tree.get(&number(key)).map(drop)?))?;
    let put = timed(keys, calls, |key, at| Ok(tree.put(&number(key), &at).map(drop)?))?;
    let tx = db.begin()?;
    let here = tx.tree(&tree);
    let get_in = timed(keys, calls, |key, _| Ok(here.get(&number(key)).map(drop)?))?;
    tx.commit()?;
    let tx = db.begin()?;
    let here = tx.tree(&tree);
    let put_in = timed(keys, calls, |key, at| Ok(here.put(&number(key), &at).map(drop)?))?;
    tx.commit()?;
    Ok([get, put, get_in, put_in])
}

/// Compiles the program in C.
fn compiled(folder: &Path) -> Result<PathBuf, Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // This program is in `examples`, and the library in the folder above it.
    let here = std::env::current_exe()?;
    let target = here.ancestors().nth(2).ok_or("this program is in no folder")?;
    let program = folder.join("overhead");
    let mut build = Command::new("cc");
    build.args(["-O2", "-std=gnu11", "-Wall", "-I"]).arg(root.join("include"));
    build.arg(root.join("examples/overhead.c"));
    let library = ["libmillpond_c.a", "deps/libmillpond_c.a"].map(|name| target.join(name));
    let library = library.iter().find(|path| path.is_file()).ok_or("libmillpond_c.a is missing")?;
    build.arg(library).args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"]).arg(&program);
    let built = build.output()?;
    match built.status.success() {
        true => Ok(program),
        false => Err(String::from_utf8_lossy(&built.stderr).into()),
    }
}

fn in_c(program: &Path, keys: u64, calls: u64) -> Result<Times, Failed> {
    let output = Command::new(program).args([keys.to_string(), calls.to_string()]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let times: Vec<f64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
    let error = || format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(times.try_into().map_err(|_| error())?)
}

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rounds, keys, calls) = (number(15)?, number(100_000)?, number(1_000_000)?);
    let folder = tempfile::tempdir()?;
    let program = compiled(folder.path())?;
    let mut all: [Vec<Times>; 3] = Default::default();
    for round in 0..rounds {
        let run_c = |all: &mut [Vec<Times>; 3]| {
            all[0].push(in_c(&program, keys, calls)?);
            Ok::<(), Failed>(())
        };
        // Who begins changes with the round.
        if round % 2 == 0 {
            run_c(&mut all)?;
        }
        let (db, tree) = filled(keys)?;
        all[1].push(owned(&db, &tree, keys, calls)?);
        all[2].push(borrowed(&db, keys, calls)?);
        drop(tree);
        db.close()?;
        if round % 2 == 1 {
            run_c(&mut all)?;
        }
    }
    println!("ns of CPU time per call (means), and C over Rust: geometric mean [95 % interval]");
    for (at, what) in CALLS.iter().enumerate() {
        let [c, owned, borrowed] = [0, 1, 2]
            .map(|arm: usize| all[arm].iter().map(|times| times[at]).collect::<Vec<f64>>());
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let ratio = |below: &[f64]| match Interval::of_ratios(&c, below) {
            Some(of) => format!("{:.3} [{:.3}, {:.3}]", of.mean, of.low, of.high),
            None => "one round has no interval".to_string(),
        };
        println!(
            "{what}: C {:.1}, owned {:.1}, typed {:.1}; over owned {}, over typed {}",
            mean(&c),
            mean(&owned),
            mean(&borrowed),
            ratio(&owned),
            ratio(&borrowed),
        );
    }
    Ok(())
}
