//! Where pages are in the file: which ids and places are free, and the page map.

pub(super) mod bitmap;
pub(super) mod map_read;
pub(super) mod page_map;
mod space;
mod units;
