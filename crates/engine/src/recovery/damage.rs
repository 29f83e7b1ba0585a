//! The damage of a log: the hole, the records behind it, and the obstacle that prevents recovery up
//! to the hole.

use std::fmt;
use std::path::PathBuf;

use millpond_base::{Lsn, PageId};

use crate::page::PageType;

/// Damage in a log, before its end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LogDamage {
    /// The log.
    pub path: PathBuf,
    /// Position of the hole: the end of the last whole record before it.
    pub at: Lsn,
    /// Offset of the hole in the log's file; `None` if the segment's place is lost.
    pub offset: Option<u64>,
    /// Position of the last checkpoint, where recovery begins.
    pub checkpoint: Lsn,
    /// Records behind the hole that can be read, but are lost nevertheless.
    pub lost: LostRecords,
    /// Position up to which the log had been durable, according to a record behind the hole.
    pub durable: Option<Lsn>,
    /// True if the store was closed, and is whole without the log.
    pub was_closed: bool,
    /// Obstacle to recovering the store up to the hole, if it is known.
    pub obstacle: Option<Obstacle>,
}

/// Records behind a hole that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LostRecords {
    /// Number of records.
    pub records: u64,
    /// Commits among them.
    pub commits: u64,
    /// Position of the first record; 0 if there is none.
    pub first: Lsn,
    /// End of the last record; 0 if there is none.
    pub until: Lsn,
}

/// Obstacle to recovering a store up to the hole in its log.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Obstacle {
    /// The hole is in the last checkpoint, where recovery begins.
    Checkpoint,
    /// The hole is before the last checkpoint, in records that redo needs. Only an older checkpoint
    /// would show the store as it was before the hole.
    BeforeCheckpoint,
    /// The hole is in the records needed to roll back a transaction that did not commit.
    Undo,
    /// Storage has pages with changes from behind the hole, or pages that cannot be read.
    Pages(StrayPages),
}

/// Pages on storage that have changed since the hole, or cannot be read, and of which the log
/// before the hole has no image.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct StrayPages {
    /// Number of pages read.
    pub looked_at: u64,
    /// Number of pages with changes from behind the hole.
    pub newer: u64,
    /// Number of pages that cannot be read: damaged, or torn by a write from behind the hole.
    pub unreadable: u64,
    /// The first few stray pages.
    pub first: Vec<StrayPage>,
}

/// One stray page.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StrayPage {
    /// The page.
    pub page: PageId,
    /// End of the last record about the page; `None` if the page cannot be read.
    pub lsn: Option<Lsn>,
    /// Id of the structure that the page belongs to; `None` if the page cannot be read.
    pub owner: Option<u32>,
    /// The structure's name, if the catalog could be read.
    pub structure: Option<String>,
    /// Type of the page.
    pub kind: PageType,
}

impl fmt::Display for StrayPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StrayPage { page, lsn, owner, structure, .. } = self;
        match (lsn, owner, structure) {
            (Some(lsn), _, Some(name)) => {
                write!(f, "page {page} of '{name}', changed at {}", lsn.0)
            }
            (Some(lsn), Some(owner), None) => {
                write!(f, "page {page} of structure {owner}, changed at {}", lsn.0)
            }
            _ => write!(f, "page {page}, not readable"),
        }
    }
}

impl LostRecords {
    fn tell(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.records {
            0 => f.write_str("no record behind can be read"),
            records => write!(
                f,
                "{records} records behind can be read, from position {} to {}, {} commits among \
                 them",
                self.first.0, self.until.0, self.commits
            ),
        }
    }
}

const UNUSABLE: &str = "Restore a backup, or write out what is intact with `millpond dump FILE \
    --salvage --out saved.dump` and load it with `millpond load NEW saved.dump`";

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Obstacle::Checkpoint => "recovery would begin with the checkpoint there".to_string(),
            Obstacle::BeforeCheckpoint => {
                "that is before the last checkpoint, and needed to make pages anew".to_string()
            }
            Obstacle::Undo => {
                "that is needed to roll back a transaction that did not commit".into()
            }
            Obstacle::Pages(pages) => return pages.fmt(f),
        };
        write!(f, "{what}, so the log is of no use. {UNUSABLE}")
    }
}

impl fmt::Display for StrayPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StrayPages { newer, unreadable, .. } = self;
        write!(
            f,
            "storage has {newer} pages with changes from behind the damage and {unreadable} that \
             cannot be read, which the log before it does not make anew ("
        )?;
        for (at, page) in self.first.iter().enumerate() {
            let gap = if at == 0 { "" } else { "; " };
            write!(f, "{gap}{page}")?;
        }
        let more = newer + unreadable > self.first.len() as u64;
        let more = if more { "; …" } else { "" };
        write!(f, "{more}): the store as it was there is gone, and nothing was changed. {UNUSABLE}")
    }
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log {} is damaged at position {}", self.path.display(), self.at.0)?;
        if let Some(offset) = self.offset {
            write!(f, " (offset {offset} of the file)")?;
        }
        if self.was_closed {
            return f.write_str(
                ", but the store was closed and is whole without it: `millpond recover FILE \
                 --salvage` (in programs `Db::open_salvaging`) makes a new log, and nothing is \
                 lost",
            );
        }
        if let Some(durable) = self.durable {
            write!(f, ", though it had been durable up to {}", durable.0)?;
        }
        f.write_str(": what was committed from there on is lost; ")?;
        self.lost.tell(f)?;
        match &self.obstacle {
            Some(obstacle) => write!(f, ". The store cannot be recovered up to there: {obstacle}"),
            None => f.write_str(
                ". `millpond recover FILE --salvage` (in programs `Db::open_salvaging`) recovers \
                 the store as it was before the damage, if no page on storage is newer: copy both \
                 files first, or restore a backup",
            ),
        }
    }
}
