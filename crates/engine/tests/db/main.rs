//! Stores as users see them: trees by name, every combination, closing and opening again.

mod busy;
mod combinations;
mod errors;
mod in_place;
mod life;
mod memory;
mod merging;
mod policies;
mod scans;
