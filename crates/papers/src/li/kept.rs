//! Recordings kept in a folder, so that each is made only once.
//!
//! A recording is a storage-level trace in Millpond's own format, `NAME-SEED.parquet`, with the
//! recLSNs of its writes. The file `NAME-SEED.txt` beside it records its parameters. The second
//! file is written last, and the first one does not count without it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use millpond_base::Lsn;
use millpond_workload::formats::open_rec_lsns;
use millpond_workload::trace::{BATCH_LEN, Batch, TraceError};
use millpond_workload::write::{WriteOptions, create};

use super::first_tier::{Course, FirstTier};
use super::traces::{RecordLi, Recorded};
use crate::experiment::FigureError;

/// Reason that a kept recording cannot be read, or a new one cannot be kept.
#[derive(Debug, thiserror::Error)]
enum KeptError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    #[error("{path}: recorded in another way ({there}; wanted is {wanted}): move it away")]
    Another { path: PathBuf, there: String, wanted: String },
    #[error("{path}: no line 'data_pages N': remove it, and the trace will be recorded again")]
    NoPages { path: PathBuf },
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Returns all parameters of a recording, beside its name and seed.
fn made(first_tier: &FirstTier, course: &Course) -> String {
    format!(
        "warehouses {}, tiny {}, page_size {}, gap {}, warm_up {}, transactions {}",
        course.warehouses,
        course.is_tiny,
        course.page_size,
        first_tier.gap_bytes(course),
        first_tier.warm_up(course),
        first_tier.transactions(course)
    )
}

/// Returns the two files of a recording.
fn files(folder: &Path, name: &str, seed: u64) -> [PathBuf; 2] {
    ["parquet", "txt"].map(|ending| folder.join(format!("{name}-{seed}.{ending}")))
}

/// Reads a recording from its files; returns `None` if it does not exist.
fn read([trace, how]: &[PathBuf; 2], wanted: &str) -> Result<Option<Recorded>, KeptError> {
    let text = match fs::read_to_string(how) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(KeptError::Io { path: how.clone(), error }),
    };
    let mut lines = text.lines();
    let there = lines.next().unwrap_or_default();
    if there != wanted {
        let (there, wanted) = (there.to_string(), wanted.to_string());
        return Err(KeptError::Another { path: how.clone(), there, wanted });
    }
    let pages = lines.find_map(|line| line.strip_prefix("data_pages ")?.parse().ok());
    let data_pages = pages.ok_or_else(|| KeptError::NoPages { path: how.clone() })?;
    let (mut source, mut batch) = (open_rec_lsns(trace)?, Batch::default());
    while source.fill(&mut batch, BATCH_LEN)? > 0 {}
    let mut rec_lsns: Vec<u64> = std::mem::take(&mut batch.lsns).iter().map(|l| l.0).collect();
    // A recording without a write has no recLSNs.
    rec_lsns.resize(batch.len(), 0);
    Ok(Some(Recorded { batch, rec_lsns, data_pages, ..Recorded::default() }))
}

/// Writes a recording to its files.
fn write([trace, how]: &[PathBuf; 2], made: &str, recorded: &Recorded) -> Result<(), KeptError> {
    let options = WriteOptions { page_lsns: true, ..WriteOptions::default() };
    let mut sink = create(trace, &options)?;
    let all = &recorded.batch;
    for from in (0..all.len()).step_by(BATCH_LEN) {
        let range = from..all.len().min(from + BATCH_LEN);
        let mut batch = Batch::with_capacity(range.len());
        batch.pages.extend_from_slice(&all.pages[range.clone()]);
        batch.marks.extend_from_slice(&all.marks[range.clone()]);
        let lsns: Vec<[Lsn; 2]> =
            recorded.rec_lsns[range].iter().map(|rec_lsn| [Lsn(0), Lsn(*rec_lsn)]).collect();
        sink.write_with_lsns(&batch, &lsns)?;
    }
    sink.finish()?;
    let mut text = made.to_string();
    let _ = writeln!(text, "\ndata_pages {}", recorded.data_pages);
    fs::write(how, text).map_err(|error| KeptError::Io { path: how.clone(), error })
}

