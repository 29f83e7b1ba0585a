//! An interval as lines of a given width and number, independent of any terminal.

use millpond::internals::stats::counters::Timing;
use millpond::{Published, Stats};

use super::sampler::Interval;
use super::units::{NONE, bytes, clock, count, level, percent, time};
use super::waits;

/// The narrowest and the shortest view; a smaller terminal sees a part of it.
const WIDTH_MIN: usize = 20;
const HEIGHT_MIN: usize = 3;
/// Width from which the groups' names are beside their numbers.
const GUTTER_FROM: usize = 48;
const GUTTER: usize = 8;
/// A label, its number, and the blanks behind them.
const CELL_MIN: usize = 18;
const CELL_MAX: usize = 26;
const GAP: usize = 2;

/// Content of the view.
pub(super) struct Shown<'a> {
    pub(super) file: &'a str,
    pub(super) newest: &'a Published,
    /// The last interval; `None` until the first one ends.
    pub(super) interval: Option<&'a Interval>,
    /// Text of the second line.
    pub(super) status: &'a str,
    /// Set if `status` reports something out of the ordinary.
    pub(super) is_notice: bool,
}

/// A line of the view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_bold: bool,
}

impl Line {
    fn new(text: &str, is_bold: bool, width: usize) -> Line {
        Line { text: fitted(text, width), is_bold }
    }
}

/// Returns the second line while all is well: the interval that the rates cover.
pub(super) fn about(interval: Option<&Interval>, age_s: f64) -> String {
    match interval {
        None => format!("waiting for the store to publish; last {age_s:.1} s ago"),
        Some(interval) => {
            let seconds = interval.seconds;
            let samples = match interval.samples {
                0 => "nothing published, so idle".to_string(),
                1 => "1 sample".to_string(),
                n => format!("{n} samples"),
            };
            format!("per second of {seconds:.1} s, {samples}; {age_s:.1} s ago")
        }
    }
}

/// Returns the view in lines of at most `width` characters. With `height`, there are at most that
/// number of lines, and the last one counts the missing ones.
pub(super) fn lines(shown: &Shown<'_>, width: usize, height: Option<usize>) -> Vec<Line> {
    let width = width.max(WIDTH_MIN);
    let mut lines = vec![
        Line::new(&head(shown, width), true, width),
        Line::new(shown.status, shown.is_notice, width),
    ];
    for group in groups(shown) {
        match group.cells {
            Cells::Grid(cells) => place(&mut lines, group.name, width, |width| grid(&cells, width)),
            Cells::Waits => {
                place(&mut lines, group.name, width, |width| waits::table(shown.interval, width));
            }
        }
    }
    if let Some(height) = height {
        let height = height.max(HEIGHT_MIN);
        let missing = (lines.len() + 1).saturating_sub(height);
        if lines.len() > height {
            lines.truncate(height - 1);
            let text = format!("… {missing} more lines: make the window taller");
            lines.push(Line::new(&text, false, width));
        }
    }
    lines
}

/// Returns the first line: the name of the store and its process.
fn head(shown: &Shown<'_>, width: usize) -> String {
    let file: String = shown.file.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let stats = shown.interval.map_or(&shown.newest.stats, |interval| &interval.stats);
    let open_s = shown.newest.stats.uptime_s;
    let process = shown.newest.process.pid;
    let more = format!("  process {process}, open for {}", clock(open_s));
    let frames = format!(", {} frames of {}", stats.frames, bytes(stats.page_size as f64));
    let room = |text: &str| width.saturating_sub(text.chars().count());
    let length = file.chars().count();
    match () {
        () if length + more.len() + frames.len() <= width => format!("{file}{more}{frames}"),
        () if room(&more) >= length.min(16) => format!("{}{more}", end_of(&file, room(&more))),
        () => end_of(&file, width),
    }
}

/// Returns the end of a path, which is more specific than its start.
fn end_of(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_string();
    }
    "…".chars().chain(text.chars().skip(length + 1 - width)).take(width).collect()
}

fn fitted(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.trim_end().to_string();
    }
    let mut short: String = text.chars().take(width - 1).collect();
    short.push('…');
    short
}

/// Numbers that belong together.
struct Group {
    name: &'static str,
    cells: Cells,
}

