//! Placement of pages in the file: the free ids and places, and the page map.

pub(super) mod bitmap;
pub(super) mod map_read;
pub(super) mod page_map;
mod space;
mod units;
