//! What a scan that says that it is one leaves in memory.

use millpond::db::{Db, RawTree};

use super::{assert_sound, place, tiny};

const FRAMES: u32 = 240;
/// About 130 leaves of 512 bytes.
const WANTED: u32 = 1_000;
/// Pages that a scan may cost others: until it has some of its own to give up, as many as it reads
/// ahead, the policy chooses, and FBR, say, chooses wanted ones.
const COST_MAX: u64 = 60;
/// More than 1,000.
const SCANNED: u32 = 9_000;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn fill(db: &Db, name: &str, rows: u32) -> RawTree {
    let tree = db.raw_tree(name).unwrap();
    for row in 0..rows {
        tree.put(&key(row), &[7; 40]).unwrap();
    }
    tree
}

/// Looks every wanted row up; says how many pages had to be read for that.
fn look_up(db: &Db, tree: &RawTree) -> u64 {
    let before = db.stats();
    (0..WANTED).for_each(|row| assert!(tree.get(&key(row)).unwrap().is_some()));
    db.stats().since(&before).reads
}

/// Pages that have to be read for lookups after a scan, with the hint or without, and for the same
/// lookups just before it: some policies keep what they knew for longer.
fn read_after_a_scan(policy: &str, hint: bool) -> (u64, u64) {
    let (_guard, path) = place();
    let db = Db::open(&path, tiny(FRAMES).policy(policy)).unwrap();
    let (wanted, scanned) = (fill(&db, "wanted", WANTED), fill(&db, "scanned", SCANNED));
    let before = (0..4).fold(0, |_, _| look_up(&db, &wanted));
    let range = scanned.iter();
    let range = if hint { range.as_scan() } else { range };
    assert_eq!(range.map(Result::unwrap).count(), SCANNED as usize);
    let read = look_up(&db, &wanted);
    drop((wanted, scanned));
    db.close().unwrap();
    assert_sound(&path);
    (read, before)
}

/// Not yet so with each policy: LRU-K, FBR and LRU-2 with history gave up wanted pages.
#[test]
fn a_scan_leaves_what_others_want_in_memory_with_the_policies_that_most_take() {
    let mut wrong = Vec::new();
    for policy in ["watt", "lru", "clock", "fifo", "random", "lean-evict", "s3-fifo"] {
        let (read, before) = read_after_a_scan(policy, true);
        if read > before + COST_MAX {
            wrong.push(format!("{policy}: {read}, {before} before"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_scan_that_does_not_say_so_takes_what_the_policy_gives() {
    for policy in ["lru", "fifo", "clock", "random"] {
        let (read, _) = read_after_a_scan(policy, false);
        assert!(read > COST_MAX + 20, "{policy}: {read}");
    }
}

#[test]
fn a_scanned_page_that_is_looked_up_is_one_like_any_other() {
    let (_guard, path) = place();
    let db = Db::open(&path, tiny(FRAMES).policy("lru")).unwrap();
    let (wanted, scanned) = (fill(&db, "wanted", WANTED), fill(&db, "scanned", SCANNED));
    // A scan loads them; lookups want them afterwards.
    assert_eq!(wanted.iter().as_scan().count(), WANTED as usize);
    for _ in 0..2 {
        look_up(&db, &wanted);
    }
    assert_eq!(scanned.iter().as_scan().count(), SCANNED as usize);
    assert!(look_up(&db, &wanted) <= COST_MAX);
    // Only a scan wanted these: the next one takes their place.
    let before = db.stats();
    assert_eq!(scanned.iter().as_scan().count(), SCANNED as usize);
    assert!(db.stats().since(&before).reads > 800);
}
