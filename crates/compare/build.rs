//! Compiles the two small C files between us and the engines that have only a C interface; only
//! under their features. Their libraries are the system's.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "wiredtiger")]
    shim("wiredtiger", "wiredtiger", "libwiredtiger-dev");
    #[cfg(feature = "berkeleydb")]
    shim("berkeleydb", "db-5.3", "libdb5.3-dev");
}

#[cfg(any(feature = "wiredtiger", feature = "berkeleydb"))]
fn shim(engine: &str, library: &str, package: &str) {
    let source = format!("src/native/{engine}.c");
    println!("cargo::rerun-if-changed={source}");
    let mut build = cc::Build::new();
    build.file(&source).warnings(true).extra_warnings(true).opt_level(2);
    if let Err(error) = build.try_compile(&format!("millpond_{engine}")) {
        println!(
            "cargo::error=the feature `{engine}` needs the system's library and its header: \
             apt install {package} ({error})"
        );
        return;
    }
    println!("cargo::rustc-link-lib={library}");
}
