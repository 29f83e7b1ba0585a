//! The module is a library that Python can load: it is built beside this test.

use std::path::PathBuf;

fn module() -> Vec<u8> {
    let test = std::env::current_exe().unwrap();
    let name = format!("{}_millpond{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let path: PathBuf = test.with_file_name(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn has(module: &[u8], text: &str) -> bool {
    module.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn it_has_what_python_calls_and_needs_no_library_of_one_python() {
    let module = module();
    assert!(has(&module, "PyInit__millpond"));
    assert!(!has(&module, "libpython3"), "it is linked to one version of Python");
}
