//! A secondary index: a second tree whose keys begin with what is looked up, and end with the
//! primary key.
//!
//! `cargo run --release --example secondary_index -- [FILE]`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::{Path, PathBuf};

use millpond::{Db, Options, Tree};

/// People by number, and their numbers by city.
struct People {
    db: Db,
    by_id: Tree<u64, (String, String)>,
    by_city: Tree<(String, u64), ()>,
}

impl People {
    fn open(db: Db) -> Result<People, millpond::Error> {
        let (by_id, by_city) = (db.tree("people")?, db.tree("people by city")?);
        Ok(People { db, by_id, by_city })
    }

    /// Both trees change in one transaction: nobody sees one of them without the other, and neither
    /// does a crash leave that behind.
    fn put(&self, id: u64, name: &str, city: &str) -> Result<(), millpond::Error> {
        self.db.transact(|tx| {
            let (by_id, by_city) = (tx.tree(&self.by_id), tx.tree(&self.by_city));
            if let Some((_, old_city)) = by_id.insert(&id, &(name, city))? {
                by_city.delete(&(old_city, id))?;
            }
            by_city.put(&(city, id), &())?;
            Ok(())
        })
    }

    /// Both trees as they were at one moment.
    fn in_city(&self, city: &str) -> Result<Vec<String>, millpond::Error> {
        let snapshot = self.db.snapshot()?;
        let (by_id, by_city) = (snapshot.tree(&self.by_id), snapshot.tree(&self.by_city));
        let mut names = Vec::new();
        // `(city,)` is a prefix of exactly those keys that begin with the city.
        for entry in by_city.prefix(&(city,)) {
            let ((_, id), ()) = entry?;
            if let Some((name, _)) = by_id.get(&id)? {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// What the example does, with a store at `path`.
pub fn run(path: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(path, Options::new().memory(32 << 20))?;
    let people = People::open(db)?;
    people.put(1, "Ada", "London")?;
    people.put(2, "Kurt", "Brünn")?;
    people.put(3, "Emmy", "Erlangen")?;
    people.put(4, "Alan", "London")?;
    people.put(2, "Kurt", "Princeton")?;
    for city in ["London", "Brünn", "Princeton"] {
        println!("{city:10} {:?}", people.in_city(city)?);
    }
    assert_eq!(people.in_city("London")?, ["Ada", "Alan"]);
    assert!(people.in_city("Brünn")?.is_empty());
    let People { db, by_id, by_city } = people;
    drop((by_id, by_city));
    Ok(db.close()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    run(&given.unwrap_or_else(|| std::env::temp_dir().join("secondary_index.mill")))
}
