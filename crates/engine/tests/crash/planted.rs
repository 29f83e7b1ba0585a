//! A test of the campaign itself. Each bug that can be planted in the engine
//! (`crates/device/src/planted.rs`) is planted alone, and stories are told until one of them fails.
//!
//! Bugs of the read path are for the campaign of reads (`tests/reads`).
//!
//! `PLANTED` names the bugs, all of them if it is not set; `CRASH_SEEDS` bounds the stories.

use std::ops::ControlFlow;
use std::sync::Arc;

use millpond_device::planted::{Bug, plant};

use crate::campaign::{Seeds, Tale, tell_tale};
use crate::engine::Engine;
use crate::log_store::OverLog;
use crate::story::Tally;
use crate::subject::Subject;
use crate::telling::{jobs, tell_all};

/// Bugs of the log, which show sooner where there is nothing else.
const OF_THE_LOG: [Bug; 4] = [
    Bug::LogNotSynced,
    Bug::LogTailNotCleared,
    Bug::SlotNotNamedFirst,
    Bug::LogTailNotWrittenAgain,
];

/// Races of a few instructions, which real threads hardly ever run:
/// `tests/shuttle_models/checkpoint.rs` catches them.
const OF_THE_MODELS: [Bug; 2] = [Bug::FlagsReadApart, Bug::DirtyNotAtomic];

/// The story in which a bug was caught.
struct Caught {
    how: String,
    /// In the stories that ended well until then.
    seen: Tally,
    what: String,
}

fn crashes(tally: &Tally) -> u64 {
    tally.crashes.iter().sum()
}

/// Tells stories until one fails. Of several that were under way then, the first counts.
fn hunt(subject: &Arc<dyn Subject>, seeds: Seeds) -> Result<Caught, Tally> {
    let (tales, mut seen) = (seeds.stories_first(), Tally::default());
    let place = |tale: Tale| tales.iter().position(|other| *other == tale);
    let mut first: Option<(Tale, String)> = None;
    tell_all(
        &tales,
        seeds.jobs,
        |tale| tell_tale(subject, tale),
        |tale, came| {
            match came {
                Ok(tally) => seen += tally,
                Err(what) => {
                    if first.as_ref().is_none_or(|(other, _)| place(tale) < place(*other)) {
                        first = Some((tale, what));
                    }
                }
            }
            if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    let how = |tale| match tale {
        Tale::Story(seed) => format!("story {seed}"),
        Tale::Sweep(seed) => format!("sweep {seed}"),
    };
    match first {
        Some((tale, what)) => Ok(Caught { how: how(tale), seen, what }),
        None => Err(seen),
    }
}

/// The bugs that are asked for.
fn wanted() -> Vec<Bug> {
    let names = std::env::var("PLANTED").unwrap_or_default();
    let is_wanted = |bug: &Bug| {
        let of_models = [&OF_THE_MODELS[..], &Bug::OF_LOCKS, &Bug::OF_DESTAGING];
        names.is_empty() && !of_models.iter().any(|bugs| bugs.contains(bug))
            || names.split(',').any(|name| name == format!("{bug:?}"))
    };
    let is_here = |bug: &Bug| !Bug::OF_READS.contains(bug);
    Bug::ALL.into_iter().filter(is_here).filter(is_wanted).collect()
}

#[test]
fn every_planted_bug_is_caught() {
    let engine = Arc::new(Engine) as Arc<dyn Subject>;
    let log = Arc::new(OverLog) as Arc<dyn Subject>;
    let seeds = Seeds::asked_for(Seeds { from: 0, count: 3000, sweeps: 2, jobs: jobs() });
    let mut missed = Vec::new();
    println!("| bug | caught in | after crashes | by |");
    println!("|---|---|---|---|");
    for bug in wanted() {
        plant(Some(bug));
        let is_of_log = OF_THE_LOG.contains(&bug);
        // Its stories are short.
        let count = if is_of_log { 7 * seeds.count } else { seeds.count };
        let hunted = hunt(if is_of_log { &log } else { &engine }, Seeds { count, ..seeds });
        plant(None);
        match hunted {
            Ok(Caught { how, seen, what }) => {
                let how = if is_of_log { format!("{how} of the log's own") } else { how };
                let line = what.lines().next().unwrap_or_default();
                let line: String = line.chars().take(110).collect();
                println!("| `{bug:?}` | {how} | {} | {line} |", crashes(&seen));
            }
            Err(seen) => {
                println!("| `{bug:?}` | **not caught** | {} | |", crashes(&seen));
                missed.push(bug);
            }
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
