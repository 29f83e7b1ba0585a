//! Which engines there are, by name.

use std::path::Path;

use crate::engine::{Engine, Settings};
use crate::engines;
use crate::stand::{Contestant, Stand};

type Make = fn(&Path, &Settings) -> Box<dyn Contestant>;

fn stand<E: Engine>(root: &Path, settings: &Settings) -> Box<dyn Contestant> {
    Box::new(Stand::<E>::new(root, settings))
}

/// Names and engines of this build. Millpond comes first: the others are compared with it.
fn all() -> Vec<(&'static str, Make)> {
    let mut all: Vec<(&'static str, Make)> = Vec::new();
    macro_rules! list {
        ($($(#[$when:meta])* $engine:ident,)*) => {$(
            $(#[$when])*
            all.push((<engines::$engine as Engine>::NAME, stand::<engines::$engine>));
        )*};
    }
    list! {
        Millpond,
        InMemoryTwin,
        #[cfg(feature = "lmdb")]
        Lmdb,
        #[cfg(feature = "rocksdb")]
        Rocks,
        #[cfg(feature = "wiredtiger")]
        WiredTiger,
        #[cfg(feature = "berkeleydb")]
        BerkeleyDb,
        #[cfg(feature = "redb")]
        Redb,
        #[cfg(feature = "fjall")]
        Fjall,
        #[cfg(feature = "sqlite")]
        Sqlite,
    }
    all
}

/// The names of all engines of this build.
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|engine| engine.0).collect()
}

/// The engine called `name`.
///
/// # Errors
/// There is none in this build.
pub fn make(name: &str, root: &Path, settings: &Settings) -> anyhow::Result<Box<dyn Contestant>> {
    match all().into_iter().find(|engine| engine.0 == name) {
        Some((_, make)) => Ok(make(root, settings)),
        None if matches!(name, "rocksdb" | "wiredtiger" | "berkeleydb") => anyhow::bail!(
            "this program was built without {name}: build it with --features {name}, as \
             docs/compare.md says"
        ),
        None => anyhow::bail!("there is no engine '{name}'; this build has {}", names().join(", ")),
    }
}
