//! Which caches are compared.

use millpond_base::Reason;
use millpond_object_store::{ReadPlan, WritePlan};

use crate::hints::SlateHints;

/// A cache under test.
#[derive(Clone, PartialEq, Debug)]
pub struct Entrant {
    /// Its name in tables.
    pub name: String,
    /// The kind of cache.
    pub cache: Cache,
}

/// A cache between SlateDB and the object store.
#[derive(Clone, PartialEq, Debug)]
pub enum Cache {
    /// There is none.
    None,
    /// SlateDB's own, with parts of `part` bytes.
    Slate {
        /// Bytes of a part.
        part: usize,
        /// `true` if flushes are kept.
        on_flush: bool,
        /// `true` if compactions' outputs are kept.
        on_compaction: bool,
    },
    /// Millpond's.
    Tier {
        /// Bytes of a part.
        part: u32,
        /// The policy.
        policy: String,
        /// The hints; without, all requests are alike.
        hints: Option<SlateHints>,
    },
}

fn slate(part: usize, on_flush: bool, on_compaction: bool) -> Entrant {
    let kept = match (on_flush, on_compaction) {
        (false, false) => "",
        (true, false) => " +flush",
        (false, true) => " +compaction",
        (true, true) => " +flush +compaction",
    };
    let name = format!("slatedb {}K{kept}", part >> 10);
    Entrant { name, cache: Cache::Slate { part, on_flush, on_compaction } }
}

fn tier(part: u32, policy: &str, how: &str, hints: Option<SlateHints>) -> Entrant {
    let name = format!("{policy} {}K {how}", part >> 10);
    Entrant { name, cache: Cache::Tier { part, policy: policy.to_string(), hints } }
}

/// Hints that differ from the default ones.
fn variants() -> [(&'static str, SlateHints); 4] {
    let hints = SlateHints::default();
    let (pass, recov) = (WritePlan::Pass, WritePlan::Keep(Reason::Recov));
    [
        ("output passes", SlateHints { output: pass, ..hints }),
        ("nothing written", SlateHints { output: pass, flush: pass, ..hints }),
        ("output recov", SlateHints { output: recov, ..hints }),
        ("input last", SlateHints { input: ReadPlan::Last, ..hints }),
    ]
}

/// All entrants whose name has one of `words`, or all.
pub fn entrants(part: u32, words: &[String]) -> Vec<Entrant> {
    let own = part as usize;
    let mut all = vec![
        Entrant { name: "none".to_string(), cache: Cache::None },
        slate(own, false, false),
        slate(own, true, false),
        slate(own, true, true),
    ];
    let hints = Some(SlateHints::default());
    for policy in ["t2-lru", "t2-arc", "t2-mq", "lru-hints", "tq", "tq-io", "tide-io"] {
        all.push(tier(part, policy, "hints", hints));
        all.push(tier(part, policy, "deaf", None));
    }
    for policy in ["t2-lru", "tide-io"] {
        for (how, hints) in variants() {
            all.push(tier(part, policy, how, Some(hints)));
        }
    }
    for other in [4 << 10, 16 << 10, 64 << 10, 256 << 10] {
        if other != part {
            all.push(tier(other, "t2-lru", "hints", hints));
            all.push(slate(other as usize, true, true));
        }
    }
    all.retain(|entrant| words.is_empty() || words.iter().any(|word| entrant.name.contains(word)));
    all
}