/// Returns a recorder that takes recordings of first tiers from `folder`, and keeps new ones
/// there. Page references are always recorded again.
///
/// # Errors
/// The folder cannot be created. The recorder fails if `record` fails, if a file cannot be read
/// or written, or if a file has other parameters.
pub fn kept(folder: PathBuf, mut record: RecordLi) -> std::io::Result<RecordLi> {
    fs::create_dir_all(&folder)?;
    Ok(Box::new(move |first_tier, course, seed, watch| {
        let Some(tier) = first_tier else { return record(None, course, seed, watch) };
        let (files, made) = (files(&folder, tier.recording, seed), made(tier, course));
        if let Some(recorded) = read(&files, &made).map_err(FigureError::of)? {
            watch.detail(&format!("{} is there already", tier.recording));
            return Ok(recorded);
        }
        let recorded = record(first_tier, course, seed, watch)?;
        write(&files, &made, &recorded).map_err(FigureError::of)?;
        Ok(recorded)
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use millpond_base::{Mark, Reason};

    use super::super::first_tier::{PAGE_SIZE, first_tier};
    use super::*;
    use crate::experiment::{Scale, Unwatched};

    fn made_up(seed: u64) -> Recorded {
        let mut recorded = Recorded { data_pages: 100 + seed, ..Recorded::default() };
        for page in 0..BATCH_LEN as u64 + 3 {
            let mark = match page % 3 {
                0 => Mark::READ,
                1 => Mark::WRITE.with_reason(Reason::Replace),
                _ => Mark::WRITE.with_reason(Reason::Dsync),
            };
            recorded.batch.push(page * seed, mark);
            recorded.rec_lsns.push(if page % 3 == 1 { page + 5 } else { 0 });
        }
        recorded
    }

    /// Returns a recorder that counts its calls.
    fn counting(times: &Arc<AtomicU64>) -> RecordLi {
        let times = times.clone();
        Box::new(move |_, _, seed, _| {
            times.fetch_add(1, Ordering::Relaxed);
            Ok(made_up(seed))
        })
    }

    #[test]
    fn what_was_recorded_is_taken_and_what_was_recorded_otherwise_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (times, course) = (Arc::new(AtomicU64::new(0)), Course::of(Scale::Quick));
        let tier = first_tier("300k_400").unwrap();
        for run in 0..2 {
            let mut record = kept(folder.path().join("traces"), counting(&times)).unwrap();
            for seed in 1..=2 {
                let taken = record(Some(tier), &course, seed, &mut Unwatched).unwrap();
                let made = made_up(seed);
                assert_eq!(taken.batch.pages, made.batch.pages, "run {run}");
                assert_eq!(taken.batch.marks, made.batch.marks);
                assert_eq!(taken.rec_lsns, made.rec_lsns);
                assert_eq!(taken.data_pages, made.data_pages);
            }
            // Page references are not kept.
            record(None, &course, 1, &mut Unwatched).unwrap();
            assert_eq!(times.load(Ordering::Relaxed), 3 + run);
        }
        let mut record = kept(folder.path().join("traces"), counting(&times)).unwrap();
        let other = Course { page_size: PAGE_SIZE * 2, ..course };
        let error = record(Some(tier), &other, 1, &mut Unwatched).err().unwrap().to_string();
        assert!(error.contains("300k_400-1.txt") && error.contains("page_size 8192"), "{error}");
        let [trace, how] = files(&folder.path().join("traces"), "300k_400", 1);
        fs::write(&trace, "PAR1 and nothing else").unwrap();
        assert!(record(Some(tier), &course, 1, &mut Unwatched).is_err(), "damage is an error");
        fs::write(&how, made(tier, &course)).unwrap();
        let error = record(Some(tier), &course, 1, &mut Unwatched).err().unwrap().to_string();
        assert!(error.contains("data_pages"), "{error}");
        fs::remove_file(&how).unwrap();
        record(Some(tier), &course, 1, &mut Unwatched).unwrap();
        assert_eq!(times.load(Ordering::Relaxed), 5, "without the second file it is made again");
    }
}
