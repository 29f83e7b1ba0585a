//! Full TPC-C over any store: nine tables, two indexes, five transactions, four conditions.
//!
//! The driver follows the specification (revision 5.11, with clauses cited) in schema,
//! cardinalities, inputs, mix and effects. It has no terminals and no think times: each worker
//! runs one transaction after the other, as in the papers (leanstore V-B, watt 6.2).
//!
//! ```no_run
//! # use millpond_base::Seed;
//! # use millpond_workload::live::{MemoryStore, Store};
//! # use millpond_workload::tpcc::{Config, Scale, Tables, Worker, check, load};
//! let store = MemoryStore::new();
//! let scale = Scale::full(1);
//! let tables = Tables::create(&store)?;
//! load(&store, &tables, &scale, Seed(1), 2)?;
//! let config = Config::standard(scale, 1);
//! let mut worker = Worker::new(&config, tables, Seed(1), 0)?;
//! let mut session = store.session()?;
//! for _ in 0..100_000 {
//!     worker.step(&mut session)?;
//! }
//! assert!(check(&mut session, &tables)?.is_consistent());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Without transactions.** A store without transactions still ends a run consistent, under any
//! interleaving, because of three rules. Counters and sums (D_NEXT_O_ID, the YTDs, balances,
//! stock) are read and changed in one atomic update of one row. Rows by which other transactions
//! find an order are inserted after the rows that they then expect. And the only rollbacks are
//! those of the 1 % of NewOrders with an unknown item, which is noticed before anything is
//! written. Without isolation, only the view of one moment is lost: an OrderStatus may show a
//! balance from before a delivery and the lines from after it. Stores that isolate declare it
//! ([`Session::ISOLATED`]). On stores that undo writes ([`Session::undoes`]), a NewOrder to be
//! rolled back has written all but its last line.
//!
//! **Departures from the specification**: no terminals, so no think times and no reported text
//! (its data is read, and enters [`Worker::digest`]); dates are logical times; StockLevel draws
//! its district, since workers have none; the loading constant of last names is fixed. A district
//! of fewer than 1000 customers ([`Scale::tiny`]) has one last name per customer.
//!
//! **Costs.** A step allocates nothing and formats nothing. `examples/driver_cost.rs` measures the
//! driver's own cost: about half a microsecond per transaction of the standard mix.
//!
//! [`Session::ISOLATED`]: crate::live::Session::ISOLATED
//! [`Session::undoes`]: crate::live::Session::undoes

mod access;
mod check;
mod config;
mod customer;
mod delivery;
mod draw;
pub mod keys;
mod layout;
mod load;
mod mix;
mod new_order;
mod order_status;
mod payment;
pub mod rows;
mod scale;
mod step;
mod stock_level;
mod tables;
mod worker;

pub use check::{Report, Violation, check};
pub use config::{Config, ConfigError};
pub use draw::{Constants, last_name, nurand};
pub use layout::{I64, Layout, Text, U8, U16, U32, U64};
pub use load::{load, load_items, load_warehouse};
pub use mix::{Kind, Mix};
pub use scale::{DISTRICTS, Scale, ScaleError};
pub use step::Step;
pub use tables::{Tables, tables};
pub use worker::Worker;
