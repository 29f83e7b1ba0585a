//! Comparisons find real differences and no others: an LRU that forgets a page in a thousand, and
//! LRU beside itself. The replicate is a trace, or a block of one.

use millpond_base::{FrameId, Seed};
use millpond_lab::compare::{CompareOptions, Contest, Outcome, Replicate, Run, Verdict};
use millpond_lab::registry::Registry;
use millpond_lab::sim::{Renumber, SimOptions};
use millpond_lab::table::Table;
use millpond_policies::config::{NoConfig, Spec};
use millpond_policies::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use millpond_policies::info::Info;
use millpond_policies::parts::{Links, List};
use millpond_policies::policy::Lru;
use millpond_workload::generate::{generate, parse_params};
use millpond_workload::trace::{BATCH_LEN, Batch};

/// LRU, but every thousandth hit puts its page where the next victim is taken.
struct Forgetful {
    links: Links,
    list: List,
    hits: u32,
}

impl PolicySpec for Forgetful {
    const INFO: Info = Info { id: "forgetful", ..Lru::INFO };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> Forgetful {
        Forgetful { links: Links::new(shape.frames), list: List::new(), hits: 0 }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, _all: &[FrameId]) -> Result<(), String> {
        self.list.check(&self.links)
    }
}

impl Policy for Forgetful {
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.hits += 1;
        match self.hits.is_multiple_of(1000) {
            true => {
                self.list.remove(&mut self.links, frame.0);
                self.list.push_front(&mut self.links, frame.0);
            }
            false => self.list.move_to_back(&mut self.links, frame.0),
        }
    }

    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.list.push_back(&mut self.links, frame.0);
    }

    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.list.evict(&mut self.links, request, host, |_frame| ())
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.list.remove(&mut self.links, frame.0);
    }
}

struct Laboratory {
    registry: Registry,
    generator: &'static str,
    params: String,
    frames: u32,
}

impl Laboratory {
    fn new(generator: &'static str, params: &str, frames: u32) -> Laboratory {
        let registry = Registry::builtin().with::<Forgetful>().unwrap();
        Laboratory { registry, generator, params: params.to_string(), frames }
    }

    /// Misses of a policy on the trace of a seed, in each of `blocks` blocks.
    fn misses(&self, policy: &str, seed: u64, blocks: usize) -> Vec<f64> {
        let params = parse_params(&self.params).unwrap();
        let mut source = generate(self.generator, &params, Seed(seed)).unwrap();
        let mut batch = Batch::default();
        while source.fill(&mut batch, BATCH_LEN).unwrap() > 0 {}
        let mut renumber = Renumber::new();
        renumber.apply(&mut batch);
        let entry = self.registry.find(policy).unwrap();
        let options = SimOptions::new(self.frames, Some(renumber.distinct()));
        let mut simulation = entry.simulation(&Spec::parse(policy).unwrap(), &options).unwrap();
        let mut before = 0;
        let part = |block: usize| batch.len() * block / blocks;
        let each = (0..blocks).map(|block| {
            let range = part(block)..part(block + 1);
            let mut own = Batch::default();
            own.pages.extend_from_slice(&batch.pages[range.clone()]);
            own.marks.extend_from_slice(&batch.marks[range]);
            simulation.run(&own, None).unwrap();
            let all = simulation.counts().misses();
            (all - std::mem::replace(&mut before, all)) as f64
        });
        each.collect()
    }
}

fn verdict(replicate: Replicate, first: &[f64], second: &[f64]) -> Verdict {
    let column = if replicate == Replicate::Trace { "trace" } else { "block" };
    let mut rows = Table::new([column, "policy", "misses"]);
    for (policy, values) in [("first", first), ("second", second)] {
        for (at, value) in values.iter().enumerate() {
            rows.rows.push(vec![(at as u64).into(), policy.into(), (*value).into()]);
        }
    }
    let contest = Contest::of(&[Run { name: "r".to_string(), rows }], None, &[]).unwrap();
    let options = CompareOptions { replicate: Some(replicate), ..CompareOptions::default() };
    Outcome::of(contest, options).unwrap().pairs[0].verdict
}

#[test]
fn an_lru_that_forgets_one_page_in_a_thousand_is_found_with_ten_traces() {
    let lab = Laboratory::new("zipf-ro", "pages=1k,refs=30k,theta=0.9", 200);
    let found = |comparison: u64| {
        let of = |policy: &str| -> Vec<f64> {
            (0..10).flat_map(|at| lab.misses(policy, 1000 + 10 * comparison + at, 1)).collect()
        };
        verdict(Replicate::Trace, &of("lru"), &of("forgetful")) == Verdict::First
    };
    let found = (0..40).filter(|comparison| found(*comparison)).count();
    println!("found in {found} of 40 comparisons");
    // The stated power: 90 %.
    assert!(found >= 36, "found in {found} of 40 comparisons");
}

#[test]
fn lru_is_not_told_from_itself_on_other_traces_more_often_than_the_level_says() {
    let lab = Laboratory::new("zipf-ro", "pages=300,refs=1500,theta=0.9", 60);
    let misses: Vec<f64> = (0..20_000).flat_map(|seed| lab.misses("lru", seed, 1)).collect();
    let alarms = misses.chunks(20).filter(|chunk| {
        let (first, second) = chunk.split_at(10);
        matches!(verdict(Replicate::Trace, first, second), Verdict::First | Verdict::Second)
    });
    let alarms = alarms.count();
    println!("traces: {alarms} false alarms in 1,000 comparisons");
    assert!((20..=65).contains(&alarms), "{alarms} false alarms in 1,000 comparisons");
}

#[test]
fn nor_by_blocks_of_two_traces_whose_popularity_wanders() {
    let params = "pages=400,refs=12k,theta=0.9,shuffle-every=20,scan=20%";
    let lab = Laboratory::new("dynzipf-ro", params, 80);
    let mut alarms = 0;
    for comparison in 0..1000u64 {
        let of = |seed: u64| lab.misses("lru", seed, 31).split_off(1);
        let (first, second) = (of(2 * comparison), of(2 * comparison + 1));
        let told = verdict(Replicate::Block, &first, &second);
        alarms += u32::from(matches!(told, Verdict::First | Verdict::Second));
    }
    println!("blocks: {alarms} false alarms in 1,000 comparisons");
    assert!(alarms <= 65, "{alarms} false alarms in 1,000 comparisons");
}
