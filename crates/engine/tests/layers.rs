//! Tests of the engine's layers below the store, in one program: each program links the engine
//! anew.

mod btree;
mod check;
mod faulty_device;
mod file_device;
mod lock;
mod log;
mod mutations;
mod page_map;
mod page_map_growth;
mod page_store;
mod page_store_sync;
mod pool;
mod pool_evictors;
mod pool_faults;
mod redo;
mod structure_damage;
mod structures;
mod tier;
