//! The paper's sentences on temporally clustered and probabilistic references (luan 5.4, 5.5), and
//! on space (5.8), each a test with the policy and its parameters.

use super::policies::{THIRTEEN, thirteen};
use super::work::{Part, Work, made, play};
use millpond_lab::registry::Registry;

fn run(policy: &str, frames: u32, id: &str, params: &str) -> Part {
    let work = Work::clean(vec![made(id, params, 1).unwrap()]);
    play(&Registry::builtin(), policy, frames, &work, 1).unwrap().remove(0)
}

fn temporal(policy: &str, frames: u32) -> Part {
    run(policy, frames, "temporal", "")
}

/// Returns a column of a part's row.
fn column(part: &Part, frames: u32, name: &str) -> Option<f64> {
    let fields = part.fields(frames);
    fields.iter().find(|(column, _)| column == name).and_then(|(_, value)| value.number())
}

fn temporal_column(policy: &str, frames: u32, name: &str) -> f64 {
    column(&temporal(policy, frames), frames, name).unwrap()
}

const LRFU_1: &str = "lrfu(lambda=1,correlated=25%)";
const LIRS: &str = "lirs(hirs=1%,stack=1.5x)";
const LRU_2: &str = "lru-2-history(correlated=25%,history=50%)";
const TWO_Q: &str = "2q(kin=25%,kout=50%)";
const TWO_Q_SIMPLE: &str = "2q-simple(kin=25%)";
const GCLOCK: &str = "gclock-v2(f=5,r=5,s=1,variant=fix)";

#[test]
fn lru_is_the_optimum_of_temporal_clusters_and_proportional_to_the_pool() {
    for frames in [1000, 2000, 3000, 4000, 5000] {
        let lru = temporal("lru", frames);
        assert_eq!(lru.hits, 3 * u64::from(frames), "three turns find all that is there");
        assert_eq!(lru.hits, temporal("opt", frames).hits);
        assert_eq!(lru.hits, temporal(LRFU_1, frames).hits);
    }
}

#[test]
fn the_recency_of_lru_s_and_lrfu_s_victims_is_the_size_of_the_pool() {
    for frames in [1000, 2000, 3000, 4000, 5000] {
        for policy in ["lru", LRFU_1] {
            let share = temporal_column(policy, frames, "recency_is_size");
            assert_eq!(share, 100.0, "{policy} {frames}");
        }
    }
    for frames in [4000, 5000] {
        assert_eq!(temporal_column("fbr", frames, "recency_is_size"), 100.0);
        assert_eq!(temporal("fbr", frames).hits, temporal("lru", frames).hits);
    }
    assert!(temporal_column("fbr", 2000, "recency_is_size") < 100.0);
}

#[test]
fn clock_s_other_victims_at_1000_frames_were_referenced_twice() {
    let share = temporal_column("clock", 1000, "recency_is_size");
    assert!(share > 50.0 && share < 100.0, "{share}");
    assert_eq!(temporal_column("clock", 1000, "recency_least"), 1.0);
    assert_eq!(temporal_column("clock", 1000, "recency_most"), 1999.0);
    assert_eq!(temporal_column("clock", 1000, "others_twice"), 100.0);
}

#[test]
fn lirs_victims_have_the_recency_of_its_queue_in_small_pools() {
    for frames in [1000, 2000] {
        let usual = temporal_column(LIRS, frames, "recency_usual");
        assert_eq!(usual, f64::from(frames) / 100.0);
        let share = temporal_column(LIRS, frames, "recency_usual_share");
        assert!(share > 75.0, "{frames}: {share}");
        assert!(temporal(LIRS, frames).hits > temporal("clock-pro", frames).hits);
    }
}

