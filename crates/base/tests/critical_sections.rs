//! Locks that count, with the feature `critical-sections`.

use millpond_base::sections::{
    ARE_COUNTED, Section, Sections, Tally, note, of_all_threads, of_this_thread,
};
use millpond_base::sync;
use millpond_base::sync::unmodelled::{Mutex, RwLock};

#[track_caller]
fn through_a_helper(mutex: &Mutex<u32>) -> u32 {
    *mutex.lock().unwrap()
}

/// Enters four mutexes, two read locks, a write lock and an exclusive latch.
fn known() {
    let (mutex, lock) = (sync::Mutex::new(7), RwLock::new(0));
    for _ in 0..3 {
        assert_eq!(through_a_helper(&mutex), 7);
    }
    let held = mutex.try_lock().unwrap();
    assert!(mutex.try_lock().is_err(), "what is not acquired does not count");
    drop(held);
    drop((lock.read().unwrap(), lock.read().unwrap()));
    *lock.write().unwrap() += 1;
    note(Section::Exclusive);
}

const KNOWN: Tally = [4, 2, 1, 0, 1, 0];

fn own(sections: &Sections) -> Tally {
    let mut files = sections.files().filter(|(file, _)| file.ends_with("critical_sections.rs"));
    files.next().map(|(_, tally)| tally).unwrap_or_default()
}

/// One test only, since all threads of the process share one sum.
#[test]
fn a_known_sequence_has_known_counts_in_the_file_that_asked_whichever_thread_it_is() {
    const { assert!(ARE_COUNTED) };
    let before = of_this_thread();
    known();
    let here = of_this_thread().since(&before);
    assert_eq!(own(&here), KNOWN);
    assert_eq!(here.files().count(), 1, "none is the helper's or the mutex's own: {here:?}");
    assert_eq!(of_this_thread().since(&of_this_thread()), Sections::default());

    let before = of_all_threads();
    let since = || own(&of_all_threads().since(&before));
    for ended in 1..=3 {
        std::thread::spawn(known).join().unwrap();
        assert_eq!(since(), KNOWN.map(|count| count * ended), "what has ended stays");
    }
    let (done, wait) = std::sync::mpsc::channel();
    let (end, ending) = std::sync::mpsc::channel::<()>();
    let running = std::thread::spawn(move || {
        known();
        done.send(()).unwrap();
        ending.recv().unwrap_err();
    });
    wait.recv().unwrap();
    assert_eq!(since(), KNOWN.map(|count| count * 4), "a thread that runs counts, too");
    drop(end);
    running.join().unwrap();
    assert_eq!(since(), KNOWN.map(|count| count * 4), "and no more when it has ended");
    assert_eq!(of_this_thread().since(&here), of_this_thread().since(&here));
}
