//! Each sentence on both sides of its bound, and open where nothing decides.

mod all;
mod sides;
mod studies;
