//! The name that programs record of the shared library: it changes when they have to be compiled
//! again.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmillpond_c.so.0");
    }
}
