//! Luan's experiments on sequential and looping references (2008), thirteen policies.
//!
//! They ran in a database system whose earlier workload is not described; ours is a Zipf
//! workload, so that what depends on it can only be compared in kind.

use std::fmt::Write as _;

use millpond_base::{AccessKind, Mark, Seed};
use millpond_workload::generate::{generate, parse_params};
use millpond_workload::trace::{BATCH_LEN, Batch};

use super::arena::{Arena, Failure};
use super::claims::{Claim, listed};
use super::markdown::{code, table};

/// His pool in fig. 1, his table A, and his pool in fig. 3.
const POOL: u32 = 12_000;
const TABLE_A: u64 = 11_113;
const POOL_LOOP: u32 = 11_000;
/// Pages and references of the workload before the scan: his is not described.
const BEFORE: &str = "pages=60k,refs=600k,theta=0.8";

/// How a policy fares in fig. 1, as far as the text says.
#[derive(Clone, Copy)]
enum Said {
    /// This ratio in percent, exactly.
    Exactly(f64),
    /// The highest group, but below LRU.
    High,
    /// The middle group.
    Middle,
    /// The lowest group.
    Low,
}

/// His thirteen policies with his parameters; fig. 1; whether fig. 3 lets them hit at all.
const POLICIES: [(&str, &str, Said, bool); 13] = [
    ("LRU", "lru", Said::Exactly(92.6), false),
    ("CLOCK", "clock", Said::Exactly(92.6), false),
    ("GCLOCK", "gclock-v2(f=5,r=5,s=1,variant=fix)", Said::High, false),
    ("FBR", "fbr", Said::High, false),
    ("2Q-Simple", "2q-simple", Said::Exactly(25.0), false),
    ("2Q-Full", "2q", Said::Exactly(25.0), true),
    ("LRU-2", "lru-2-history", Said::Exactly(25.0), true),
    ("LRFU", "lrfu", Said::Middle, true),
    ("LIRS", "lirs", Said::Exactly(1.0), true),
    ("ARC", "arc", Said::Low, false),
    ("CAR", "car", Said::Low, false),
    ("CART", "cart", Said::Low, false),
    ("CLOCK-Pro", "clock-pro", Said::Low, true),
];

/// Both experiments.
pub fn section(_is_quick: bool) -> Result<String, Failure> {
    let mut text = String::from("\n## Luan, Du, Feng and Wang (2008): scans and loops\n");
    write!(
        text,
        "\nHis system ran an undescribed workload before the scan; ours is `probabilistic` with \
         {BEFORE}. Parameters are his: Kin 25 %, Kout 50 %, LRU-2 the same, LRFU λ 0.005 and 25 %, \
         LIRS 1 % and a stack of 1.5 pools, GCLOCK weight 5.\n"
    )?;
    pollution(&mut text)?;
    looping(&mut text)?;
    Ok(text)
}

/// A warm-up, then a marked scan of a table that is used by nothing else.
fn scanned() -> Result<Arena, Failure> {
    let mut source = generate("probabilistic", &parse_params(BEFORE)?, Seed(1))?;
    let mut batch = Batch::default();
    while source.fill(&mut batch, BATCH_LEN)? > 0 {}
    let scan = Mark::of(AccessKind::Read).with_scan(true);
    (0..TABLE_A).for_each(|page| batch.push((1 << 40) + page, scan));
    Ok(Arena::of_batch(batch))
}

fn pollution(text: &mut String) -> Result<(), Failure> {
    let arena = scanned()?;
    let share = |policy: &str| -> Result<f64, Failure> {
        Ok(arena.run(policy, POOL)?.pollution as f64 / f64::from(POOL) * 100.0)
    };
    write!(
        text,
        "\n### Pages of a scan left in the pool (fig. 1): {TABLE_A} pages read once through {POOL} \
         frames\n\n"
    )?;
    let (mut rows, mut shares) = (Vec::new(), Vec::new());
    for (name, policy, said, _) in POLICIES {
        let ours = share(policy)?;
        shares.push((name, ours));
        let (published, difference) = match said {
            Said::Exactly(theirs) => (format!("{theirs} %"), format!("{:+.1}", ours - theirs)),
            Said::High => ("high, below LRU".into(), String::new()),
            Said::Middle => ("middle".into(), String::new()),
            Said::Low => ("low".into(), String::new()),
        };
        rows.push(vec![
            name.to_string(),
            published,
            format!("{ours:.1} %"),
            difference,
            code(policy),
        ]);
    }
    text.push_str(&table(&["policy", "published", "ours", "difference", "by"], &rows));
    let moved = [
        ("2q(kin=10%)", 10.0, share("2q(kin=10%)")?),
        ("2q-simple(kin=40%)", 40.0, share("2q-simple(kin=40%)")?),
        ("lirs(hirs=5%)", 5.0, share("lirs(hirs=5%)")?),
    ];
    text.push('\n');
    text.push_str(&listed(&scan_claims(&shares, &moved)));
    let smaller = share("lrfu(lambda=0.0001)")?;
    write!(
        text,
        "\nLRFU differs because λ = 0.005 is LRU in a pool of this size: with time counted in \
         references, as LRFU's paper has it, a scan of {TABLE_A} pages shrinks all older sums to \
         less than 2⁻⁵⁵ of what they were, below any page of the scan. With λ = 0.0001 its share \
         is {smaller:.1} %. The rest depends on the workload before, as the paper says itself.\n"
    )?;
    Ok(())
}

