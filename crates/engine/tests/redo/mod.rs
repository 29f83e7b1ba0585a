//! Recovery of pages: a store and its log are changed by hand, written and not written, cut off by
//! crashes, and must come back as the log says.

mod crashes;
mod damage;
mod store;
mod world;
