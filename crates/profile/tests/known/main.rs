//! What is known beforehand is found: shares of CPU time, threads that come and go, time in the
//! kernel, stacks from the outside in.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::print_stdout)]

mod one;
mod three;
mod two;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use millpond_profile::{Breakdown, Components, Options, Profile, ProfileError, Sampling};

/// Tests sample the whole process: one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn components() -> Components {
    let of = |name: &str| {
        format!(
            "[[profile.components]]\nname = \"{name}\"\n\
             paths = [\"crates/profile/tests/known/{name}.rs\"]\n"
        )
    };
    let all: String = ["one", "two", "three"].map(of).concat();
    Components::parse(&format!("[profile]\nlatches = []\n{all}")).unwrap()
}

/// What `work` was sampled to; `None`, with a message, where a process may not sample itself.
fn sampled(work: impl FnOnce()) -> Option<Profile> {
    let sampling = match Sampling::start(&Options::default()) {
        Ok(sampling) => sampling,
        Err(error @ ProfileError::Forbidden { .. }) => {
            println!("skipped: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    work();
    Some(sampling.stop().unwrap())
}

/// Rounds that take about a millisecond.
fn millisecond() -> u64 {
    let begun = Instant::now();
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_millis(20) {
        black_box(one::work(10_000));
        rounds += 10_000;
    }
    rounds / 20
}

fn share(breakdown: &Breakdown, component: &str) -> f64 {
    breakdown.share(component).map_or(0.0, |share| share.share)
}

/// The shares are those of the work, whatever else the machine does: it is CPU time that is
/// sampled. With 2,000 samples a second of three, a share is known within two points.
#[test]
fn known_shares_are_found_within_two_points_in_threads_that_come_and_go() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let rounds = millisecond();
    let Some(profile) = sampled(|| {
        for _ in 0..25 {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..6 {
                            black_box(one::work(5 * rounds));
                            black_box(two::work(3 * rounds));
                            black_box(three::work(2 * rounds));
                        }
                    });
                }
            });
        }
    }) else {
        return;
    };
    let breakdown = profile.breakdown(&components());
    println!("{breakdown}");
    assert_eq!(breakdown.lost, 0, "{breakdown}");
    assert!(profile.threads >= 40, "{} threads", profile.threads);
    assert!(breakdown.unassigned < 0.03, "{breakdown}");
    let all: f64 = ["one", "two", "three"].iter().map(|name| share(&breakdown, name)).sum();
    assert!(all > 0.9, "{breakdown}");
    for (name, expected) in [("one", 0.5), ("two", 0.3), ("three", 0.2)] {
        let found = share(&breakdown, name) / all;
        assert!((found - expected).abs() < 0.02, "{name}: {found}\n{breakdown}");
    }
    // The samples stand for what the system counted.
    let ratio = breakdown.cpu_s / breakdown.cpu_counted_s;
    assert!((0.9..1.1).contains(&ratio), "{breakdown}");
}

#[test]
fn stacks_reach_the_thread_s_first_function_and_have_what_was_inlined() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let rounds = millisecond();
    let Some(profile) = sampled(|| {
        // Enough for the samples even where other work gets most of the CPU time.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            black_box(two::work(rounds));
        }
    }) else {
        return;
    };
    let is_work = |frame: &millpond_profile::Frame| frame.file.ends_with("known/two.rs");
    let found = profile.stacks.iter().filter(|stack| stack.frames.iter().any(|f| is_work(f)));
    let (mut samples, mut whole) = (0, 0);
    for stack in found {
        samples += stack.user;
        let names: Vec<&str> = stack.frames.iter().map(|f| f.function.as_str()).collect();
        let test = names.iter().any(|name| name.contains("stacks_reach_the_thread_s_first"));
        whole += if test && !stack.is_cut { stack.user } else { 0 };
    }
    assert!(samples > 200, "{samples} samples");
    assert!(whole * 100 >= samples * 97, "{whole} of {samples} reach the test");
    let inlined = |stack: &millpond_profile::Stack| {
        stack.frames.iter().any(|f| is_work(f) && f.function.contains("mixed"))
    };
    let inlined: u64 = profile.stacks.iter().filter(|s| inlined(s)).map(|s| s.user).sum();
    assert!(inlined * 10 > samples, "{inlined} of {samples} are in what was inlined");
    assert!(!profile.hottest().is_empty());
    let folded = profile.folded();
    assert!(folded.lines().any(|line| line.contains("known::two::work")), "{folded}");
}

#[test]
fn time_in_the_kernel_is_charged_to_who_called_it() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(profile) = sampled(|| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300) {
            black_box(std::fs::read("/proc/self/maps").unwrap());
        }
    }) else {
        return;
    };
    let (user, kernel) = profile.cpu;
    assert!(kernel > user / 4, "{kernel:?} in the kernel, {user:?} not");
    if profile.has_kernel {
        let seen: u64 = profile.stacks.iter().map(|stack| stack.kernel).sum();
        let seconds = seen as f64 * profile.period.as_secs_f64();
        assert!((seconds / kernel.as_secs_f64() - 1.0).abs() < 0.25, "{seconds} of {kernel:?}");
        let caller = |stack: &millpond_profile::Stack| {
            stack.frames.iter().any(|f| f.function.contains("time_in_the_kernel_is_charged"))
        };
        let charged: u64 = profile.stacks.iter().filter(|s| caller(s)).map(|s| s.kernel).sum();
        assert!(charged * 10 > seen * 9, "{charged} of {seen}");
    }
}

#[test]
fn sampling_begins_and_ends_again_and_again_while_threads_begin_and_end() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::scope(|inner| {
                        inner.spawn(|| black_box(three::work(100_000)));
                    });
                }
            });
        }
        let mut samples = 0;
        for _ in 0..10 {
            let wait = || std::thread::sleep(Duration::from_millis(20));
            let Some(profile) = sampled(wait) else { break };
            assert_eq!(profile.lost, 0);
            samples += profile.samples();
        }
        // One that is dropped ends, too.
        drop(Sampling::start(&Options::default()));
        is_over.store(true, Ordering::Relaxed);
        println!("{samples} samples");
    });
}
