//! Functions, files and lines of addresses.

use std::collections::HashMap;
use std::sync::Arc;

use addr2line::Loader;

use super::modules::Modules;
use crate::profile::Frame;

/// What is known of a process's code. Line tables are read when they are asked for first.
pub(super) struct Symbols {
    modules: Modules,
    loaders: HashMap<usize, Option<Loader>>,
    /// Frames of an address, innermost first.
    frames: HashMap<u64, Vec<Arc<Frame>>>,
}

impl Symbols {
    pub(super) fn of(modules: Modules) -> Symbols {
        Symbols { modules, loaders: HashMap::new(), frames: HashMap::new() }
    }

    /// The functions at `address`: what is inlined there first.
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
        let loader = self.loaders.entry(at).or_insert_with(|| Loader::new(path).ok());
        let Some(loader) = loader else { return vec![unknown(&module)] };
        let symbol = || {
            let name = loader.find_symbol(in_file)?;
            Some(addr2line::demangle_auto(name.into(), None).into_owned())
        };
        let mut all = Vec::new();
        if let Ok(mut inlined) = loader.find_frames(in_file) {
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
        // Line tables alone have a function's own name; the symbol has the module's, too.
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
