//! Pages that move so that a file can shrink: whatever happens meanwhile nothing is lost, and the
//! file ends where its pages in use do.

mod bank;
mod failures;
mod scene;
mod undisturbed;
