//! The frame of experiments: what is run, in which order, what is kept, what is left out.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use millpond_lab::report::{Line, LinePlot, Section};
use millpond_lab::results::ResultDir;
use millpond_lab::table::Table;
use millpond_papers::experiment::{
    About, Cell, Experiment, ExperimentError, Fields, Figure, FigureError, Grid, Need, Options,
    Plan, PlanError, Room, Scale, Short, Unwatched, Watch, run,
};

const POLICIES: [&str; 3] = ["lru", "arc", "watt"];

/// Writes down what it is asked to run.
struct Told {
    id: &'static str,
    ran: Rc<RefCell<Vec<String>>>,
    need: Need,
    batch: usize,
    /// The cell that fails.
    fails: Option<&'static str>,
    sleeps: Duration,
}

impl Figure for Told {
    fn about(&self) -> About {
        About { id: self.id, title: "Told", asks: "What runs?", says: "everything." }
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let cell = |policy: &str| Cell::new(self.id, repetition, self.need).with("policy", policy);
        POLICIES.into_iter().map(cell).collect()
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn run(&mut self, cells: &[&Cell], _: &mut dyn Watch) -> Result<Vec<Vec<Fields>>, FigureError> {
        assert!(cells.len() <= self.batch);
        let mut all = Vec::new();
        for cell in cells {
            if self.fails == Some(cell.text("policy").as_str()) {
                return Err(FigureError::of(std::io::Error::other("no luck")));
            }
            std::thread::sleep(self.sleeps);
            self.ran.borrow_mut().push(cell.key());
            let misses = 100 * cell.text("policy").len() as u64 + u64::from(cell.repetition);
            all.push(vec![vec![("misses".to_string(), misses.into())]]);
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        let grid = Grid::of(rows, &["policy"], "misses");
        let point = |(at, label): (usize, &str)| Some((at as f64, grid.mean(&[label])?));
        let points = grid.labels(0).into_iter().enumerate().filter_map(point).collect();
        let lines = vec![Line { label: "misses".to_string(), points, ..Line::default() }];
        let plot = LinePlot { lines, ..LinePlot::default() };
        Section { plots: vec![plot.into()], table: rows.clone(), ..Section::default() }
    }
}

type Ran = Rc<RefCell<Vec<String>>>;

fn experiment(change: impl Fn(&mut Told)) -> (Experiment, Ran) {
    let ran: Ran = Rc::default();
    let figure = |id| {
        let need = Need { seconds: 0.01, memory: 1000, disk: 10 };
        let sleeps = Duration::ZERO;
        let mut told = Told { id, ran: ran.clone(), need, batch: 1, fails: None, sleeps };
        change(&mut told);
        Box::new(told) as Box<dyn Figure>
    };
    let figures = vec![figure("1"), figure("2")];
    let (title, note) = ("Told".to_string(), "A test.".to_string());
    (Experiment { paper: "test", title, note, scale: Scale::Quick, figures }, ran)
}

fn options(root: &tempfile::TempDir) -> Options {
    let root = root.path().join("results");
    Options { root, repetitions: 2, room: Room::default(), ..Options::of(Scale::Quick) }
}

/// Stops before cell number `after`.
struct Stops {
    after: usize,
    begun: usize,
}

impl Watch for Stops {
    fn stop(&self) -> bool {
        self.begun > self.after
    }

    fn cell(&mut self, _: &str, done: usize, of: usize, share: f64) {
        assert!(done < of && (0.0..=1.0).contains(&share));
        self.begun += 1;
    }
}

#[test]
fn repetitions_run_one_after_the_other_and_every_second_one_backwards() {
    let root = tempfile::tempdir().unwrap();
    let (mut experiment, ran) = experiment(|told| told.batch = 2);
    let outcome = run(&mut experiment, &options(&root), &mut Unwatched).unwrap();
    assert!(outcome.is_complete() && outcome.run == 12 && outcome.taken == 0);
    let forwards: Vec<String> =
        ["1", "2"].iter().flat_map(|f| POLICIES.map(|p| format!("{f}|policy={p}|"))).collect();
    let first = forwards.iter().map(|cell| format!("{cell}1"));
    let second = forwards.iter().rev().map(|cell| format!("{cell}2"));
    assert_eq!(*ran.borrow(), first.chain(second).collect::<Vec<_>>());
    let dir = ResultDir::open(&outcome.folder).unwrap();
    let rows = dir.rows().unwrap();
    assert_eq!(rows.columns, ["figure", "policy", "repetition", "misses"]);
    assert_eq!(rows.rows.len(), 12);
    assert_eq!(dir.run().unwrap()["complete"], true);
    let page = std::fs::read_to_string(&outcome.page).unwrap();
    for part in ["1: Told", "2: Told", "What runs?", "data-mark=\"smoke\"", "All 12 cells"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn what_was_stopped_goes_on_where_it_was_and_repeats_nothing() {
    for after in 0..=12 {
        let root = tempfile::tempdir().unwrap();
        let (mut first, ran) = experiment(|_| ());
        let options = options(&root);
        let outcome = run(&mut first, &options, &mut Stops { after, begun: 0 }).unwrap();
        assert_eq!((outcome.run, outcome.was_stopped), (after, after < 12));
        let before = ran.borrow().clone();
        assert_eq!(before.len(), after);
        let (mut second, ran) = experiment(|_| ());
        let options = Options { resume: true, ..options };
        let outcome = run(&mut second, &options, &mut Unwatched).unwrap();
        assert!(outcome.is_complete() && outcome.taken == after && outcome.run == 12 - after);
        assert!(ran.borrow().iter().all(|cell| !before.contains(cell)), "nothing twice");
        let rows = ResultDir::open(&outcome.folder).unwrap().rows().unwrap();
        assert_eq!(rows.rows.len(), 12, "nothing lost");
        let misses: Vec<u64> =
            (0..12).map(|r| rows.get(r, "misses").unwrap().number().unwrap() as u64).collect();
        assert_eq!(misses[..6], [301, 301, 401, 301, 301, 401]);
        // Without being asked to go on, everything is run again.
        let (mut third, ran) = experiment(|_| ());
        run(&mut third, &Options { resume: false, ..options }, &mut Unwatched).unwrap();
        assert_eq!(ran.borrow().len(), 12);
    }
}

#[test]
fn figures_can_be_run_one_by_one_into_one_page() {
    let root = tempfile::tempdir().unwrap();
    let (mut both, ran) = experiment(|_| ());
    let only =
        |id: &str, resume| Options { figures: vec![id.to_string()], resume, ..options(&root) };
    assert_eq!(run(&mut both, &only("2", false), &mut Unwatched).unwrap().cells, 6);
    let outcome = run(&mut both, &only("1", true), &mut Unwatched).unwrap();
    assert_eq!((outcome.cells, outcome.run, outcome.taken), (6, 6, 0));
    assert_eq!(ran.borrow().len(), 12);
    let page = std::fs::read_to_string(&outcome.page).unwrap();
    assert!(page.contains("1: Told") && page.contains("2: Told"));
    let rows = ResultDir::open(&outcome.folder).unwrap().rows().unwrap();
    assert_eq!(rows.rows.len(), 12);
    let error = run(&mut both, &only("3", true), &mut Unwatched).unwrap_err();
    assert!(matches!(&error, ExperimentError::Plan(PlanError::NoFigure { .. })), "{error}");
    assert!(error.to_string().contains("it has 1, 2"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_made() {
    let root = tempfile::tempdir().unwrap();
    let (mut large, ran) = experiment(|told| told.need.disk = 1 << 40);
    let room = Room { disk: Some(1 << 30), ..Room::default() };
    let options = Options { room, ..options(&root) };
    let error = run(&mut large, &options, &mut Unwatched).unwrap_err();
    let ExperimentError::Short { short, .. } = &error else { panic!("{error}") };
    assert_eq!(*short, Short::Disk { needed: 1 << 40, there: 1 << 30 });
    assert!(error.to_string().contains("millpond-papers test --scale quick"), "{error}");
    assert!(ran.borrow().is_empty() && !options.root.exists());
    let need = Plan::of(&large, &[], 2).unwrap().need();
    assert!((need.seconds - 0.12).abs() < 1e-9 && need.memory == 1000);
}

#[test]
fn a_cell_that_fails_ends_the_run_and_what_was_finished_stays() {
    let root = tempfile::tempdir().unwrap();
    let (mut failing, _) = experiment(|told| told.fails = Some("watt"));
    let error = run(&mut failing, &options(&root), &mut Unwatched).unwrap_err().to_string();
    assert!(error.contains("figure 1, watt, repetition 1: no luck"), "{error}");
    let (mut healed, ran) = experiment(|_| ());
    let again = Options { resume: true, ..options(&root) };
    let outcome = run(&mut healed, &again, &mut Unwatched).unwrap();
    assert_eq!((outcome.taken, ran.borrow().len()), (2, 10));
}

#[test]
fn a_run_keeps_to_its_time_and_says_what_it_left_out() {
    let root = tempfile::tempdir().unwrap();
    let slow = |told: &mut Told| {
        told.sleeps = Duration::from_millis(60);
        told.need.seconds = 0.001;
    };
    let (mut first, _) = experiment(slow);
    let budget = Some(Duration::from_millis(50));
    let options = Options { budget, repetitions: 3, ..options(&root) };
    let outcome = run(&mut first, &options, &mut Unwatched).unwrap();
    assert!(outcome.run <= 1 && !outcome.is_complete() && !outcome.was_stopped, "{outcome:?}");
    let said = outcome.left_out.join(" ");
    assert!(said.contains("cells were left out"), "{said}");
    assert!(said.contains("Repetitions 2 to 3 were left out (12 cells)"), "{said}");
    let (mut second, _) = experiment(|_| ());
    let outcome =
        run(&mut second, &Options { budget: None, resume: true, ..options }, &mut Unwatched);
    assert!(outcome.unwrap().is_complete());
}
