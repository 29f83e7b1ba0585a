//! Directory pages, and the way from a page's number to the page.
//!
//! ```text
//! offset size
//!      0   32  the common page header, type HEAP_DIRECTORY, level 1 above data pages
//!     32    2  children that were ever begun, n: slots from there on are empty
//!     34   14  reserved, 0
//!     48    8  number of the first data page below
//!     56    8  reserved, 0
//!     64       one byte per child: a hint how much room is below, in 255ths of a page
//!      …       swips, see `page::directory`; null where a data page was given back
//! ```

use millpond_base::{AccessKind, Mark, PageId, PageKind};

use crate::heap::data::{Data, NUMBER};
use crate::heap::table::{Heap, RecordId};
use crate::page::edit::{put_u16, put_u64};
use crate::page::{Directory, PageHeader, PageType, View};
use crate::pool::{Jump, MiniTransaction, Pages, PoolError, Read, Swip, Try, Write};

const COUNT: usize = 32;
const LEVEL: usize = 29;
/// Most levels: so many that ids have no more bits.
const LEVELS_MAX: u8 = 12;

/// Level of a directory, as it says.
#[inline(always)]
pub(crate) fn level_in(view: View<'_>) -> u8 {
    view.u8(LEVEL).clamp(1, LEVELS_MAX)
}

/// Children that were begun.
#[inline(always)]
pub(crate) fn count_in(form: Directory, view: View<'_>) -> usize {
    usize::from(view.u16(COUNT)).min(form.fan_out())
}

/// Which child of a directory of level `level` leads to data page `number`.
#[inline(always)]
pub(crate) fn index_in(form: Directory, level: u8, number: u64) -> usize {
    let shift = form.bits() * u32::from(level.saturating_sub(1));
    (number.checked_shr(shift).unwrap_or(0) as usize) & (form.fan_out() - 1)
}

/// How many data pages a child of a directory of level `level` leads to.
pub(crate) fn span(form: Directory, level: u8) -> u64 {
    1u64.checked_shl(form.bits() * u32::from(level.saturating_sub(1))).unwrap_or(u64::MAX)
}

pub(crate) fn set_count(page: &mut [u8], count: usize) {
    put_u16(page, COUNT, count as u16);
}

pub(crate) fn set_level(page: &mut [u8], level: u8) {
    if let Some(place) = page.get_mut(LEVEL) {
        *place = level;
    }
}

/// Makes a page that is zero-filled behind its header a directory without children.
pub(crate) fn init(page: &mut [u8], first: u64) {
    set_count(page, 0);
    put_u64(page, NUMBER, first);
}

/// What a reference to a page says of itself.
#[inline(always)]
pub(crate) fn mark(mtr: AccessKind, depth: u8) -> Mark {
    Mark::of(mtr).with_kind(PageKind::OTHER, depth)
}

/// The attempt fails: the store is damaged.
#[cold]
pub(crate) fn corrupt(page: PageId, what: &str) -> Jump {
    Jump::failed(PoolError::Corrupt { page, what: what.to_string() })
}

/// A page that is not what its parent says; if it was read in peace.
#[cold]
pub(crate) fn wrong<P: Pages, T>(page: &Read<'_, P>) -> Try<T> {
    let id = page.header().page().unwrap_or_default();
    page.validate()?;
    Err(corrupt(id, "not the page of a heap that its parent expects"))
}

/// A data page that is held: it must be one, and make sense.
pub(crate) fn sound<P: Pages>(page: Write<'_, P>) -> Try<Write<'_, P>> {
    let data = Data(page.view());
    if data.is_data() && data.is_sound() {
        return Ok(page);
    }
    Err(corrupt(page.id(), "not the data page of a heap, or its header makes no sense"))
}

/// The lowest directory above a data page, and where in it the page's swip is.
pub(crate) struct Place<'o, P: Pages> {
    pub(crate) directory: Read<'o, P>,
    pub(crate) index: usize,
    pub(crate) at: usize,
    pub(crate) depth: u8,
}

