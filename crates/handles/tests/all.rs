//! Handles used and dropped in any order; types by name, compared with the engine's own.

mod handles;
mod threads;
mod types;
