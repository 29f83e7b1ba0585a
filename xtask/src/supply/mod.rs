//! What the project is made of: licences, origins and known faults of its dependencies.

mod advisories;
mod licences;
mod lock;
mod run;
mod update;

pub use run::main;
