//! Tests of each sentence on both sides of its bound, and open if nothing decides.

mod all;
mod sides;
mod studies;
