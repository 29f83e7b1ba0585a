//! The command: its flags, and its loops with a terminal and without.

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::json;
use super::sampler::Interval;
use super::terminal::{self, Terminal};
use super::view::{Line, Shown, about, lines};
use super::watcher::{State, Watcher};
use crate::error::Failure;
use crate::interrupt;
use crate::output::{complain, line_width, print};
use crate::store::open::StoreArgs;

const EXAMPLES: &str = "Examples:
  millpond top shop.db                     as a full screen
  millpond top shop.db --interval 10       rates of ten seconds
  millpond top shop.db --plain --count 3   three blocks of text
  millpond top shop.db --json >> shop.log  one object per line and interval

Keys: q, Esc and Ctrl-C leave.

A store publishes its statistics once a second while it is used, which is what all numbers are \
of; a shorter interval ends when the next ones come. WAITS: threads waiting now (the mean of the \
interval's samples) and recently (of the last ten), waits per second, how long each lasts, and \
the seconds that threads waited per second: 2.5 s/s means two and a half threads at a time. A \
wait counts when it is over. Threads that wait burn no CPU time; for what the others do, see \
`millpond breakdown`.";

/// Longest time between two checks of statistics, screen size, keys and Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Time after which the screen is redrawn without new numbers, because it shows their age.
const REDRAW: Duration = Duration::from_secs(1);

/// Default characters per line.
const PLAIN_WIDTH: usize = 80;

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,
    /// Seconds of an interval, 0.1 to 86400
    #[arg(long, short, value_name = "S", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// End after N intervals
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Append a block of text per interval; the default without a terminal
    #[arg(long)]
    plain: bool,
    /// Append one JSON object per interval, each on a separate line
    #[arg(long, conflicts_with = "plain")]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is needed".to_string())?;
    match (0.1..=86_400.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("an interval lasts 0.1 to 86400 seconds".to_string()),
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let watcher = Watcher::new(&args.store.file)?;
    if args.json || args.plain || !terminal::is_there() {
        return stream(args, watcher);
    }
    let taken = Terminal::standard().map_err(|error| {
        Failure::Store(format!("this terminal cannot be used: {error}; --plain needs none"))
    })?;
    screen(args, watcher, taken)
}

/// Returns `true` if `done` intervals are all that the user asked for.
fn is_last(args: &Args, done: u64) -> bool {
    args.count.is_some_and(|count| done >= count)
}

/// Appends to standard output until Ctrl-C, the last interval, or the close of the store.
fn stream(args: &Args, mut watcher: Watcher<'_>) -> Result<(), Failure> {
    let file = args.store.file.display().to_string();
    let mut done = 0;
    loop {
        if let Some(interval) = watcher.look(args.interval)? {
            let text = match args.json {
                true => json::line(&file, watcher.newest(), &interval) + "\n",
                false => block(&file, &watcher, &interval),
            };
            print(&text)?;
            done += 1;
        }
        if is_last(args, done) {
            return Ok(());
        }
        if let Some(notice) = watcher.notice() {
            complain(&notice);
            return Ok(());
        }
        if interrupt::asked() {
            return Ok(());
        }
        sleep(LOOK);
    }
}

fn block(file: &str, watcher: &Watcher<'_>, interval: &Interval) -> String {
    let width = line_width().unwrap_or(PLAIN_WIDTH);
    let mut text = String::new();
    for line in draw(file, watcher, Some(interval), "", width, None) {
        text.push_str(&line.text);
        text.push('\n');
    }
    text + "\n"
}

/// Draws the current view; its second line ends with `keys`.
fn draw(
    file: &str,
    watcher: &Watcher<'_>,
    interval: Option<&Interval>,
    keys: &str,
    width: usize,
    height: Option<usize>,
) -> Vec<Line> {
    let said = interval.and_then(|interval| interval.restart.as_deref());
    let restart = watcher.restart().or(said);
    let notice = match (watcher.notice(), restart) {
        (Some(notice), _) => Some(format!("{notice}: these are its last numbers{keys}")),
        (None, Some(reason)) => Some(format!("{reason}: counted from there{keys}")),
        (None, None) if watcher.state == State::Unknown && watcher.age > REDRAW * 10 => {
            let age = watcher.age.as_secs();
            Some(format!("nothing published for {age} s: idle, or its process ended{keys}"))
        }
        (None, None) => None,
    };
    let is_notice = notice.is_some();
    let usual = || format!("{}{keys}", about(interval, watcher.age.as_secs_f64()));
    let status = notice.unwrap_or_else(usual);
    let shown = Shown { file, newest: watcher.newest(), interval, status: &status, is_notice };
    lines(&shown, width, height)
}

/// Draws the whole screen until a key, a signal or the last interval ends it. The screen stays
/// when the store is closed and continues when the store is opened again.
fn screen(args: &Args, mut watcher: Watcher<'_>, mut terminal: Terminal) -> Result<(), Failure> {
    let terminated = interrupt::terminated();
    let file = args.store.file.display().to_string();
    let mut last: Option<Interval> = None;
    let mut state = watcher.state;
    let mut drawn = Instant::now();
    let mut done = 0;
    loop {
        let ended = watcher.look(args.interval)?;
        let is_new = ended.is_some() || state != watcher.state;
        state = watcher.state;
        if let Some(interval) = ended {
            last = Some(interval);
            done += 1;
        }
        if watcher.restart().is_some() {
            // Older rates do not belong beside the new store's clock.
            last = None;
        }
        let size = terminal.size();
        if is_new || size != terminal.drawn() || drawn.elapsed() >= REDRAW {
            let interval = last.as_ref();
            let view = draw(&file, &watcher, interval, " (q leaves)", size.0, Some(size.1));
            terminal.draw(&view, size)?;
            drawn = Instant::now();
        }
        let is_over = args.count.is_some() && !state.is_open();
        let is_asked = terminal.wait(LOOK)? || interrupt::asked();
        if is_last(args, done) || is_over || is_asked || terminated.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}
