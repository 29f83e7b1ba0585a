//! Parts that policies are built from. None knows a policy.

pub mod adaptation;
pub mod buckets;
pub mod frame_lists;
pub mod ghosts;
pub mod heap;
pub mod kth;
pub mod late;
pub mod list;
pub mod map;
pub mod mark;
pub mod random;
pub mod recency_stack;
pub mod retry;
pub mod set;
pub mod sorted;
pub mod sweep;

pub use adaptation::Adaptation;
pub use buckets::{Buckets, Oldest};
pub use frame_lists::FrameLists;
pub use ghosts::Ghosts;
pub use heap::Heap;
pub use kth::Kth;
pub use late::LateHeap;
pub use list::{Links, List};
pub use map::PageMap;
pub use mark::{MarkTouch, take_mark};
pub use random::Random;
pub use recency_stack::{Heat, RecencyStack};
pub use retry::RetryQueue;
pub use set::FrameSet;
pub use sorted::Sorted;
pub use sweep::{CountOn, Counts, Hand};