fn scan_claims(shares: &[(&str, f64)], moved: &[(&str, f64, f64)]) -> Vec<Claim> {
    let group = |names: &[&str]| -> Vec<f64> {
        shares.iter().filter(|(name, _)| names.contains(name)).map(|(_, share)| *share).collect()
    };
    let least = |group: &[f64]| group.iter().copied().fold(f64::MAX, f64::min);
    let most = |group: &[f64]| group.iter().copied().fold(f64::MIN, f64::max);
    let high = group(&["LRU", "CLOCK", "GCLOCK", "FBR"]);
    let middle = group(&["2Q-Simple", "2Q-Full", "LRFU", "LRU-2"]);
    let low = group(&["ARC", "CAR", "CART", "LIRS", "CLOCK-Pro"]);
    let range = |group: &[f64]| format!("{:.1} to {:.1} %", least(group), most(group));
    let numbers = moved.iter().map(|(policy, _, share)| format!("`{policy}` {share:.1} %"));
    vec![
        Claim::new(
            "GCLOCK, CLOCK, LRU and FBR are polluted more than 2Q, LRFU and LRU-2",
            format!("{} against {}", range(&high), range(&middle)),
            least(&high) > most(&middle),
        ),
        Claim::new(
            "those more than ARC, CAR, CART, LIRS and CLOCK-Pro",
            format!("{} against {}", range(&middle), range(&low)),
            least(&middle) > most(&low),
        ),
        Claim::new(
            "the share of 2Q and LIRS is always their parameter",
            numbers.collect::<Vec<_>>().join(", "),
            moved.iter().all(|(_, wanted, share)| (wanted - share).abs() < 0.1),
        ),
    ]
}

/// Table A read ten times through a pool that it nearly fits.
fn looping(text: &mut String) -> Result<(), Failure> {
    let mut batch = Batch::default();
    (0..10 * TABLE_A).for_each(|at| batch.push(at % TABLE_A, Mark::READ));
    let arena = Arena::of_batch(batch);
    let ends: Vec<usize> = (1..=10).map(|round| round * TABLE_A as usize).collect();
    write!(
        text,
        "\n### Loops (fig. 3): {TABLE_A} pages read ten times through {POOL_LOOP} clean frames, hit \
         ratio in percent\n\n"
    )?;
    let mut rows = Vec::new();
    for (name, policy, _, hits) in POLICIES {
        let counts = arena.run_parts(policy, POOL_LOOP, &ends)?;
        let mut before = 0;
        let rounds = counts.iter().map(|counts| {
            let hits = counts.hits - before;
            before = counts.hits;
            hits as f64 / TABLE_A as f64 * 100.0
        });
        let rounds: Vec<f64> = rounds.collect();
        let is_same = rounds.iter().any(|share| *share > 0.0) == hits;
        let mut row = vec![name.to_string(), if hits { "above 0" } else { "0" }.to_string()];
        row.extend([1, 2, 3, 9].map(|round: usize| format!("{:.1}", rounds[round])));
        row.push(if is_same { "yes" } else { "**no**" }.to_string());
        rows.push(row);
    }
    text.push_str(&table(
        &["policy", "published", "2nd", "3rd", "4th", "10th round", "agrees"],
        &rows,
    ));
    text.push_str(
        "\nLRFU with λ = 0.005 is LRU here, as above. LRU-2 has pages of one reference only, and \
         which of those goes is left open: ours takes the least recently used, which in a \
         loop is one that comes soon; his took others, with which a loop can be hit.\n",
    );
    Ok(())
}
