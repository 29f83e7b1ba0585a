//! Sweeps in units: the rows of the whole sweep, the same files from any number of programs.

use std::collections::BTreeMap;
use std::path::Path;

use millpond_base::Size;
use millpond_lab::registry::Registry;
use millpond_lab::results::{ResultDir, SweepFolder};
use millpond_lab::sweep::{
    Observer, Plan, Row, Shard, Sweep, SweepError, TraceInput, Warmup, rows_to_table,
};
use millpond_lab::table::Table;
use millpond_lab::units::{
    CELLS_MAX, Event, Local, Outcome, TraceFile, Unit, UnitError, common_settings, run_local,
    sources, units,
};
use millpond_policies::config::Spec;
use millpond_workload::formats::{self, ReadOptions};
use tempfile::TempDir;

/// Traces of some references, every third a write.
fn traces(folder: &Path) -> Vec<TraceFile> {
    let file = |number: u64| {
        let path = folder.join(format!("{number}.txt"));
        let line = |at: u64| {
            let page = (at * at + number * at) % 97 % 40;
            format!("{page} {}\n", if at.is_multiple_of(3) { "W" } else { "R" })
        };
        std::fs::write(&path, (0..2000).map(line).collect::<String>()).unwrap();
        TraceFile {
            name: format!("{number}.txt"),
            path,
            format: None,
            columns: None,
            ops: None,
            expand_sizes: false,
            map_ids: false,
        }
    };
    (1..=3).map(file).collect()
}

fn plan() -> Plan {
    let specs = Spec::parse_list("lru,random,opt,watt(sample=4)").unwrap();
    let mut plan = Plan::new(specs, vec![Size::Frames(5), Size::Share(0.1), Size::Bytes(1 << 16)]);
    plan.seeds = vec![1, 2, 3];
    plan.warmup = Warmup::Share(0.07);
    plan
}

fn run(plan: &Plan, traces: &[TraceFile], folder: &Path, how: Local) -> Outcome {
    let registry = Registry::builtin();
    let units = units(traces, plan, &registry).unwrap();
    let settings = common_settings(plan, traces);
    let folder = SweepFolder::create(folder, &settings, sources()).unwrap();
    run_local(&units, &folder, &registry, how, &mut |_| true).unwrap()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()))
        .collect()
}

struct Rows(Vec<Row>);

impl Observer for Rows {
    fn row(&mut self, row: Row) -> Result<(), SweepError> {
        self.0.push(row);
        Ok(())
    }

    fn stalled(&mut self, stalled: &millpond_lab::sim::Stalled) {
        panic!("{stalled}");
    }
}

/// Rows of a sweep as `sim` runs it, without times.
fn at_once(plan: &mut Plan, traces: &[TraceFile]) -> Table {
    let input = |trace: &TraceFile| {
        let path = trace.path.clone();
        TraceInput {
            name: trace.name.clone(),
            open: Box::new(move || formats::open(&path, &ReadOptions::default())),
            repeatable: true,
            fingerprint: String::new(),
        }
    };
    plan.traces = traces.iter().map(input).collect();
    let mut rows = Rows(Vec::new());
    Sweep::new(plan, &Registry::builtin()).unwrap().run(&mut rows).unwrap();
    rows_to_table(&rows.0).without("ns_per_reference")
}

