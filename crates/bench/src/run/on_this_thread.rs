//! A single client on the calling thread, for tools that count per thread.
//!
//! callgrind can count only within one function, and then counts the thread that is in it. So
//! the counts of [`FUNCTION`], which the warm-up does not enter, are those of the client's
//! transactions. The engine's own threads (the log's writer, evictors, checkpoints) are not
//! included.

use millpond_workload::live::{DriveError, Session, Store};

use crate::error::BenchError;
use crate::run::client::{Client, Clients};

/// Name of the function that contains the measurement and nothing else; no other function's
/// name contains it.
pub const FUNCTION: &str = "execute_on_this_thread";

/// Numbers of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps {
    /// Steps before the measurement.
    pub warm_up: u64,
    /// Measured steps.
    pub measure: u64,
}

/// Measurements of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Executed {
    /// Transactions, or rows.
    pub transactions: u64,
    /// Number of times that a transaction was rolled back and restarted.
    pub retries: u64,
    /// Page references during the measurement, if the store counts them.
    pub references: Option<u64>,
}

/// This function has no closures, since their names would contain its name.
#[inline(never)]
fn execute_on_this_thread<C: Client, S: Session>(
    client: &mut C,
    session: &mut S,
    steps: u64,
) -> Result<Executed, DriveError<S::Error>> {
    let mut executed = Executed::default();
    for _ in 0..steps {
        let done = client.step(session)?;
        executed.transactions += u64::from(done.count);
        executed.retries += u64::from(done.retries);
    }
    Ok(executed)
}

fn one<C: Client, S: Store>(
    store: &S,
    clients: &mut [C],
    steps: Steps,
    at_start: &mut dyn FnMut(),
) -> Result<Executed, BenchError> {
    let [client] = clients else {
        let text = format!("one client is run on its caller's thread, not {}", clients.len());
        return Err(BenchError::Usage(text));
    };
    let mut session = store.session().map_err(DriveError::Store)?;
    for _ in 0..steps.warm_up {
        client.step(&mut session)?;
    }
    at_start();
    let executed = execute_on_this_thread(client, &mut session, steps.measure)?;
    client.finish(&mut session)?;
    Ok(executed)
}

/// Runs the only one of `clients` on this thread; `at_start` is called between warm-up and
/// measurement.
///
/// # Errors
/// Any error of the client, or an error if there are other clients.
pub fn run<S: Store>(
    store: &S,
    clients: &mut Clients,
    steps: Steps,
    at_start: &mut dyn FnMut(),
) -> Result<Executed, BenchError> {
    match clients {
        Clients::Ycsb(all) => one(store, all, steps, at_start),
        Clients::Tpcc(all) => one(store, all, steps, at_start),
        Clients::Inserts(all) => one(store, all, steps, at_start),
        Clients::Scan(all) => one(store, all, steps, at_start),
    }
}
