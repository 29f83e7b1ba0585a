//! A secondary index: a second tree whose keys begin with what is looked up, and end with the
//! primary key.
//!
//! `cargo run --release --example secondary_index -- [FILE]`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::{Path, PathBuf};

use millpond::db::{self, Db, Options, Tree};

/// People by number, and their numbers by city.
struct People {
    by_id: Tree<u64, (String, String)>,
    by_city: Tree<(String, u64), ()>,
}

impl People {
    fn open(db: &Db) -> Result<People, db::Error> {
        Ok(People { by_id: db.tree("people")?, by_city: db.tree("people by city")? })
    }

    /// Each call is atomic by itself; the two together are not, until there are transactions. In
    /// this order a reader may meet an index entry that no longer fits, and looks twice.
    fn put(&self, id: u64, name: &str, city: &str) -> Result<(), db::Error> {
        self.by_city.put(&(city, id), &())?;
        let old = self.by_id.insert(&id, &(name, city))?;
        if let Some((_, old_city)) = old
            && old_city != city
        {
            self.by_city.delete(&(old_city.as_str(), id))?;
        }
        Ok(())
    }

    fn in_city(&self, city: &str) -> Result<Vec<String>, db::Error> {
        let mut names = Vec::new();
        // `(city,)` is a prefix of exactly those keys that begin with the city.
        for entry in self.by_city.prefix(&(city,)) {
            let ((_, id), ()) = entry?;
            if let Some((name, lives_in)) = self.by_id.get(&id)?
                && lives_in == city
            {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// What the example does, with a store at `path`.
pub fn run(path: &Path) -> Result<(), Box<dyn Error>> {
    let db = Db::open(path, Options::new().memory(32 << 20))?;
    let people = People::open(&db)?;
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
    drop(people);
    Ok(db.close()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    run(&given.unwrap_or_else(|| std::env::temp_dir().join("secondary_index.mill")))
}