fn sorted(table: &Table) -> Vec<String> {
    let mut rows: Vec<String> = table.rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

#[test]
fn units_have_the_rows_of_the_whole_sweep() {
    let place = TempDir::new().unwrap();
    let traces = traces(place.path());
    let (mut plan, out) = (plan(), place.path().join("out"));
    let outcome = run(&plan, &traces, &out, Local::default());
    assert_eq!((outcome.ran, outcome.there), (12, 0));
    let whole = at_once(&mut plan, &traces);
    let read = ResultDir::open(&out).unwrap();
    // 3 traces; lru and opt with one seed, random and watt with three, at three sizes.
    assert_eq!(whole.rows.len(), 3 * 3 * (1 + 1 + 3 + 3));
    assert_eq!(sorted(&read.rows().unwrap()), sorted(&whole));
    assert_eq!(read.run().unwrap()["settings"]["warmup"], "7%");
    let again = run(&plan, &traces, &out, Local::default());
    assert_eq!((again.ran, again.there), (0, 12));
}

#[test]
fn parts_and_threads_leave_the_same_files_with_the_same_bytes() {
    let place = TempDir::new().unwrap();
    let (mut plan, traces) = (plan(), traces(place.path()));
    let [one, parts] = ["one", "parts"].map(|name| place.path().join(name));
    run(&plan, &traces, &one, Local { threads: 1, ..Local::default() });
    let mut ran = Vec::new();
    for index in 1..=5 {
        plan.shard = Some(Shard { index, count: 5 });
        // A tight budget lets only one unit run at a time.
        let how = Local { threads: 3, memory: Some(1), unit_memory: None };
        ran.push(run(&plan, &traces, &parts, how).ran);
    }
    assert_eq!(ran, [3, 3, 2, 2, 2]);
    assert_eq!(files(&one).len(), 13);
    assert!(files(&one) == files(&parts), "they differ");
}

#[test]
fn a_unit_is_described_and_read_and_runs_elsewhere() {
    let place = TempDir::new().unwrap();
    let (plan, mut traces) = (plan(), traces(place.path()));
    traces[0].columns = Some("page=1,op=2".to_string());
    traces[0].format = Some("csv".to_string());
    let registry = Registry::builtin();
    for unit in units(&traces, &plan, &registry).unwrap() {
        let read = Unit::read(&unit.describe()).unwrap();
        assert_eq!(read, unit);
        let name = unit.name(&registry).unwrap();
        assert_eq!(read.name(&registry).unwrap(), name);
        assert!(unit.memory(&registry).unwrap() >= 64 << 20);
        if unit.trace.columns.is_none() {
            let ran = read.run(&registry, 1, Some(&name), &|| false).unwrap();
            assert_eq!(ran, unit.run(&registry, 2, None, &|| false).unwrap());
        }
        let moved = Unit {
            trace: TraceFile { path: traces[1].path.clone(), ..unit.trace.clone() },
            ..unit
        };
        if moved.trace.name != traces[1].name {
            let error = moved.run(&registry, 1, Some(&name), &|| false).unwrap_err();
            assert!(matches!(error, UnitError::Other { .. }), "{error}");
        }
    }
    for bad in ["", "{}", "[1]", r#"{"trace":"t"}"#] {
        assert!(matches!(Unit::read(bad), Err(UnitError::Description(_))), "{bad}");
    }
}

#[test]
fn a_folder_refuses_traces_that_are_read_in_another_way() {
    let place = TempDir::new().unwrap();
    let (plan, traces) = (plan(), traces(place.path()));
    let path = place.path().join("out");
    let create = |traces: &[TraceFile]| {
        SweepFolder::create(&path, &common_settings(&plan, traces), sources()).map(drop)
    };
    create(&traces).unwrap();
    create(&traces[..1]).unwrap();
    type Change = fn(&mut TraceFile);
    let changes: [(Change, &str); 5] = [
        (|trace| trace.expand_sizes = true, "expand_sizes = false, and not true"),
        (|trace| trace.map_ids = true, "map_ids = false, and not true"),
        (|trace| trace.format = Some("csv".into()), "format = null, and not \"csv\""),
        (|trace| trace.columns = Some("page=2".into()), "columns = null, and not \"page=2\""),
        (|trace| trace.ops = Some("x=R".into()), "ops = null, and not \"x=R\""),
    ];
    for (change, says) in changes {
        let mut other = traces.clone();
        other.iter_mut().for_each(change);
        let error = create(&other).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let mut mixed = traces.clone();
    mixed[1].map_ids = true;
    let error = create(&mixed).unwrap_err().to_string();
    assert!(error.contains("map_ids = false, and not [false,true]"), "{error}");
}

#[test]
fn a_name_says_what_rows_depend_on_and_nothing_else() {
    let place = TempDir::new().unwrap();
    let (plan, traces) = (plan(), traces(place.path()));
    let registry = Registry::builtin();
    let unit = units(&traces, &plan, &registry).unwrap().remove(0);
    let name = |unit: &Unit| unit.name(&registry).unwrap();
    let copy = place.path().join("copy");
    std::fs::copy(&unit.trace.path, &copy).unwrap();
    let mut same = unit.clone();
    same.trace.path = copy;
    assert_eq!(name(&same), name(&unit), "it was copied");
    let changed: [fn(&mut Unit); 6] = [
        |unit| unit.trace.name.push('x'),
        |unit| unit.policy = "fifo".to_string(),
        |unit| unit.sizes[0] = "6".to_string(),
        |unit| unit.seeds[0] = 9,
        |unit| unit.settings.batch = 2,
        |unit| unit.trace.map_ids = true,
    ];
    for change in changed {
        let mut other = unit.clone();
        change(&mut other);
        assert_ne!(name(&other), name(&unit), "{other:?}");
    }
    std::fs::write(&unit.trace.path, "1\n2\n1\n").unwrap();
    assert_ne!(name(&same), name(&unit), "it has another content");
}

#[test]
fn seeds_and_sizes_of_a_unit_are_bounded() {
    let place = TempDir::new().unwrap();
    let (mut plan, traces) = (plan(), traces(place.path()));
    plan.seeds = (1..=20).collect();
    plan.sizes = (1..=40).map(Size::Frames).collect();
    let all = units(&traces, &plan, &Registry::builtin()).unwrap();
    assert!(all.iter().all(|unit| (1..=CELLS_MAX).contains(&unit.cells())));
    // lru and opt have one seed, random and watt 20.
    assert_eq!(all.iter().map(Unit::cells).sum::<usize>(), 3 * 40 * (1 + 1 + 20 + 20));
}

#[test]
fn a_sweep_that_is_stopped_goes_on_later() {
    let place = TempDir::new().unwrap();
    let (plan, traces) = (plan(), traces(place.path()));
    let registry = Registry::builtin();
    let units = units(&traces, &plan, &registry).unwrap();
    let out = place.path().join("out");
    let folder = SweepFolder::create(&out, &common_settings(&plan, &traces), sources()).unwrap();
    let how = Local { threads: 1, ..Local::default() };
    let mut watch = |event: Event<'_>| !matches!(event, Event::Done(_));
    let outcome = run_local(&units, &folder, &registry, how, &mut watch).unwrap();
    assert!(outcome.is_stopped && outcome.ran >= 1);
    assert_eq!(files(&out).len(), 1 + outcome.ran, "only whole files");
    let rest = run(&plan, &traces, &out, Local::default());
    assert_eq!((rest.there, rest.ran), (outcome.ran, units.len() - outcome.ran));
}

#[test]
fn long_units_begin_first() {
    let place = TempDir::new().unwrap();
    let (mut plan, traces) = (plan(), traces(place.path()));
    // The last trace is the longest, and random policies have three times as many simulations.
    let long: String = (0..8000).map(|at| format!("{} R\n", at % 41)).collect();
    std::fs::write(&traces[2].path, long).unwrap();
    plan.policies = Spec::parse_list("lru,random,fifo").unwrap();
    let registry = Registry::builtin();
    let units = units(&traces, &plan, &registry).unwrap();
    let out = place.path().join("out");
    let folder = SweepFolder::create(&out, &common_settings(&plan, &traces), sources()).unwrap();
    let mut order = Vec::new();
    let mut watch = |event: Event<'_>| {
        if let Event::Done(unit) = event {
            order.push(unit.label());
        }
        true
    };
    let how = Local { threads: 1, ..Local::default() };
    run_local(&units, &folder, &registry, how, &mut watch).unwrap();
    // Each trace begins with another policy.
    let expected = [
        "3.txt, random",
        "3.txt, fifo",
        "3.txt, lru",
        "1.txt, random",
        "2.txt, random",
        "1.txt, lru",
        "1.txt, fifo",
        "2.txt, fifo",
        "2.txt, lru",
    ];
    assert_eq!(order, expected);
}

#[test]
fn what_fails_does_not_end_the_others_and_what_cannot_be_is_told_at_once() {
    let place = TempDir::new().unwrap();
    let (mut plan, traces) = (plan(), traces(place.path()));
    std::fs::write(&traces[1].path, "1\n2\nno page at all\n").unwrap();
    let outcome = run(&plan, &traces, &place.path().join("out"), Local::default());
    assert_eq!((outcome.ran, outcome.failed.len()), (8, 4));
    assert!(outcome.failed[0].1.to_string().contains("2.txt"), "{:?}", outcome.failed);

    let registry = Registry::builtin();
    let refused = |traces: &[TraceFile], plan: &Plan| units(traces, plan, &registry).unwrap_err();
    let twice = [traces[0].clone(), traces[0].clone()];
    assert!(refused(&twice, &plan).to_string().contains("given twice"));
    assert!(refused(&[], &plan).to_string().contains("nothing to run"));
    plan.policies = Spec::parse_list("lru,lruu").unwrap();
    assert!(matches!(refused(&traces, &plan), UnitError::Policy(_)));
}