// The way down is long once it is compiled, and each compiled combination has it: functions here
// are compiled once, and only lookups and updates have a copy of their own.
impl<P: Pages> Heap<P> {
    /// The root, and its level, which counts after validation.
    #[inline(never)]
    pub(crate) fn root_page<'o>(&self, mtr: &'o MiniTransaction<'o, P>) -> Try<(Read<'o, P>, u8)> {
        self.root_page_here(mtr)
    }

    #[inline(always)]
    fn root_page_here<'o>(&self, mtr: &'o MiniTransaction<'o, P>) -> Try<(Read<'o, P>, u8)> {
        let root = Read::root(mtr, self.anchor, mark(AccessKind::Read, 0))?;
        let level = root.view().u8(LEVEL);
        if !is_directory(root.view(), level) {
            return wrong(&root);
        }
        Ok((root, level))
    }

    /// A directory of level `level` below another.
    #[inline(never)]
    pub(crate) fn directory_below<'o>(
        &self,
        parent: &Read<'o, P>,
        at: usize,
        level: u8,
        depth: u8,
    ) -> Try<Read<'o, P>> {
        self.directory_below_here(parent, at, level, depth)
    }

    #[inline(always)]
    fn directory_below_here<'o>(
        &self,
        parent: &Read<'o, P>,
        at: usize,
        level: u8,
        depth: u8,
    ) -> Try<Read<'o, P>> {
        let child = parent.child(at, mark(AccessKind::Read, depth))?;
        if is_directory(child.view(), level) { Ok(child) } else { wrong(&child) }
    }

    /// The place of data page `number`; `None` if there is no such page.
    #[inline(never)]
    pub(crate) fn place<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<Place<'o, P>>> {
        self.place_here(mtr, number)
    }

    #[inline(always)]
    fn place_here<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<Place<'o, P>>> {
        let (mut directory, mut level) = self.root_page_here(mtr)?;
        if number / self.form.fan_out() as u64 >= span(self.form, level) {
            directory.validate()?;
            return Ok(None);
        }
        let mut depth = 0;
        loop {
            let index = index_in(self.form, level, number);
            let at = self.form.swip_at(index);
            if index >= count_in(self.form, directory.view()) || directory.swip(at) == Swip::NULL {
                directory.validate()?;
                return Ok(None);
            }
            if level == 1 {
                return Ok(Some(Place { directory, index, at, depth }));
            }
            level -= 1;
            depth += 1;
            directory = self.directory_below_here(&directory, at, level, depth)?;
        }
    }

    /// Data page `number`, to read; `None` if there is none.
    #[inline(never)]
    pub(crate) fn data_page<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<Read<'o, P>>> {
        self.data_page_here(mtr, number)
    }

    /// The same, compiled where it is called: for lookups.
    #[inline(always)]
    pub(crate) fn data_page_here<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<Read<'o, P>>> {
        let Some(place) = self.place_here(mtr, number)? else { return Ok(None) };
        let page = place.directory.child(place.at, mark(AccessKind::Read, place.depth + 1))?;
        if Data(page.view()).is_data() { Ok(Some(page)) } else { wrong(&page) }
    }

    /// The same, latched exclusively.
    #[inline(never)]
    pub(crate) fn data_page_to_write<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
    ) -> Try<Option<Write<'o, P>>> {
        let Some(place) = self.place_here(mtr, id.page())? else { return Ok(None) };
        let to = mark(AccessKind::Write, place.depth + 1);
        Ok(Some(sound(place.directory.child_exclusive(place.at, to)?)?))
    }
}

#[inline(always)]
fn is_directory(view: View<'_>, level: u8) -> bool {
    PageHeader::type_in(view) == PageType::HEAP_DIRECTORY
        && view.u8(LEVEL) == level
        && (1..=LEVELS_MAX).contains(&level)
}
