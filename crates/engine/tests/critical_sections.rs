//! Critical sections by the file that enters them, with the feature `critical-sections`.

use millpond::internals::pool::{Latch, Latched, Latching, Optimistic};
use millpond::{Db, Error, Options};
use millpond_base::sections::{Sections, Tally, of_this_thread};

fn since(before: &Sections, end: &str) -> Tally {
    let since = of_this_thread().since(before);
    let mut files = since.files().filter(|(file, _)| file.ends_with(end));
    files.next().map(|(_, tally)| tally).unwrap_or_default()
}

#[test]
fn a_latch_counts_what_it_grants_for_the_file_that_asked() {
    let latch = Latch::default();
    let before = of_this_thread();
    assert!(latch.try_exclusive() && !latch.try_exclusive() && !latch.try_shared());
    assert!(Optimistic::read(&latch).is_none());
    latch.release_exclusive();
    for _ in 0..3 {
        assert!(Latched::read_patiently(&latch).is_some());
    }
    for _ in 0..2 {
        latch.release_shared();
    }
    assert!(Latched::upgrade(&latch, ()), "it is alone");
    latch.release_unchanged();
    let token = Optimistic::read_patiently(&latch).unwrap();
    assert!(Optimistic::upgrade(&latch, token));
    latch.release_exclusive();
    assert!(!Optimistic::upgrade(&latch, token), "it is another version");
    assert_eq!(since(&before, "critical_sections.rs"), [0, 0, 0, 3, 3, 1]);
    assert_eq!(of_this_thread().since(&before).files().count(), 1);
}

/// Files that acquire sections for others, and own none.
const HELPERS: [&str; 4] = ["pool/latch.rs", "lock/spinlock.rs", "locked.rs", "base/src/sync.rs"];

#[test]
fn a_store_s_sections_belong_to_the_components_that_asked() -> Result<(), Error> {
    let db = Db::in_memory(Options::new().memory(16 << 20))?;
    let tree = db.tree::<u64, u64>("numbers")?;
    tree.put(&1, &1)?;
    assert_eq!(tree.get(&1)?, Some(1));
    let (before, gets) = (of_this_thread(), 100);
    for _ in 0..gets {
        assert_eq!(tree.get(&1)?, Some(1));
    }
    // The anchor and the only leaf; and nothing that keeps another thread out.
    assert_eq!(since(&before, "pool/guard.rs"), [0, 0, 0, 0, 0, 2 * gets]);
    assert_eq!(of_this_thread().since(&before).files().count(), 1);

    let before = of_this_thread();
    for value in 0..gets {
        db.transact(|tx| tx.tree(&tree).put(&1, &value))?;
    }
    let here = of_this_thread().since(&before);
    let by_file = |part: &str| -> u64 {
        let files = here.files().filter(|(file, _)| file.contains(part));
        files.map(|(_, tally)| tally[..5].iter().sum::<u64>()).sum()
    };
    assert_eq!(since(&before, "pool/guard.rs")[4], gets, "a leaf, exclusively, each");
    assert!(by_file("src/lock/") >= gets, "{here:?}");
    for (file, _) in here.files() {
        assert!(HELPERS.iter().all(|helper| !file.ends_with(helper)), "{file}");
    }
    Ok(())
}
