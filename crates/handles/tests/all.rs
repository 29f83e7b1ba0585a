//! Handles, used and dropped in any order; types by name beside the engine's own.

mod handles;
mod threads;
mod types;
