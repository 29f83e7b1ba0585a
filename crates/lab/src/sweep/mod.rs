//! Sweeps: traces × policies × sizes × seeds, side by side on all cores.

mod blocks;
mod charge;
mod host;
mod plan;
mod row;
mod run;
pub(crate) mod stream;

pub use charge::{PAGE_BYTES, charged_frames, is_charged};
pub use plan::{Model, Plan, Shard, Tables, TraceInput, Warmup};
pub use row::{CONTENT, Row, SETTING, over_seeds, relative_misses, rows_to_table};
pub(crate) use run::threads_for;
pub use run::{Observer, Sweep, SweepError};
pub use stream::Content;
