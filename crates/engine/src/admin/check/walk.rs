//! The walk from the catalog down: every page that can be reached, each compared with its parent.
//!
//! It takes a bit of memory per page of the file, and the pending references: those of one page per
//! level, and in an index or a heap a copy of that page. Levels fall by one from parent to child,
//! so that no damage makes the walk endless; where pages have no levels, the bits ensure that.

use std::rc::Rc;

use millpond_base::PageId;

use crate::admin::check::fault::Fault;
use crate::admin::check::reader::{BATCH, PageReader};
use crate::admin::check::report::{Problem, StructureReport};
use crate::admin::check::structure::{Named, Roots, owns};
use crate::btree::{Fences, LargePart, StoredNode, StoredValue, Violation, overflow_parts};
use crate::io::PageStore;
use crate::page::{PageBuffer, PageHeader, PageType, View};
use crate::pool::{Kind, Swip};
use crate::store::entry::Structure;
use crate::{hash_index, heap};

/// The problems found, a limited number of which is kept.
pub(crate) struct Findings {
    pub(crate) problems: Vec<Problem>,
    pub(crate) left_out: u64,
    pub(crate) kept_max: usize,
    pub(crate) page_bytes: u64,
}

impl Findings {
    pub(crate) fn add(&mut self, page: PageId, structure: Option<&str>, fault: Fault) {
        if self.problems.len() >= self.kept_max {
            self.left_out += 1;
            return;
        }
        let offset = page.0.saturating_mul(self.page_bytes);
        let structure = structure.map(str::to_string);
        self.problems.push(Problem { page, offset, structure, fault });
    }
}

/// A bit per page.
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn new(pages: u64) -> Bits {
        Bits { words: vec![0; usize::try_from(pages.div_ceil(64)).unwrap_or(0)] }
    }

    pub(crate) fn has(&self, page: PageId) -> bool {
        let word = self.words.get((page.0 / 64) as usize);
        word.is_some_and(|word| word >> (page.0 % 64) & 1 != 0)
    }

    /// Sets the bit; returns `true` if it was clear.
    pub(crate) fn set(&mut self, page: PageId) -> bool {
        let Some(word) = self.words.get_mut((page.0 / 64) as usize) else { return false };
        let bit = 1 << (page.0 % 64);
        let clear = *word & bit == 0;
        *word |= bit;
        clear
    }
}

/// Expected role of a page.
pub(crate) enum Role {
    /// The root of a structure.
    Root,
    /// A node of a tree.
    Node { level: u8, child: usize, fences: Fences },
    /// A page of a large value.
    Large(LargePart),
    /// A page of a structure that is not a tree, below this page.
    Other(Rc<PageBuffer>),
}

/// A page to be examined.
pub(crate) struct Visit {
    pub(crate) page: PageId,
    pub(crate) parent: Option<PageId>,
    /// Offset of the swip in the parent.
    pub(crate) at: usize,
    /// Number of the structure.
    pub(crate) structure: usize,
    pub(crate) role: Role,
}

impl Visit {
    /// Returns `true` if there is little or nothing below the page.
    fn is_low(&self) -> bool {
        match &self.role {
            Role::Root => false,
            Role::Node { level, .. } => *level == 0,
            Role::Large(part) => part.level == 0,
            Role::Other(_) => true,
        }
    }
}

/// The state of the walk.
pub(crate) struct Walk<'s> {
    pub(crate) store: &'s PageStore,
    /// Number of pages of the store.
    pub(crate) pages: u64,
    pub(crate) reached: Bits,
    pub(crate) reached_count: u64,
    pub(crate) unreadable: u64,
    pub(crate) by_type: [u64; 256],
    pub(crate) structures: Vec<StructureReport>,
    pub(crate) findings: Findings,
    pub(crate) reader: PageReader,
    /// Seeds of hash indexes, by structure.
    seeds: Vec<u64>,
    catalog: Roots,
    stack: Vec<Visit>,
}

