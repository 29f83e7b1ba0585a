//! A store in a file: write, read, walk, close, open again.
//!
//! `cargo run --release --example hello -- [FILE]`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::{Path, PathBuf};

use millpond::{Db, Options};

/// What the example does, with a store at `path`.
pub fn run(path: &Path) -> Result<(), Box<dyn Error>> {
    // One number is all there is to set: bytes of memory for everything. Without it, the store
    // takes a quarter of what the process may use.
    let db = Db::open(path, Options::new().memory(32 << 20))?;

    // Trees have names and types. Keys are kept in the order of their type.
    let moons = db.tree::<String, u32>("moons")?;
    for (planet, count) in [("Mars", 2), ("Earth", 1), ("Neptune", 16), ("Venus", 0)] {
        moons.insert(planet, &count)?;
    }
    assert_eq!(moons.get("Mars")?, Some(2));
    assert_eq!(moons.get("Pluto")?, None);

    // `insert` returns the value that was there; `update` reads and writes in one step.
    assert_eq!(moons.insert("Neptune", &14)?, Some(16));
    moons.update("Neptune", |count| count.map(|n| n + 2))?;

    // Iterators go both ways, over everything, a range or a prefix.
    for row in moons.iter().rev() {
        let (planet, count) = row?;
        println!("{planet:8} {count:3}");
    }
    let behind_f: Vec<_> = moons.range("F".to_string()..).collect::<Result<_, _>>()?;
    assert_eq!(behind_f.len(), 3);

    // The last handle closes the store; `close` tells if something went wrong.
    drop(moons);
    db.close()?;

    let db = Db::open(path, Options::new().memory(32 << 20))?;
    assert_eq!(db.tree::<String, u32>("moons")?.get("Neptune")?, Some(16));
    Ok(db.close()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    run(&given.unwrap_or_else(|| std::env::temp_dir().join("hello.mill")))
}
