//! Sweeps: traces × policies × sizes × seeds, side by side on all cores.

mod blocks;
mod charge;
mod check;
mod error;
mod host;
mod plan;
mod room;
mod row;
mod run;
pub(crate) mod stream;

pub use charge::{PAGE_BYTES, charged_frames, is_charged};
pub(crate) use check::threads_for;
pub use error::SweepError;
pub use plan::{Model, Plan, Shard, Tables, TraceInput, Warmup};
pub use room::NoRoom;
pub(crate) use room::Room;
pub use row::{CONTENT, OPTIONS, Row, over_seeds, relative_misses, rows_to_table};
pub use run::{Observer, Sweep};
pub use stream::Content;
