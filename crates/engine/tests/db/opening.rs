//! Cost of opening: the memory of an empty store, measured in children that do nothing else.

use std::process::Command;

use millpond::{Db, Options};
use millpond_policies::contract::Policy;
use millpond_policies::info::Tier;
use millpond_policies::registry::{Visitor, visit_all};

use super::memory::status;
use super::place;

const CHILD: &str = "MILLPOND_TEST_OPENING";
const POLICY: &str = "MILLPOND_TEST_OPENING_POLICY";
const MEMORY: &str = "MILLPOND_TEST_OPENING_MEMORY";
const RESIDENT_MAX: u64 = 64 << 20;

/// Not a test of its own: the child of the others.
#[test]
fn child_that_opens_an_empty_store() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let policy = std::env::var(POLICY).unwrap();
    let mut options = Options::new().policy(&policy);
    if let Ok(memory) = std::env::var(MEMORY) {
        options = options.memory(memory.parse().unwrap());
    }
    let db = Db::open(path, options).unwrap();
    println!("resident {} bytes", status("VmHWM").unwrap());
    db.close().unwrap();
}

/// Bytes resident after an empty store was opened by a process of its own.
fn resident(policy: &str, memory: Option<u64>) -> u64 {
    let (_dir, path) = place();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "db::opening::child_that_opens_an_empty_store", "--nocapture"])
        .env(CHILD, &path)
        .env(POLICY, policy);
    if let Some(bytes) = memory {
        child.env(MEMORY, bytes.to_string());
    }
    let out = child.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{policy}: {text}");
    let line = text.lines().find_map(|line| line.split_once("resident ")).unwrap().1;
    line.strip_suffix(" bytes").unwrap().parse().unwrap()
}

/// All policies that a store runs, in the registry's order.
pub(super) fn live_policies() -> Vec<&'static str> {
    struct Live(Vec<&'static str>);
    impl Visitor for Live {
        fn visit<P: Policy>(&mut self) {
            if P::INFO.live && !P::NEEDS_FUTURE && P::INFO.tier == Tier::First {
                self.0.push(P::INFO.id);
            }
        }
    }
    let mut live = Live(Vec::new());
    visit_all(&mut live);
    live.0
}

#[test]
fn an_empty_store_opens_with_64_mebibytes_of_the_default_memory() {
    for policy in ["watt", "lean-evict"] {
        let bytes = resident(policy, None);
        assert!(bytes <= RESIDENT_MAX, "{policy}: {bytes} bytes");
    }
}

/// Independent of the machine: a policy that touched its frames would use all of it.
#[test]
fn an_empty_store_of_each_policy_opens_with_64_mebibytes_of_four_gibibytes() {
    let policies = live_policies();
    assert!(policies.len() > 30, "{policies:?}");
    let above: Vec<_> = policies
        .iter()
        .map(|policy| (*policy, resident(policy, Some(4 << 30))))
        .filter(|(_, bytes)| *bytes > RESIDENT_MAX)
        .collect();
    assert!(above.is_empty(), "more than {RESIDENT_MAX} bytes: {above:?}");
}
