//! Compiles the C samples of `docs/c.md` and `docs/start/c.md` as they are printed, and runs them.

use std::process::Command;

use crate::programs::{Link, build, has_compilers, root, text};

/// Code around each sample of `docs/c.md`: it declares the names that the sample takes from its
/// program.
const AROUND: [(&str, &str); 2] = [
    ("static int sample(void) {", "return 0; }\nint main(void) { return sample(); }"),
    (
        "static void sample(mp_tree *readings) {\n\
         double degrees = -4.0; mp_buffer city = MP_BUFFER_INIT; uint32_t hour;",
        "printf(\"%s %u\\n\", (const char *)city.data, hour);\n\
         mp_buffer_free(&city); mp_buffer_free(&key); }\n\
         int main(void) {\n\
         mp_store *store; mp_tree *readings;\n\
         if (mp_open(\"readings.mp\", NULL, &store) < 0) return 1;\n\
         if (mp_tree_open(store, \"readings\", MP_OPEN_OR_CREATE, &readings) < 0) return 1;\n\
         sample(readings); mp_tree_close(readings); return mp_close(store); }",
    ),
];

/// The C of a page.
fn samples(page: &str) -> Vec<String> {
    let page = root().join("../..").join(page);
    let page = std::fs::read_to_string(page).expect("the page is there");
    let blocks = page.split("\n```c\n").skip(1);
    blocks.map(|block| block.split("\n```").next().expect("a block").to_string()).collect()
}

/// Compiles a program and runs it in a folder of its own; what it printed.
fn run(source: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sample.c");
    std::fs::write(&file, source).expect("a file");
    let program = build(file.to_str().expect("a path"), Link::Static, folder.path());
    let output = Command::new(program).current_dir(folder.path()).output().expect("it runs");
    assert!(output.status.success(), "{source}: {}", text(&output));
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn the_samples_of_the_page_compile_and_run() {
    // Whole programs have tests of their own.
    let mut samples = samples("docs/c.md");
    samples.retain(|sample| !sample.contains("int main("));
    assert_eq!(samples.len(), AROUND.len(), "a sample of docs/c.md has nothing around it here");
    if !has_compilers() {
        return;
    }
    let printed: Vec<String> = samples
        .iter()
        .zip(AROUND)
        .map(|(sample, (before, behind))| {
            run(&format!(
                "#include <millpond.h>\n#include <stdio.h>\n{before}\n{sample}\n{behind}\n"
            ))
        })
        .collect();
    assert_eq!(printed, ["1200\n", "oslo 9\n"]);
}

#[test]
fn the_first_program_prints_what_its_page_says() {
    let page = root().join("../../docs/start/c.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let samples = samples("docs/start/c.md");
    assert_eq!(samples.len(), 1);
    if has_compilers() {
        let printed = run(&samples[0]);
        assert!(page.contains(&format!("```text\n{printed}```")), "{printed}");
    }
}
