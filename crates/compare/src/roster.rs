//! Roster of the engines, by name.

use std::path::Path;

use crate::engine::{Commits, Engine, Settings};
use crate::engines;
use crate::stand::{Contestant, Stand};

type Make = fn(&Path, &Settings) -> Box<dyn Contestant>;

fn stand<E: Engine>(root: &Path, settings: &Settings) -> Box<dyn Contestant> {
    Box::new(Stand::<E>::new(root, settings))
}

/// Names and engines of this build. Millpond comes first: the others are compared with it.
fn all() -> Vec<(&'static str, Make)> {
    let mut all: Vec<(&'static str, Make)> =
        vec![(engines::Millpond::<false>::NAME, stand::<engines::Millpond<false>>)];
    macro_rules! list {
        ($($(#[$when:meta])* $engine:ident,)*) => {$(
            $(#[$when])*
            all.push((<engines::$engine as Engine>::NAME, stand::<engines::$engine>));
        )*};
    }
    list! {
        MillpondTree,
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

/// Engines that have transactions and a log. Millpond's group commit is an entry of its own.
fn logged() -> Vec<(&'static str, Make)> {
    let without = [engines::MillpondTree::NAME, engines::InMemoryTwin::NAME];
    let mut all: Vec<_> = all().into_iter().filter(|engine| !without.contains(&engine.0)).collect();
    all.push((engines::Millpond::<true>::NAME, stand::<engines::Millpond<true>>));
    all
}

/// The engines among `names` whose commits can promise `commits`. Where they are durable, Millpond
/// is listed twice: the second time its commits wait for a group-commit batch.
pub fn logged_names(names: &[String], commits: Commits) -> Vec<String> {
    let mut found = Vec::new();
    for name in names.iter().filter(|name| logged().iter().any(|engine| engine.0 == **name)) {
        found.push(name.clone());
        let group = engines::Millpond::<true>::NAME.to_string();
        if name == engines::Millpond::<false>::NAME
            && commits == Commits::Sync
            && !names.contains(&group)
        {
            found.push(group);
        }
    }
    found
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
    let all = if settings.commits == Commits::Bare { all() } else { logged() };
    match all.into_iter().find(|engine| engine.0 == name) {
        Some((_, make)) => Ok(make(root, settings)),
        None if matches!(name, "rocksdb" | "wiredtiger" | "berkeleydb") => anyhow::bail!(
            "this program was built without {name}: build it with --features {name}, as \
             docs/compare.md says"
        ),
        None => anyhow::bail!("there is no engine '{name}'; this build has {}", names().join(", ")),
    }
}
