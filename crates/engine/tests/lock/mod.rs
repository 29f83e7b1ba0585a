//! The lock manager, seen from outside: what is granted, who waits, who gives way.

mod deadlocks;
mod endings;
mod escalation;
mod grants;
mod histories;
mod phantoms;
mod scene;
