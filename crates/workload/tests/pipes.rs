//! Named pipes: a trace is opened once, so that no reference is lost and no writer is cut off.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use millpond_workload::formats::{ReadOptions, open};
use millpond_workload::trace::{Batch, TraceError};

/// Rounds: whether a second opening meets the writer is chance.
const ROUNDS: usize = 100;
/// Far longer than all rounds take: a reader that waits for ever fails the test.
const FOR_EVER: Duration = Duration::from_secs(120);

fn read(path: &Path) -> Result<Vec<u64>, TraceError> {
    let (mut source, mut batch) = (open(path, &ReadOptions::default())?, Batch::default());
    while source.fill(&mut batch, 1 << 16)? > 0 {}
    Ok(batch.pages)
}

/// Writes `lines` lines to the pipe at `path` in one opening, and reads them, `ROUNDS` times.
fn rounds(path: PathBuf, lines: u64) {
    let text: String = (0..lines).map(|page| format!("{:07}\n", 1_000_000 + page)).collect();
    let pages: Vec<u64> = (0..lines).map(|page| 1_000_000 + page).collect();
    for round in 0..ROUNDS {
        let written = thread::scope(|scope| {
            let writer = scope.spawn(|| File::create(&path)?.write_all(text.as_bytes()));
            let found = read(&path).unwrap();
            assert!(found == pages, "round {round}: {} of {lines} references", found.len());
            writer.join().unwrap()
        });
        written.unwrap_or_else(|error| panic!("round {round}: the writer met {error}"));
    }
}

#[test]
fn every_reference_of_a_named_pipe_arrives_and_its_writer_is_not_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    for lines in [3, (1 << 20) / 8] {
        let path = folder.path().join(format!("of-{lines}.txt"));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (done, is_done) = channel();
        // Not joined: a reader that hangs would hang the test, too.
        thread::spawn(move || {
            rounds(path, lines);
            done.send(()).unwrap_or_default();
        });
        let outcome = is_done.recv_timeout(FOR_EVER);
        assert!(outcome.is_ok(), "{lines} lines: a round failed or hangs ({outcome:?})");
    }
}