impl<'s> Walk<'s> {
    pub(crate) fn new(
        store: &'s PageStore,
        pages: u64,
        catalog: Roots,
        kept_max: usize,
    ) -> Walk<'s> {
        let page_bytes = store.page_size().bytes_u64();
        Walk {
            store,
            pages,
            reached: Bits::new(pages),
            reached_count: 0,
            unreadable: 0,
            by_type: [0; 256],
            structures: Vec::new(),
            findings: Findings { problems: Vec::new(), left_out: 0, kept_max, page_bytes },
            reader: PageReader::new(store.page_size().bytes()),
            seeds: Vec::new(),
            catalog,
            stack: Vec::new(),
        }
    }

    /// Adds a structure to be walked.
    pub(crate) fn add(&mut self, found: Named) {
        let Named { name, owner, kind, root, .. } = found;
        let structure = self.structures.len();
        self.seeds.push(0);
        self.structures.push(StructureReport { name, owner, kind, root, ..Default::default() });
        self.stack.push(Visit { page: root, parent: None, at: 0, structure, role: Role::Root });
    }

    /// Examines some more pages; `false` when there are none.
    pub(crate) fn step(&mut self) -> bool {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let goes_along = |visit: &Visit| batch.is_empty() || visit.is_low();
            let Some(visit) = self.stack.pop_if(|visit| goes_along(visit)) else { break };
            let alone = !visit.is_low();
            if self.admit(&visit) {
                batch.push(visit);
                if alone {
                    break;
                }
            }
        }
        let pages: Vec<PageId> = batch.iter().map(|visit| visit.page).collect();
        let mut reader = std::mem::replace(&mut self.reader, PageReader::new(0));
        let results = reader.read(self.store, &pages);
        for (i, (visit, result)) in batch.iter().zip(results).enumerate() {
            match result {
                Ok(()) => self.look(visit, reader.view(i), reader.bytes(i)),
                Err(error) => {
                    self.unreadable += 1;
                    self.fault(visit, error.into());
                }
            }
        }
        self.reader = reader;
        !self.stack.is_empty()
    }

    /// Records a fault of the page of `visit`.
    fn fault(&mut self, visit: &Visit, fault: Fault) {
        self.fault_at(visit.page, visit.structure, fault);
    }

    fn fault_at(&mut self, page: PageId, structure: usize, fault: Fault) {
        if let Some(structure) = self.structures.get_mut(structure) {
            structure.damaged = true;
            self.findings.add(page, Some(&structure.name), fault);
        }
    }

    /// Returns `true` if the page is to be examined: it exists, and was not seen yet.
    fn admit(&mut self, visit: &Visit) -> bool {
        let (child, at, pages) = (visit.page, visit.at, self.pages);
        let said_by = visit.parent.unwrap_or_default();
        if child.0 >= pages {
            self.fault_at(said_by, visit.structure, Fault::Beyond { at, child, pages });
            return false;
        }
        if self.store.is_reserved(child) {
            self.fault_at(said_by, visit.structure, Fault::Reserved { at, child });
            return false;
        }
        if !self.reached.set(child) {
            self.fault(visit, Fault::Twice { parent: visit.parent });
            return false;
        }
        self.reached_count += 1;
        true
    }

    fn look(&mut self, visit: &Visit, page: View<'_>, bytes: &[u8]) {
        let header = PageHeader::read(bytes);
        self.by_type[usize::from(header.kind.0)] += 1;
        let Some((expected, kind)) =
            self.structures.get(visit.structure).map(|found| (found.owner, found.kind))
        else {
            return;
        };
        if header.owner != expected {
            let fault = Violation::Owner { found: header.owner, expected };
            return self.fault(visit, fault.into());
        }
        match &visit.role {
            Role::Large(part) => self.look_at_value(visit, part, page),
            Role::Root if kind == Structure::Tree => self.look_at_node(visit, page),
            Role::Node { .. } => self.look_at_node(visit, page),
            Role::Root | Role::Other(_) => self.look_at_other(visit, kind, page, bytes),
        }
    }

    fn look_at_node(&mut self, visit: &Visit, page: View<'_>) {
        let node = match StoredNode::of(page) {
            Ok(node) => node,
            Err(wrong) => {
                for violation in wrong {
                    self.fault(visit, violation.into());
                }
                return;
            }
        };
        let wrong = match &visit.role {
            Role::Node { level, .. } if *level != node.level() => {
                Some(Violation::Level { found: node.level(), expected: *level })
            }
            Role::Node { child, fences, .. } if *fences != node.fences() => {
                Some(Violation::ChildFences { child: *child })
            }
            Role::Root if node.fences() != Fences::default() => {
                Some(Violation::Fences { prefix: node.fences().lower.len() })
            }
            _ => None,
        };
        if let Some(violation) = wrong {
            return self.fault(visit, violation.into());
        }
        let Some(report) = self.structures.get_mut(visit.structure) else { return };
        report.height = report.height.max(u32::from(node.level()) + 1);
        if node.is_leaf() {
            let (used, all) = node.fill();
            report.leaf_pages += 1;
            report.leaf_bytes_used += used as u64;
            report.leaf_bytes += all as u64;
            report.entries += node.count() as u64;
        } else {
            report.inner_pages += 1;
        }
        self.go_below(visit, node);
        if visit.structure == 0 && node.is_leaf() {
            self.read_catalog(visit, node);
        }
    }

    fn go_below(&mut self, visit: &Visit, node: StoredNode<'_>) {
        for child in node.children().into_iter().rev() {
            if child.swip == Swip::NULL {
                self.fault(visit, Violation::Missing { child: child.index }.into());
                continue;
            }
            let role = Role::Node { level: child.level, child: child.index, fences: child.fences };
            self.push(visit, child.at, child.swip, role);
        }
        for (entry, part) in node.large_values() {
            if part.swip == Swip::NULL {
                self.fault(visit, Violation::Missing { child: entry }.into());
                continue;
            }
            self.push(visit, part.at, part.swip, Role::Large(part));
        }
    }

    fn push(&mut self, visit: &Visit, at: usize, swip: Swip, role: Role) {
        if !swip.is_evicted() {
            return self.fault(visit, Fault::Swip { at, word: swip.0 });
        }
        let (page, parent, structure) = (swip.page(), Some(visit.page), visit.structure);
        self.stack.push(Visit { page, parent, at, structure, role });
    }

    fn look_at_value(&mut self, visit: &Visit, part: &LargePart, page: View<'_>) {
        let parts = match overflow_parts(page, part) {
            Ok(parts) => parts,
            Err(violation) => return self.fault(visit, violation.into()),
        };
        if let Some(report) = self.structures.get_mut(visit.structure) {
            report.overflow_pages += 1;
        }
        for (child, part) in parts.into_iter().enumerate().rev() {
            if part.swip == Swip::NULL {
                self.fault(visit, Violation::Missing { child }.into());
                continue;
            }
            self.push(visit, part.at, part.swip, Role::Large(part));
        }
    }

    /// Examines a page of a structure that is not a tree, and follows its swips.
    fn look_at_other(&mut self, visit: &Visit, kind: Structure, page: View<'_>, bytes: &[u8]) {
        let found = PageHeader::read(bytes).kind;
        if !owns(kind, found) {
            return self.fault(visit, Fault::Type { found: found.0 });
        }
        if matches!(visit.role, Role::Root)
            && let Some(seed) = self.seeds.get_mut(visit.structure)
        {
            *seed = hash_index::seed_in(bytes);
        }
        let seed = self.seeds.get(visit.structure).copied().unwrap_or(0);
        let wrong: Vec<Fault> = match kind {
            Structure::Hash => {
                hash_index::check_page(bytes, seed).into_iter().map(Fault::from).collect()
            }
            Structure::Heap => heap::check_page(bytes).into_iter().map(Fault::from).collect(),
            Structure::Tree => Vec::new(),
        };
        if !wrong.is_empty() {
            return wrong.into_iter().for_each(|fault| self.fault(visit, fault));
        }
        if let Err(what) = fits(visit, page) {
            return self.fault(visit, Fault::Misfit { what });
        }
        if let Some(report) = self.structures.get_mut(visit.structure) {
            report.other_pages += 1;
            report.entries += match found {
                PageType::HASH_BUCKET => hash_index::stored_count(page) as u64,
                PageType::HEAP_DATA => heap::stored_records(page, bytes).count() as u64,
                _ => 0,
            };
        }
        if let Some(kind) = kind_of(found) {
            let above = Rc::new(PageBuffer::copy_of(bytes));
            for (at, swip) in swips_of(kind, page).into_iter().rev() {
                self.push(visit, at, swip, Role::Other(above.clone()));
            }
        }
    }

    fn read_catalog(&mut self, visit: &Visit, node: StoredNode<'_>) {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for entry in 0..node.count() {
            let why = match node.entry(entry, &mut key, &mut value) {
                Some(StoredValue::Inline) => match (self.catalog.decode)(&key, &value) {
                    Ok(Some(structure)) => {
                        self.add(structure);
                        continue;
                    }
                    Ok(None) => continue,
                    Err(why) => why,
                },
                _ => "its value is not in the page".to_string(),
            };
            self.fault(visit, Fault::Catalog { entry, why });
        }
    }
}

