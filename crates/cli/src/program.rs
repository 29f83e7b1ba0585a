//! Parts of this command line for programs with commands of their own, such as `millpond-papers`:
//! failures, printing, progress and Ctrl-C.

pub use crate::app::conclude;
pub use crate::bench::{ProgressLine, ResultArgs};
pub use crate::describe::{completions, man};
pub use crate::error::Failure;
pub use crate::interrupt::{asked, listen};
pub use crate::output::{complain, print};
pub use crate::own::live;
pub use crate::progress::Progress;
