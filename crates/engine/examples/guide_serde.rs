//! Values of a type with serde's traits; a program of `docs/guide.md`.
//!
//! `cargo run --release --features serde --example guide_serde -- [FILE]`

use std::error::Error;
use std::path::{Path, PathBuf};

use millpond::{Db, Options, Postcard};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Bird {
    name: String,
    eggs: Vec<u32>,
}

/// What the example does, with a store at `path`.
pub fn run(path: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(path, Options::new().memory(16 << 20))?;
    let birds = db.tree::<u64, Postcard<Bird>>("birds")?;
    birds.put(&7, &Postcard::new(Bird { name: "heron".to_string(), eggs: vec![4, 5] })?)?;
    // Inside a transaction, the same.
    db.transact(|tx| {
        let birds = tx.tree(&birds);
        let Some(heron) = birds.get_for_update(&7)? else { return Ok(false) };
        let mut heron = heron.into_inner();
        heron.eggs.push(6);
        birds.put(&7, &Postcard::new(heron)?)
    })?;
    let heron = birds.get(&7)?.ok_or("no heron")?;
    assert_eq!((heron.name.as_str(), heron.eggs.as_slice()), ("heron", &[4, 5, 6][..]));
    drop(birds);
    Ok(db.close()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    run(&given.unwrap_or_else(|| std::env::temp_dir().join("guide_serde.mill")))
}