/// Returns the kind that finds the swips of a page of an index or a heap; `None` if it has none.
fn kind_of(found: PageType) -> Option<&'static dyn Kind> {
    let mut kinds = hash_index::KINDS.into_iter().chain(heap::KINDS);
    kinds.find(|(page_type, _)| *page_type == found).map(|(_, kind)| kind)
}

/// Checks a page of an index or a heap against the page that refers to it.
fn fits(visit: &Visit, page: View<'_>) -> Result<(), String> {
    let kind = |page| kind_of(PageHeader::type_in(page));
    match &visit.role {
        Role::Root => kind(page).map_or(Ok(()), |kind| kind.verify_root(page)),
        Role::Other(above) => kind(above.view())
            .map_or(Ok(()), |kind| kind.verify_child(above.view(), visit.at, page)),
        Role::Node { .. } | Role::Large(_) => Ok(()),
    }
}

/// Returns the swips of a page that refer to something, with their offsets.
fn swips_of(kind: &dyn Kind, page: View<'_>) -> Vec<(usize, Swip)> {
    let mut swips = Vec::new();
    kind.swips(page, &mut |at| {
        swips.push((at, Swip(page.u64(at))));
        swips.len() < page.len() / 8
    });
    swips.retain(|(_, swip)| *swip != Swip::NULL);
    swips
}