#[test]
fn the_clocks_begin_beside_lru_and_end_far_below_it() {
    let gap =
        |policy, frames| temporal("lru", frames).hits as i64 - temporal(policy, frames).hits as i64;
    for policy in ["clock", GCLOCK] {
        assert_eq!(gap(policy, 1000), 0, "{policy}");
    }
    for policy in ["clock", GCLOCK, TWO_Q, "car", "cart"] {
        assert!(gap(policy, 5000) > gap(policy, 1000) + 2000, "{policy}");
        // 5 points of 22,000 references.
        assert!(gap(policy, 5000) > 1100, "{policy}");
    }
    for policy in [TWO_Q_SIMPLE, "fbr"] {
        assert_eq!(gap(policy, 5000), 0, "{policy}");
    }
    // He has ARC almost on LRU's curve; ours is 2.3 points below it.
    assert!((400..600).contains(&gap("arc", 5000)), "{}", gap("arc", 5000));
    for policy in ["clock-pro", LRU_2, LIRS] {
        assert!(gap(policy, 5000) < gap(policy, 3000), "{policy} approaches");
    }
    // A third more than their hits is a large gap.
    for policy in ["clock-pro", LRU_2] {
        let hits = temporal(policy, 1000).hits;
        assert!(hits * 4 < temporal("lru", 1000).hits * 3, "{policy}: {hits}");
    }
    // He has LIRS above LRU-2 there; ours is below it.
    assert!(temporal(LIRS, 1000).hits < temporal(LRU_2, 1000).hits);
}

#[test]
fn in_6000_frames_all_thirteen_are_equal() {
    for policy in thirteen("1") {
        assert_eq!(temporal(&policy.by, 6000).hits, 3 * 5500, "{}", policy.name);
    }
}

/// Returns the result of probabilistic references with many pages that are used once.
fn scattered(policy: &str, frames: u32) -> Part {
    run(policy, frames, "probabilistic", "pages=40k,refs=100k,theta=1")
}

#[test]
fn lru_and_the_clocks_are_the_lowest_with_fixed_probabilities() {
    for frames in [1000, 3000, 5000] {
        let hits = |policy: &str| scattered(policy, frames).hits;
        let lowest = hits("lru").max(hits("clock"));
        for policy in thirteen("0") {
            if !["LRU", "CLOCK", "GCLOCK"].contains(&policy.name) {
                assert!(hits(&policy.by) > lowest, "{} {frames}", policy.name);
            }
        }
        // He has GCLOCK above LRU.
        assert!(hits(GCLOCK) < hits("lru") && hits(GCLOCK) > hits("clock"), "{frames}");
    }
}

#[test]
fn the_four_best_are_above_2q_and_fbr_in_small_pools_but_not_above_arc_and_its_clocks() {
    let hits = |policy: &str| scattered(policy, 1000).hits;
    let others = hits(TWO_Q).max(hits("fbr"));
    for policy in ["clock-pro", "lrfu(lambda=0,correlated=25%)", LIRS, LRU_2] {
        assert!(hits(policy) > others, "{policy}");
    }
    // He has all four above all others.
    assert!(hits("car") > hits(LRU_2), "{} {}", hits("car"), hits(LRU_2));
}

#[test]
fn clock_pro_evicts_pages_of_one_reference_and_lru_and_clock_do_not() {
    let again = |policy: &str, frames: u32| {
        column(&scattered(policy, frames), frames, "referenced_again").unwrap()
    };
    for frames in [1000, 3000, 5000, 7000, 9000] {
        let pro = again("clock-pro", frames);
        // At most about 4 % in his fig. 8.
        assert!(pro < 4.5, "{frames}: {pro}");
        for policy in ["lru", "clock"] {
            assert!(again(policy, frames) > 10.0, "{policy} {frames}");
        }
        for policy in ["lrfu(lambda=0,correlated=25%)", LIRS, LRU_2] {
            assert!(again(policy, frames) < 6.0, "{policy} {frames}");
        }
    }
    // In his paper FBR's counts are often larger than one; ours are as rare as CLOCK-Pro's.
    assert!(again("fbr", 3000) < again("clock-pro", 3000));
}

#[test]
fn pages_that_left_are_remembered_as_he_has_it() {
    let registry = Registry::builtin();
    for (name, by, _, _, remembered) in THIRTEEN {
        let spec = super::work::parsed(by).unwrap();
        let most = registry.find(&spec.id).unwrap().ghosts_max(&spec, 70_000).unwrap();
        match remembered {
            0.0 => assert_eq!(most, 0, "{name}"),
            pools => assert!(most as f64 >= pools * 70_000.0 - 1.0, "{name}: {most}"),
        }
    }
}
