//! Functions, files and lines of addresses.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, LittleEndian};
use object::{Object, ObjectSection};

use super::modules::Modules;
use crate::profile::Frame;

/// Symbols of a process's code. Line tables are read at their first use.
pub(super) struct Symbols {
    modules: Modules,
    tables: HashMap<usize, Option<Tables>>,
    /// Frames of an address, innermost first.
    frames: HashMap<u64, Vec<Arc<Frame>>>,
}

type Bytes = EndianArcSlice<LittleEndian>;

/// Line tables and symbols of a program or library.
struct Tables {
    context: Context<Bytes>,
    /// Addresses and names, by address.
    symbols: Vec<(u64, String)>,
}

impl Tables {
    fn read(path: &Path) -> Option<Tables> {
        let file = fs::read(path).ok()?;
        let object = object::File::parse(file.as_slice()).ok()?;
        let section = |id: gimli::SectionId| -> Result<Bytes, gimli::Error> {
            let found = object.section_by_name(id.name());
            // A compressed section counts as missing.
            let data = found.and_then(|section| section.data().ok()).unwrap_or_default();
            Ok(EndianArcSlice::new(Arc::from(data), LittleEndian))
        };
        let context = Context::from_dwarf(Dwarf::load(section).ok()?).ok()?;
        let map = object.symbol_map();
        let of = |symbol: &object::SymbolMapName<'_>| (symbol.address(), symbol.name().to_string());
        Some(Tables { context, symbols: map.symbols().iter().map(of).collect() })
    }

    /// Returns the name of the last symbol at `address` or below.
    fn symbol(&self, address: u64) -> Option<String> {
        let behind = self.symbols.partition_point(|(start, _)| *start <= address);
        let (_, name) = self.symbols.get(behind.checked_sub(1)?)?;
        Some(addr2line::demangle_auto(name.as_str().into(), None).into_owned())
    }
}

impl Symbols {
    pub(super) fn of(modules: Modules) -> Symbols {
        Symbols { modules, tables: HashMap::new(), frames: HashMap::new() }
    }

    /// Returns the functions at `address`, the innermost inlined one first.
    pub(super) fn frames(&mut self, address: u64) -> &[Arc<Frame>] {
        if !self.frames.contains_key(&address) {
            let found = self.look_up(address).into_iter().map(Arc::new).collect();
            self.frames.insert(address, found);
        }
        &self.frames[&address]
    }

    fn look_up(&mut self, address: u64) -> Vec<Frame> {
        let unknown = |module: &str| Frame {
            function: format!("{address:#x}"),
            module: module.to_string(),
            ..Frame::default()
        };
        let Some((at, in_file)) = self.modules.find(address) else { return vec![unknown("")] };
        let path = &self.modules.all[at].path;
        let module = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tables = self.tables.entry(at).or_insert_with(|| Tables::read(path));
        let Some(tables) = tables else { return vec![unknown(&module)] };
        let symbol = || tables.symbol(in_file);
        let mut all = Vec::new();
        if let Ok(mut inlined) = tables.context.find_frames(in_file).skip_all_loads() {
            while let Ok(Some(frame)) = inlined.next() {
                let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
                let name = name.map(|name| name.into_owned()).or_else(symbol);
                let place = frame.location.as_ref();
                all.push(Frame {
                    function: name.unwrap_or_else(|| format!("{address:#x}")),
                    file: place.and_then(|place| place.file).unwrap_or_default().to_string(),
                    line: place.and_then(|place| place.line).unwrap_or_default(),
                    module: module.clone(),
                });
            }
        }
        // Line tables hold only a function's own name; the symbol also has its module
        // path.
        if let (Some(outermost), Some(name)) = (all.last_mut(), symbol()) {
            outermost.function = name;
        }
        if all.is_empty() {
            let function = symbol().unwrap_or_else(|| format!("{address:#x}"));
            all.push(Frame { function, module, ..Frame::default() });
        }
        all
    }
}
