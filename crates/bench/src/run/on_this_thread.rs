//! One client on the thread that asks for it, and no other: for what is counted by thread.
//!
//! callgrind can be told to count only within a function, and then counts for the thread that is
//! in it. So what the transactions of a client execute are the counts of [`FUNCTION`], which the
//! warm-up does not enter. Threads of the engine (the log's writer, evictors, checkpoints) are
//! others, and are not in them.

use millpond_workload::live::{DriveError, Session, Store};

use crate::error::BenchError;
use crate::run::client::{Client, Clients};

/// The function in which a measurement is, and nothing else: no other function has that name in
/// its own.
pub const FUNCTION: &str = "execute_on_this_thread";

/// Numbers of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps {
    /// Steps of the client before anything is counted.
    pub warm_up: u64,
    /// Steps that are measured.
    pub measure: u64,
}

/// Measurements of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Executed {
    /// Transactions, or rows.
    pub transactions: u64,
    /// Number of times that a transaction was rolled back and restarted.
    pub retries: u64,
    /// Page references meanwhile, where the store counts them.
    pub references: Option<u64>,
}

/// Without closures: their names would have the function's in them.
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
/// Any error of the client, or that there are others.
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
