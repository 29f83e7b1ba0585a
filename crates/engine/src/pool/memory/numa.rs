//! NUMA nodes of the machine, the node that a thread runs on, and binding the pool's parts to them
//! (leanstore IV-H). This file needs `unsafe`.
//!
//! The pool's memory and its free lists are split in as many equal parts as there are nodes; a
//! thread takes frames of its own node while there are any. Everything else stays in one place, for
//! one replacement policy. On a machine with one node, none of this costs anything.

use crate::pool::memory::region::FrameMemory;

/// The NUMA nodes of the machine, or pretended ones.
pub struct Nodes {
    count: u32,
    /// Node of each processor; empty where nodes are pretended or there is one.
    of_cpu: Vec<u32>,
}

/// Reads `0-3,8` as Linux writes lists of processors.
fn parse_list(text: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.trim().parse::<u32>(), to.trim().parse::<u32>())
            && to.saturating_sub(from) < 1 << 16
        {
            all.extend(from..=to);
        }
    }
    all
}

impl Nodes {
    /// Finds the machine's nodes, or `pretended` ones, over which threads are dealt in turn.
    pub fn find(pretended: Option<u32>) -> Nodes {
        match pretended {
            Some(count) => Nodes { count: count.max(1), of_cpu: Vec::new() },
            None => Nodes::read("/sys/devices/system/node"),
        }
    }

    fn read(root: &str) -> Nodes {
        let online = std::fs::read_to_string(format!("{root}/online")).unwrap_or_default();
        let nodes = parse_list(&online);
        let mut of_cpu = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{root}/node{node}/cpulist");
            for cpu in parse_list(&std::fs::read_to_string(path).unwrap_or_default()) {
                let cpu = cpu as usize;
                if of_cpu.len() <= cpu {
                    of_cpu.resize(cpu + 1, 0);
                }
                of_cpu[cpu] = index as u32;
            }
        }
        Nodes { count: (nodes.len() as u32).max(1), of_cpu }
    }

    /// Returns the number of nodes.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the node of the calling thread, which has `slot`.
    pub fn of_thread(&self, slot: usize) -> usize {
        if self.count == 1 {
            return 0;
        }
        if self.of_cpu.is_empty() {
            return slot % self.count as usize;
        }
        self.of_cpu.get(this_cpu()).map_or(0, |node| *node as usize)
    }

    /// Asks the system to take each part's memory from its node. Best effort: a part whose memory
    /// comes from elsewhere is slower, not wrong.
    pub fn bind(&self, memory: &FrameMemory) {
        if self.count == 1 || self.of_cpu.is_empty() {
            return;
        }
        for node in 0..self.count {
            let bound = |n: u32| {
                let frame = u64::from(memory.frames()) * u64::from(n) / u64::from(self.count);
                frame as usize * memory.stride()
            };
            let (from, to) = (bound(node), bound(node + 1));
            bind_part(memory, from, to, node);
        }
    }
}

#[cfg(target_os = "linux")]
fn this_cpu() -> usize {
    // SAFETY: no arguments, no memory.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn this_cpu() -> usize {
    0
}

#[cfg(target_os = "linux")]
fn bind_part(memory: &FrameMemory, from: usize, to: usize, node: u32) {
    const MPOL_PREFERRED: libc::c_long = 1;
    let (from, to) = (from.next_multiple_of(4096), to & !4095);
    if from >= to || node >= 63 {
        return;
    }
    let mask: u64 = 1 << node;
    // SAFETY: the range lies inside the pool's mapping and is aligned to pages; a policy for the
    // source of memory changes no contents.
    let result = unsafe {
        let start = memory.start().add(from).as_ptr();
        libc::syscall(libc::SYS_mbind, start, to - from, MPOL_PREFERRED, &raw const mask, 64, 0)
    };
    if result != 0 {
        tracing::debug!(node, "the pool's memory was not bound to its node");
    }
}

#[cfg(not(target_os = "linux"))]
fn bind_part(_: &FrameMemory, _: usize, _: usize, _: u32) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(parse_list("0-2,5\n"), [0, 1, 2, 5]);
        assert!(parse_list("").is_empty() && parse_list("x-3,").is_empty());
    }

    #[test]
    fn a_made_up_machine_has_the_nodes_that_its_files_say() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap().to_string();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("online", "0-1\n");
        put("node0/cpulist", "0,2\n");
        put("node1/cpulist", "1,3\n");
        let nodes = Nodes::read(&root);
        assert_eq!(nodes.count(), 2);
        assert_eq!(nodes.of_cpu, [0, 1, 0, 1]);
        assert!(nodes.of_thread(0) < 2);
        let memory = FrameMemory::map(64, 4096).unwrap();
        nodes.bind(&memory);
        assert_eq!(Nodes::read("/nowhere").count(), 1);
    }

    #[test]
    fn pretended_nodes_are_dealt_in_turn() {
        let nodes = Nodes::find(Some(3));
        assert_eq!([0, 1, 2, 3].map(|slot| nodes.of_thread(slot)), [0, 1, 2, 0]);
    }
}