enum Cells {
    Grid(Vec<(&'static str, String)>),
    Waits,
}

/// Adds a group's lines, its name beside them or above.
fn place(lines: &mut Vec<Line>, name: &str, width: usize, draw: impl FnOnce(usize) -> Vec<String>) {
    if width < GUTTER_FROM {
        lines.push(Line::new(name, true, width));
        lines.extend(draw(width).iter().map(|text| Line::new(text, false, width)));
        return;
    }
    for (at, text) in draw(width - GUTTER).iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        lines.push(Line::new(&format!("{name:GUTTER$}{text}"), false, width));
    }
}

/// Places cells side by side, as many as fit: labels to the left, numbers to the right.
fn grid(cells: &[(&str, String)], width: usize) -> Vec<String> {
    let across = ((width + GAP) / CELL_MIN).max(1);
    let cell_width = ((width + GAP) / across - GAP).min(CELL_MAX);
    let gap = " ".repeat(GAP);
    let one = |(label, value): &(&str, String)| {
        let room = cell_width.saturating_sub(value.chars().count());
        let label: String = label.chars().take(room.saturating_sub(1)).collect();
        format!("{label:room$}{value}")
    };
    let rows = cells.chunks(across);
    rows.map(|row| row.iter().map(one).collect::<Vec<_>>().join(&gap)).collect()
}

/// Returns all groups, the most wanted ones first, since a short terminal shows only these.
///
/// - WAITS: waits of threads that use no CPU time; `frame` includes making a frame free.
/// - TIER: whether the second tier is in use, share of its reads that its cache served, reads and
///   copies per second, pages that it keeps.
/// - WRITES: pages written by workers that needed the frame, to replace pages, and to bound
///   recovery; syncs of the store.
/// - FRAMES: current values; large pools estimate dirty and cooling ones from a sample.
/// - LOG: per second, except `to redo`, which a recovery would read, and the time of a write with
///   its sync.
/// - MEAN: duration of calls and I/O; calls in memory are sampled.
/// - KEPT: bytes of memory for versions, undo and locks, and of the spill file.
fn groups(shown: &Shown<'_>) -> Vec<Group> {
    let now = shown.interval.map_or(&shown.newest.stats, |interval| &interval.stats);
    let rates = Rates { interval: shown.interval };
    let grid = |name, cells| Group { name, cells: Cells::Grid(cells) };
    let mut groups = vec![
        grid("CALLS", rates.calls()),
        grid("TXNS", rates.transactions(now)),
        Group { name: "WAITS", cells: Cells::Waits },
        grid("READS", rates.reads()),
        grid("WRITES", rates.writes()),
        grid("FRAMES", frames(now)),
        grid("LOG", rates.log(now)),
        grid("MEAN", rates.times()),
        grid("KEPT", kept(now)),
    ];
    if now.tier_frames > 0 {
        // The tier comes after the pool's reads, which it serves.
        groups.insert(4, grid("TIER", rates.tier(now)));
    }
    groups
}

/// Formats an interval's numbers, or placeholders if there is no interval.
struct Rates<'a> {
    interval: Option<&'a Interval>,
}

