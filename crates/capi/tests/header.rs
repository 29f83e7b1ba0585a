//! The header that ships is that of the code.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .expect("cbindgen reads the crate")
        .write(&mut made);
    let made = String::from_utf8(made).expect("a header is text");
    let path = root.join("include/millpond.h");
    if std::env::var_os("MILLPOND_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the header is written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "include/millpond.h is not that of the code: write it with \
         `MILLPOND_BLESS=1 cargo test -p millpond-capi header`"
    );
    // Each function that is exported is in it.
    for file in std::fs::read_dir(root.join("src")).expect("there is the source") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("it is text");
        for name in text.split("extern \"C\" fn mp_").skip(1) {
            let name = name.split('(').next().expect("a name");
            assert!(made.contains(&format!("mp_{name}(")), "mp_{name} is not in the header");
        }
    }
}
