//! Mapped program and libraries of the process, and the unwinding of their stacks.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module as UnwindModule, Unwinder};
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSection, ObjectSegment};

use crate::error::ProfileError;

/// A file that the process has mapped as code.
pub(super) struct Module {
    pub(super) path: PathBuf,
    /// Addresses of its mapping.
    start: u64,
    end: u64,
    /// Offset from an address of the file to its address in memory.
    base: u64,
}

/// All mapped modules.
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
}

/// An executable mapping, by a line of `/proc/self/maps`.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: PathBuf,
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let is_run = words.next()?.contains('x');
    let offset = words.next()?;
    let path = words.nth(2)?.trim();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let mapping =
        Mapping { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, path: path.into() };
    (is_run && path.starts_with('/')).then_some(mapping)
}

/// Unwinds stacks from registers and a copy of the stack's top.
pub(super) struct StackUnwinder {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
}

/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 256;

impl StackUnwinder {
    /// Returns the addresses of a stack, the interrupted one first, and `true` if the outer end
    /// was not reached.
    pub(super) fn unwind(
        &mut self,
        ip: u64,
        sp: u64,
        bp: u64,
        stack: &[u8],
        out: &mut Vec<u64>,
    ) -> bool {
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
            Ok(u64::from_le_bytes(*bytes))
        };
        let regs = UnwindRegsX86_64::new(ip, sp, bp);
        let mut frames = self.unwinder.iter_frames(ip, regs, &mut self.cache, &mut read);
        while out.len() < FRAMES_MAX {
            match frames.next() {
                Ok(Some(frame)) => out.push(frame.address_for_lookup()),
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
        true
    }
}

/// Opens a file that is read only where needed.
fn opened(path: &Path) -> Option<ReadCache<File>> {
    File::open(path).ok().map(ReadCache::new)
}

impl Modules {
    /// Returns the current mappings. Unreadable files are left out: their frames have no names.
    pub(super) fn mapped() -> Result<Modules, ProfileError> {
        let path = "/proc/self/maps";
        let maps = fs::read_to_string(path).map_err(|error| ProfileError::io(path, error))?;
        let module = |mapping: Mapping| {
            let file = opened(&mapping.path)?;
            let base = base_of(&object::File::parse(&file).ok()?, &mapping)?;
            let Mapping { start, end, path, .. } = mapping;
            Some(Module { path, start, end, base })
        };
        Ok(Modules { all: maps.lines().filter_map(mapping).filter_map(module).collect() })
    }

    /// Returns the unwinder for the stacks of these modules.
    pub(super) fn unwinder(&self) -> StackUnwinder {
        let mut unwinder = UnwinderX86_64::new();
        for Module { path, start, end, base } in &self.all {
            let Some(file) = opened(path) else { continue };
            let Ok(object) = object::File::parse(&file) else { continue };
            let name = path.to_string_lossy().into_owned();
            unwinder.add_module(UnwindModule::new(name, *start..*end, *base, sections(&object)));
        }
        StackUnwinder { unwinder, cache: CacheX86_64::new() }
    }

    /// Returns the module that contains `address`, and the address in its file.
    pub(super) fn find(&self, address: u64) -> Option<(usize, u64)> {
        let is_in = |module: &Module| (module.start..module.end).contains(&address);
        let at = self.all.iter().position(is_in)?;
        Some((at, address.wrapping_sub(self.all[at].base)))
    }
}

/// Returns the offset from an address of the file to its mapped address.
fn base_of<'d, R: ReadRef<'d>>(object: &object::File<'d, R>, mapping: &Mapping) -> Option<u64> {
    let segment = object.segments().find(|segment| {
        let (start, len) = segment.file_range();
        let is_run = match segment.flags() {
            object::SegmentFlags::Elf { p_flags, .. } => p_flags.contains(object::elf::PF_X),
            _ => false,
        };
        // A mapping begins at the page where its segment begins, in which another segment may
        // end.
        is_run && (start & !0xfff..start + len).contains(&mapping.offset)
    })?;
    let address = segment.address().wrapping_sub(segment.file_range().0);
    Some(mapping.start.wrapping_sub(address.wrapping_add(mapping.offset)))
}

fn sections<'d, R: ReadRef<'d>>(
    object: &object::File<'d, R>,
) -> ExplicitModuleSectionInfo<Vec<u8>> {
    let section = |name: &str| object.section_by_name(name);
    let range = |name: &str| {
        let found = section(name)?;
        Some(found.address()..found.address() + found.size())
    };
    let data = |name: &str| section(name)?.data().ok().map(<[u8]>::to_vec);
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        text: data(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        ..ExplicitModuleSectionInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSymbol;

    #[test]
    fn executable_mappings_of_files_are_found_and_nothing_else() {
        let line = "55d0c0a00000-55d0c0b00000 r-xp 0001f000 fe:00 1234    /a folder/program";
        let found = mapping(line).unwrap();
        assert_eq!((found.start, found.end), (0x55d0_c0a0_0000, 0x55d0_c0b0_0000));
        assert_eq!((found.offset, found.path.to_str()), (0x1f000, Some("/a folder/program")));
        for other in [
            "55d0c0a00000-55d0c0b00000 r--p 0001f000 fe:00 1234    /a folder/program",
            "7ffd0-7ffd1 r-xp 00000000 00:00 0    [vdso]",
            "7ffd0-7ffd1 r-xp 00000000 00:00 0",
            "",
            "nonsense",
        ] {
            assert!(mapping(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_function_of_this_program_is_at_its_address_in_the_file() {
        let modules = Modules::mapped().unwrap();
        let here = a_function_of_this_program_is_at_its_address_in_the_file as fn() as usize as u64;
        let (at, address) = modules.find(here).unwrap();
        assert_eq!(modules.all[at].path, std::env::current_exe().unwrap());
        let file = fs::read(&modules.all[at].path).unwrap();
        let object = object::File::parse(file.as_slice()).unwrap();
        let name = "a_function_of_this_program_is_at_its_address_in_the_file";
        let mut symbols = object.symbols().filter(|symbol| symbol.address() == address);
        assert!(symbols.any(|symbol| symbol.name().is_ok_and(|found| found.contains(name))));
        assert_eq!(modules.find(8), None);
    }
}