impl Rates<'_> {
    fn of(&self, show: fn(f64) -> String, events: fn(&Stats) -> u64) -> String {
        let shown = self.interval.map(|interval| show(interval.rate(events(&interval.stats))));
        shown.unwrap_or_else(|| NONE.to_string())
    }

    fn latency(&self, timing: Timing, ns: fn(&millpond::Latency) -> u64) -> String {
        let latency = self.interval.map(|interval| interval.stats.latency(timing));
        let timed = latency.filter(|latency| latency.count > 0);
        timed.map_or_else(|| NONE.to_string(), |latency| time(ns(latency) as f64))
    }

    fn mean(&self, timing: Timing) -> String {
        self.latency(timing, |latency| latency.mean_ns)
    }

    fn calls(&self) -> Vec<(&'static str, String)> {
        vec![
            ("gets", self.of(count, |s| s.gets)),
            ("puts", self.of(count, |s| s.puts)),
            ("deletes", self.of(count, |s| s.deletes)),
            ("scans", self.of(count, |s| s.scans)),
            ("scan rows", self.of(count, |s| s.scan_rows)),
        ]
    }

    fn transactions(&self, now: &Stats) -> Vec<(&'static str, String)> {
        vec![
            ("commits", self.of(count, |s| s.commits)),
            ("aborts", self.of(count, |s| s.aborts)),
            ("deadlock", self.of(count, |s| s.aborts_deadlock)),
            ("timeout", self.of(count, |s| s.aborts_timeout)),
            ("error", self.of(count, |s| s.aborts_error)),
            ("asked for", self.of(count, aborts_asked_for)),
            ("active", level(now.active_transactions)),
            ("snapshots", level(now.open_snapshots)),
        ]
    }

    fn reads(&self) -> Vec<(&'static str, String)> {
        let hits = self.interval.and_then(|interval| interval.stats.hit_ratio());
        vec![
            ("hit rate", hits.map_or_else(|| NONE.to_string(), percent)),
            ("misses", self.of(count, |s| s.misses)),
            ("pages", self.of(count, |s| s.reads)),
            ("ahead", self.of(count, |s| s.reads_ahead)),
        ]
    }

    /// Returns the cells of the second tier.
    fn tier(&self, now: &Stats) -> Vec<(&'static str, String)> {
        let served = self.interval.map(|interval| &interval.stats).filter(|s| s.tier_reads > 0);
        let served = served.map(|s| percent(s.tier_served as f64 / s.tier_reads as f64));
        let state = if now.tier_off > 0 { "off" } else { "on" };
        let mut cells = vec![
            ("state", state.to_string()),
            ("served", served.unwrap_or_else(|| NONE.to_string())),
            ("reads", self.of(count, |s| s.tier_reads)),
            ("fills", self.of(count, |s| s.tier_fills)),
            ("pages", level(now.tier_resident)),
        ];
        // With write-back, at least the start of the file is only in the cache.
        if now.tier_dirty > 0 {
            cells.push(("dirty", level(now.tier_dirty)));
            cells.push(("destaged", self.of(count, |s| s.tier_destaged)));
            cells.push(("spared", self.of(count, |s| s.tier_spared)));
        }
        cells
    }

    fn writes(&self) -> Vec<(&'static str, String)> {
        vec![
            ("worker", self.of(count, |s| s.writes_synch)),
            ("replace", self.of(count, |s| s.writes_replace)),
            ("recovery", self.of(count, |s| s.writes_recov)),
            ("syncs", self.of(count, |s| s.syncs)),
        ]
    }

    fn log(&self, now: &Stats) -> Vec<(&'static str, String)> {
        vec![
            ("bytes", self.of(bytes, |s| s.log_bytes)),
            ("records", self.of(count, |s| s.log_records)),
            ("syncs", self.of(count, |s| s.log_syncs)),
            ("to redo", bytes(now.log_unforgotten as f64)),
            ("sync mean", self.mean(Timing::LogSyncTime)),
            ("sync p99", self.latency(Timing::LogSyncTime, |latency| latency.p99_ns)),
        ]
    }

    fn times(&self) -> Vec<(&'static str, String)> {
        vec![
            ("get", self.mean(Timing::GetTime)),
            ("put", self.mean(Timing::PutTime)),
            ("delete", self.mean(Timing::DeleteTime)),
            ("scan", self.mean(Timing::ScanTime)),
            ("commit", self.mean(Timing::CommitTime)),
            ("page read", self.mean(Timing::ReadTime)),
            ("write", self.mean(Timing::WriteTime)),
            ("sync", self.mean(Timing::SyncTime)),
        ]
    }
}

/// Returns the transactions that their owner rolled back.
fn aborts_asked_for(stats: &Stats) -> u64 {
    let others = [stats.aborts_deadlock, stats.aborts_timeout, stats.aborts_error];
    stats.aborts.saturating_sub(others.iter().sum())
}

fn frames(now: &Stats) -> Vec<(&'static str, String)> {
    vec![
        ("free", level(now.free_frames)),
        ("dirty", level(now.dirty_frames)),
        ("cooling", level(now.cooling_frames)),
        ("resident", level(now.resident_frames)),
    ]
}

fn kept(now: &Stats) -> Vec<(&'static str, String)> {
    vec![
        ("versions", bytes(now.version_bytes as f64)),
        ("undo", bytes(now.undo_bytes as f64)),
        ("spilled", bytes(now.spilled_bytes as f64)),
        ("locks", bytes(now.lock_bytes as f64)),
    ]
}

#[cfg(test)]
mod tests;
