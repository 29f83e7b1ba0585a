//! Pages that stay in memory during a scan that is marked as one.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use millpond::{Db, RawTree};
use millpond_base::rounds::rounds;

use super::opening::live_policies;
use super::{assert_sound, place, tiny};

const FRAMES: u32 = 240;
/// About 130 leaves of 512 bytes.
const WANTED: u32 = 1_000;
/// Pages that a scan may cost others in a full pool: twice as many as it reads ahead, which is 32.
/// Until it has some of its own to give up the policy chooses, and may well choose wanted ones.
const COST_MAX: u64 = 64;

/// Rows to scan: 500 pages, or more than 1,000.
fn scanned_rows() -> u32 {
    rounds(4_500, 9_000)
}

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

/// Looks every wanted row up. Returns how many pages had to be read for that.
fn look_up(db: &Db, tree: &RawTree) -> u64 {
    let before = db.stats();
    (0..WANTED).for_each(|row| assert!(tree.get(&key(row)).unwrap().is_some()));
    db.stats().since(&before).reads
}

/// Copies a closed store with the trees `wanted`, `scanned` and `others` to `path`. It is filled
/// once: which policy its pool had then is not in the file.
fn copy_filled(path: &Path) {
    static FILLED: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
        let (dir, path) = place();
        let db = Db::open(&path, tiny(FRAMES)).unwrap();
        let rows = [("wanted", WANTED), ("scanned", scanned_rows()), ("others", WANTED)];
        rows.into_iter().for_each(|(name, rows)| drop(fill(&db, name, rows)));
        db.close().unwrap();
        (dir, path)
    });
    let (_, filled) = &*FILLED;
    let log = |path: &Path| path.with_file_name("store.mill-log");
    std::fs::copy(filled, path).unwrap();
    std::fs::copy(log(filled), log(path)).unwrap();
}

/// A store whose pool has room for all wanted rows, which are in memory, looked up twice, and for
/// some more; its policy has had no other reference.
fn with_wanted_rows(policy: &str, path: &Path) -> (Db, RawTree, RawTree) {
    copy_filled(path);
    let db = Db::open(path, tiny(FRAMES).policy(policy)).unwrap();
    let (wanted, scanned) = (db.raw_tree("wanted").unwrap(), db.raw_tree("scanned").unwrap());
    look_up(&db, &wanted);
    assert_eq!(look_up(&db, &wanted), 0, "{policy}");
    (db, wanted, scanned)
}

/// Pages that have to be read for lookups after a scan, with the hint or without.
fn read_after_a_scan(policy: &str, hint: bool) -> u64 {
    let (_guard, path) = place();
    let (db, wanted, scanned) = with_wanted_rows(policy, &path);
    let range = scanned.iter();
    let range = if hint { range.as_scan() } else { range };
    assert_eq!(range.map(Result::unwrap).count(), scanned_rows() as usize);
    let read = look_up(&db, &wanted);
    drop((wanted, scanned));
    db.close().unwrap();
    assert_sound(&path);
    read
}

#[test]
fn a_scan_leaves_what_others_want_in_memory_whichever_policy_decides() {
    let mut wrong = Vec::new();
    for policy in live_policies() {
        let read = read_after_a_scan(policy, true);
        if read > 0 {
            wrong.push(format!("{policy}: {read}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Pages of rows that were looked up once, before those that are wanted, fill the rest of the pool.
#[test]
fn a_scan_takes_a_few_pages_of_a_full_pool_and_then_its_own_whichever_policy_decides() {
    let mut wrong = Vec::new();
    for policy in live_policies() {
        let (_guard, path) = place();
        copy_filled(&path);
        let db = Db::open(&path, tiny(FRAMES).policy(policy)).unwrap();
        let [others, wanted, scanned] =
            ["others", "wanted", "scanned"].map(|name| db.raw_tree(name).unwrap());
        look_up(&db, &others);
        (0..4).for_each(|_| _ = look_up(&db, &wanted));
        let missed = look_up(&db, &wanted);
        assert_eq!(scanned.iter().as_scan().count(), scanned_rows() as usize);
        let read = look_up(&db, &wanted).saturating_sub(missed);
        if read > COST_MAX {
            wrong.push(format!("{policy}: {read}, {missed} before"));
        }
        drop((others, wanted, scanned));
        db.close().unwrap();
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_scan_without_the_hint_takes_what_the_policy_gives() {
    for policy in ["lru", "fifo", "clock", "random"] {
        let read = read_after_a_scan(policy, false);
        assert!(read > COST_MAX + 20, "{policy}: {read}");
    }
}

#[test]
fn a_scanned_page_that_is_looked_up_is_one_like_any_other() {
    let (_guard, path) = place();
    let db = Db::open(&path, tiny(FRAMES).policy("lru")).unwrap();
    let (wanted, scanned) = (fill(&db, "wanted", WANTED), fill(&db, "scanned", scanned_rows()));
    // A scan loads them; lookups want them afterwards.
    assert_eq!(wanted.iter().as_scan().count(), WANTED as usize);
    for _ in 0..2 {
        look_up(&db, &wanted);
    }
    assert_eq!(scanned.iter().as_scan().count(), scanned_rows() as usize);
    assert!(look_up(&db, &wanted) <= COST_MAX);
    // Only a scan wanted these: the next one takes their place.
    let before = db.stats();
    assert_eq!(scanned.iter().as_scan().count(), scanned_rows() as usize);
    assert!(db.stats().since(&before).reads > rounds(350, 800));
}

#[test]
fn a_store_that_is_only_read_is_read_ahead() {
    let (_folder, path) = place();
    let db = Db::open(&path, tiny(FRAMES)).unwrap();
    fill(&db, "scanned", scanned_rows());
    db.close().unwrap();
    for read_only in [false, true] {
        let db = Db::open(&path, tiny(FRAMES).read_only(read_only)).unwrap();
        let tree = db.raw_tree("scanned").unwrap();
        assert_eq!(tree.iter().as_scan().map(Result::unwrap).count(), scanned_rows() as usize);
        let stats = db.stats();
        let part = stats.prefetches as f64 / stats.reads as f64;
        assert!(part > 0.4, "{part} of the reads were ahead, only read: {read_only}");
        drop(tree);
        db.close().unwrap();
    }
}
