//! The latch word under every order that its memory orderings allow.
//!
//! Seen to fail without the release fence in `Latch::take`, and without that in
//! `Latch::try_upgrade`; without the acquire fence in `Latch::is_still`; and with a version that
//! does not grow when an exclusive hold ends.
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use millpond::internals::pool::{Latch, Latched, Latching, Optimistic};

/// A page of two words that must agree, as an optimistic reader sees it, and one word that only
/// holders of the latch touch.
struct Page {
    latch: Latch,
    words: [AtomicU64; 2],
    held: UnsafeCell<u64>,
}

// SAFETY: `held` is touched under the latch only, which is what loom checks.
unsafe impl Sync for Page {}
// SAFETY: as above.
unsafe impl Send for Page {}

fn page() -> Arc<Page> {
    Arc::new(Page {
        latch: Latch::default(),
        words: [AtomicU64::new(0), AtomicU64::new(0)],
        held: UnsafeCell::new(0),
    })
}

impl Page {
    /// Adds one to everything; the latch is held exclusively.
    fn change(&self) {
        for word in &self.words {
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        // SAFETY: the latch is held exclusively; loom stops the test if it is not enough.
        self.held.with_mut(|held| unsafe { *held += 1 });
    }

    fn read(&self) -> [u64; 2] {
        [self.words[0].load(Ordering::Relaxed), self.words[1].load(Ordering::Relaxed)]
    }
}

/// Runs the two closures on a page, in two threads, in all orders; then `check`.
fn together(
    first: impl Fn(&Page) + Copy + Send + Sync + 'static,
    second: impl Fn(&Page) + Copy + Send + Sync + 'static,
    check: impl Fn(&Page) + Copy + Send + Sync + 'static,
) {
    loom::model(move || {
        let page = page();
        let other = page.clone();
        let thread = thread::spawn(move || first(&other));
        second(&page);
        thread.join().unwrap();
        check(&page);
    });
}

fn write(page: &Page) {
    if page.latch.exclusive() {
        page.change();
        page.latch.release_exclusive();
    }
}

#[test]
fn an_optimistic_reader_never_believes_half_a_change() {
    together(
        write,
        |page| {
            let Some(version) = page.latch.version() else { return };
            let [first, second] = page.read();
            if page.latch.is_still(version) {
                assert_eq!(first, second);
            }
        },
        |_| {},
    );
}

#[test]
fn a_reader_that_validates_after_a_change_does_not_believe_what_it_saw_before() {
    together(
        write,
        |page| {
            let Some(version) = page.latch.version() else { return };
            let before = page.read();
            // A reader that sees the change and then still validates would read two pages in one.
            let after = page.read();
            if page.latch.is_still(version) {
                assert_eq!(before, after);
            }
        },
        |_| {},
    );
}

/// Writes without reading first. Loom reduces the orders that it tries by looking at which accesses
/// depend on each other. Where a writer reads a value that it is about to write, loom no longer
/// tries the order in which a missing release fence shows. So the other tests cannot see that
/// fence.
fn overwrite(page: &Page) {
    for word in &page.words {
        word.store(1, Ordering::Relaxed);
    }
    page.latch.release_exclusive();
}

/// A reader that validates has seen nothing of a change that had not ended when it began.
fn sees_nothing_new(page: &Page) {
    let before = page.latch.version_held();
    let Some(version) = page.latch.version() else { return };
    let seen = page.read();
    if version == before && page.latch.is_still(version) {
        assert_eq!(seen, [0, 0], "believed what a writer is writing");
    }
}

#[test]
fn a_reader_that_validates_has_seen_nothing_of_a_change_under_way() {
    together(
        |page| {
            if page.latch.try_exclusive() {
                overwrite(page);
            }
        },
        sees_nothing_new,
        |_| {},
    );
}

#[test]
fn nor_of_one_by_a_reader_who_became_a_writer() {
    together(
        |page| {
            let Some(version) = page.latch.version() else { return };
            if page.latch.try_exclusive_at(version) {
                overwrite(page);
            }
        },
        sees_nothing_new,
        |_| {},
    );
    together(
        |page| {
            if page.latch.try_shared() && page.latch.try_upgrade() {
                overwrite(page);
            }
        },
        sees_nothing_new,
        |_| {},
    );
}

#[test]
fn writers_exclude_each_other() {
    together(write, write, |page| {
        // SAFETY: both threads have ended.
        let held = page.held.with(|held| unsafe { *held });
        assert_eq!(page.read(), [held, held]);
    });
}

#[test]
fn shared_holders_and_writers_exclude_each_other() {
    together(
        write,
        |page| {
            if page.latch.shared() {
                // SAFETY: the shared hold keeps writers out.
                let held = page.held.with(|held| unsafe { *held });
                assert_eq!(page.read(), [held, held]);
                page.latch.release_shared();
            }
        },
        |_| {},
    );
}

#[test]
fn shared_holders_do_not_disturb_optimistic_readers() {
    together(
        |page| {
            assert!(page.latch.try_shared() || page.latch.shared());
            page.latch.release_shared();
        },
        |page| {
            let version = page.latch.version().expect("nobody writes");
            assert!(page.latch.is_still(version));
        },
        |_| {},
    );
}

/// Reads, then adds one if nothing changed since: no update may be lost.
fn read_and_add<L: Latching>(page: &Page) {
    let Some(token) = L::read_patiently(&page.latch) else { return };
    let [seen, _] = page.read();
    if L::upgrade(&page.latch, token) {
        assert_eq!(page.read(), [seen, seen], "changed between the read and the write");
        page.change();
        page.latch.release_exclusive();
    } else {
        L::end(&page.latch, token);
    }
}

fn agrees(page: &Page) {
    // SAFETY: both threads have ended.
    let held = page.held.with(|held| unsafe { *held });
    assert_eq!(page.read(), [held, held]);
    assert!(page.latch.try_exclusive(), "somebody left it held");
}

#[test]
fn an_upgraded_read_still_stands() {
    together(read_and_add::<Optimistic>, read_and_add::<Optimistic>, agrees);
    together(read_and_add::<Latched>, read_and_add::<Latched>, agrees);
    together(read_and_add::<Optimistic>, write, agrees);
    together(read_and_add::<Latched>, write, agrees);
}

/// A swip may be set while readers go on: `words[0]` stands for a frame's header, `words[1]` for
/// the swip. Who sees the swip, and validates, must see the header.
fn attach<L: Latching>(page: &Page) {
    let Some(token) = L::read_patiently(&page.latch) else { return };
    if L::promote(&page.latch, token) {
        page.words[0].store(7, Ordering::Relaxed);
        page.words[1].store(1, Ordering::Release);
        L::demote(&page.latch);
    }
    L::end(&page.latch, token);
}

fn follow<L: Latching>(page: &Page) {
    let Some(token) = L::read_patiently(&page.latch) else { return };
    let swip = page.words[1].load(Ordering::Relaxed);
    if L::validate(&page.latch, token) && swip == 1 {
        assert_eq!(page.words[0].load(Ordering::Relaxed), 7, "the swip came before the page");
    }
    L::end(&page.latch, token);
}

#[test]
fn whoever_follows_a_swip_that_was_set_under_a_promoted_read_finds_the_page() {
    together(attach::<Optimistic>, follow::<Optimistic>, |_| {});
    together(attach::<Latched>, follow::<Latched>, |_| {});
}

#[test]
fn a_promoted_read_goes_on_as_if_nothing_had_happened() {
    fn body<L: Latching>(page: &Page) {
        let Some(token) = L::read_patiently(&page.latch) else { return };
        if L::promote(&page.latch, token) {
            L::demote(&page.latch);
            let seen = page.read();
            if L::validate(&page.latch, token) {
                assert_eq!(seen[0], seen[1]);
            }
        }
        L::end(&page.latch, token);
    }
    together(body::<Optimistic>, write, agrees);
    together(body::<Latched>, write, agrees);
}

/// Looks at the page itself, latched at the version that was read.
fn look<L: Latching>(page: &Page) {
    let Some(token) = L::read_patiently(&page.latch) else { return };
    let before = page.read();
    if !L::share(&page.latch, token) {
        return L::end(&page.latch, token);
    }
    assert_eq!(page.read(), before, "the page changed since the read began");
    assert_eq!(before[0], before[1]);
    // SAFETY: nobody may write while the latch is shared; loom stops the test if somebody can.
    page.held.with(|held| unsafe { assert_eq!(*held, before[0]) });
    page.latch.release_shared();
}

#[test]
fn a_page_that_is_shared_at_the_version_that_was_read_is_as_it_was_read() {
    together(look::<Optimistic>, write, agrees);
    together(look::<Latched>, write, agrees);
    together(look::<Optimistic>, look::<Optimistic>, agrees);
}

#[test]
fn three_threads_agree() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let page = page();
        let threads: Vec<_> = [write as fn(&Page), read_and_add::<Optimistic>]
            .into_iter()
            .map(|body| {
                let page = page.clone();
                thread::spawn(move || body(&page))
            })
            .collect();
        if let Some(version) = page.latch.version() {
            let [first, second] = page.read();
            assert!(first == second || !page.latch.is_still(version));
        }
        threads.into_iter().for_each(|t| t.join().unwrap());
        agrees(&page);
    });
}
