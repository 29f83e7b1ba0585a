//! No number is wrong without a word: traces that can be read once, replicates that are none, and
//! options that differ.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(args).current_dir(folder);
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn refused(folder: &Path, args: &[&str], says: &str) {
    let output = run(folder, args);
    let said = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {:?} {said}", output.status);
    assert!(said.contains(says), "{args:?}: {said}");
}

fn rows(output: &Output) -> Vec<Json> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Json = serde_json::from_slice(&output.stdout).unwrap();
    json["rows"].as_array().unwrap().clone()
}

/// Runs it with a pipe as its standard input.
fn piped(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut command = command(folder, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_string();
    // It may be gone before it has read anything.
    let writer = std::thread::spawn(move || drop(pipe.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// References to 3,000 pages, longer than what a reader takes at a time.
fn references(count: u64) -> String {
    (0..count).map(|i| format!("{}\n", i * i % 9973 * (i % 7) % 3000)).collect()
}

#[test]
fn a_pipe_is_read_once_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let trace = references(120_000);
    std::fs::write(folder.join("t.txt"), &trace).unwrap();
    for more in [
        &["sim", "-p", "lru,arc", "-s", "100,500"][..],
        &["sim", "-p", "lru,opt", "-s", "5%", "--warmup", "10%"],
        &["sim", "-p", "lru,watt", "--curve", "-s", "100,500"],
        &["regret", "-p", "lru,arc,fifo", "-s", "5%,100", "--held-out", "none", "--cells"],
    ] {
        let results = if more[0] == "sim" { &["--no-results"][..] } else { &[] };
        let with = |path| [&more[..1], &[path], &more[1..], results, &["-q", "--json"]].concat();
        let of_file = rows(&run(folder, &with("t.txt")));
        let of_pipe = rows(&piped(folder, &with("/dev/stdin"), &trace));
        assert!(!of_file.is_empty());
        for (file, pipe) in of_file.iter().zip(&of_pipe) {
            for name in ["references", "misses", "miss_ratio", "cost", "content"] {
                assert_eq!(file[name], pipe[name], "{more:?}: {name}");
            }
        }
    }
}

/// Runs it while another thread writes `input`, once, into the named pipe `pipe`.
fn through_fifo(folder: &Path, args: &[&str], input: &str) -> Output {
    let path = folder.join("fifo");
    let _ = std::fs::remove_file(&path);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let input = input.to_string();
    // Not joined: it waits for ever if nobody opens the pipe.
    std::thread::spawn(move || std::fs::write(path, input));
    let mut command = command(folder, args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    is_done.recv_timeout(std::time::Duration::from_secs(120)).unwrap_or_else(|_| {
        Command::new("kill").args(["-KILL", &pid]).status().unwrap();
        panic!("{args:?} hangs");
    })
}

#[test]
fn a_named_pipe_is_read_whole_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let trace = references(120_000);
    std::fs::write(folder.join("t.txt"), &trace).unwrap();
    for (begin, more) in [
        (&["sim"][..], &["-p", "lru,arc", "-s", "100,500", "--no-results", "-q", "--json"][..]),
        (&["sim"], &["-p", "lru,watt", "--curve", "-s", "100", "--no-results", "-q", "--json"]),
        (&["regret"], &["-p", "lru,arc", "-s", "5%", "--held-out", "none", "--cells", "--json"]),
        (&["trace", "stat"], &["--format", "json"]),
    ] {
        let with = |path| [begin, &[path], more].concat();
        let of_file = rows(&run(folder, &with("t.txt")));
        for _ in 0..5 {
            let of_fifo = rows(&through_fifo(folder, &with("fifo"), &trace));
            assert!(!of_file.is_empty() && of_file.len() == of_fifo.len());
            for (file, fifo) in of_file.iter().zip(&of_fifo) {
                for name in ["references", "pages", "misses", "miss_ratio", "cost", "content"] {
                    assert_eq!(file[name], fifo[name], "{begin:?} {more:?}: {name}");
                }
            }
        }
    }
}

#[test]
fn a_pipe_that_would_have_to_be_read_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let output = piped(folder.path(), args, &references(1000));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("store it in a file"), "{args:?}: {said}");
    };
    let sim = ["sim", "/dev/stdin", "-p", "random", "-s", "5"];
    refused(&[&sim[..], &["--resume"]].concat());
    refused(&[&sim[..], &["--out-dir", "out"]].concat());
    refused(&[&sim[..], &["--curve", "--seed", "1,2", "--no-results"]].concat());
    refused(&["sim", "/dev/stdin", "/dev/fd/0", "-p", "lru,arc", "-s", "5%", "--curve"]);
}

#[test]
fn replicates_are_told_by_their_contents() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        std::fs::write(folder.join(name), references(5000)).unwrap();
    }
    let four = ["a.txt", "b.txt", "c.txt", "d.txt"];
    let sim = |traces: &[&str], more: &[&str], results: &str| {
        let base = ["-s", "100", "-q", "--results", results];
        ok(folder, &[&["sim"], traces, &base, more].concat())
    };
    sim(&four, &["-p", "lru,fifo"], "four");
    let dir = |results: &str| {
        let all = std::fs::read_dir(folder.join(results)).unwrap();
        let one = all.map(|entry| entry.unwrap().path()).next().unwrap();
        one.display().to_string()
    };
    refused(folder, &["compare", &dir("four")], "fewer than two");
    let base = ["-p", "random", "-s", "100", "-q", "--no-results"];
    refused(folder, &[&["sim", "a.txt", "--seed", "1,1,1"], &base[..]].concat(), "seed 1");
    refused(folder, &[&["sim", "a.txt", "a.txt"], &base[..]].concat(), "given twice");
    refused(
        folder,
        &["regret", "a.txt", "b.txt", "-s", "9", "-p", "lru", "-q"],
        "would count twice",
    );
}

#[test]
fn rows_with_different_options_are_never_compared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in 0..3 {
        let sized: String = (0..3000)
            .map(|i| format!("{},{}\n", i * (i + name) % 97, 4096 * (i % 97 % 3)))
            .collect();
        std::fs::write(folder.join(format!("{name}.csv")), format!("page,size\n{sized}")).unwrap();
    }
    let sim = |policy: &str, more: &[&str]| {
        let results = format!("{policy}{}", more.concat());
        let base = ["sim", "0.csv", "1.csv", "2.csv", "-p", policy, "-s", "20", "-q", "--results"];
        ok(folder, &[&base[..], &[&results], more].concat());
        let one = std::fs::read_dir(folder.join(&results)).unwrap().next().unwrap().unwrap().path();
        one.display().to_string()
    };
    let lru = sim("lru", &[]);
    for (more, says) in [
        (&["--warmup", "20%"][..], "warmup=20%"),
        (&["--model", "read"], "'read'"),
        (&["--batch", "4"], "batch=4"),
        (&["--blocks", "10"], "blocks=10"),
        (&["--scan-hints"], "scan-hints"),
        (&["--expand-sizes"], "--expand-sizes"),
    ] {
        refused(folder, &["compare", &lru, &sim("fifo", more)], says);
    }
    let both = ["compare", &lru, &sim("fifo", &[])];
    ok(folder, &both);
    let warm = sim("fifo", &["--warmup", "20%"]);
    let chosen = ["compare", &lru, &sim("arc", &[]), &warm, "--where", "options=pool"];
    assert!(!ok(folder, &chosen).contains("fifo"));
}

#[test]
fn a_report_of_blocks_shows_what_sim_shows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = |i: u64| {
        format!("{} {}\n", i * i % 97 * i % 100, if i.is_multiple_of(3) { 'W' } else { 'R' })
    };
    std::fs::write(folder.join("t.txt"), (0..4000).map(line).collect::<String>()).unwrap();
    let base = ["sim", "t.txt", "-p", "lru,fifo", "-s", "20,30,40", "-q", "--results"];
    let page = |name: &str, more: &[&str]| {
        ok(folder, &[&base[..], &[name], more].concat());
        let one = std::fs::read_dir(folder.join(name)).unwrap().next().unwrap().unwrap().path();
        ok(folder, &["report", &one.display().to_string(), "-o", "page.html"]);
        std::fs::read_to_string(folder.join("page.html")).unwrap()
    };
    let (whole, blocks) = (page("whole", &[]), page("blocks", &["--blocks", "10"]));
    let drawn = |page: &str| {
        let plots = page.split("<h2>Rows").next().unwrap();
        plots
            .split("<title>")
            .skip(2)
            .map(|part| part.split('<').next().unwrap().to_string())
            .collect::<Vec<_>>()
    };
    assert!(drawn(&whole).len() > 8, "{:?}", drawn(&whole));
    assert_eq!(drawn(&whole), drawn(&blocks), "points of a page");
    assert!(!blocks.contains("class=\"band\"") && !blocks.contains("over the seeds"), "no seeds");
    assert!(blocks.contains("blocks of a trace are taken together"));
    // Seeds have bands, and the caption says that they are over seeds.
    ok(
        folder,
        &["sim", "t.txt", "-p", "random", "-s", "20,30", "--seed", "1,2,3", "-q", "--results", "s"],
    );
    let one = std::fs::read_dir(folder.join("s")).unwrap().next().unwrap().unwrap().path();
    ok(folder, &["report", &one.display().to_string(), "-o", "page.html"]);
    let seeds = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(seeds.contains("class=\"band\"") && seeds.contains("intervals, over the seeds"));
}

#[test]
fn how_a_page_was_made_is_a_command_that_makes_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("a trace.txt"), references(3000)).unwrap();
    let sim = ["sim", "a trace.txt", "-p", "watt(sample=4),lru", "-s", "10,5%", "--warmup", "10%"];
    ok(folder, &[&sim[..], &["--seed", "1,2", "--out-dir", "sweep", "-q"]].concat());
    ok(folder, &["report", "sweep", "-o", "page.html"]);
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    let made = page.split("<pre>").nth(1).unwrap().split("</pre>").next().unwrap();
    let made = made.replace("&#39;", "'").replace("&amp;", "&");
    let files = || {
        let all = std::fs::read_dir(folder.join("sweep")).unwrap();
        let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    std::fs::remove_dir_all(folder.join("sweep")).unwrap();
    let made = made.replacen("millpond", env!("CARGO_BIN_EXE_millpond"), 1);
    let again = Command::new("sh").args(["-c", &made]).current_dir(folder).output().unwrap();
    assert!(again.status.success(), "{made}: {}", text(&again.stderr));
    let of_units = |names: Vec<std::ffi::OsString>| names.len();
    assert_eq!(of_units(before), of_units(files()), "{made}");
}

#[test]
fn regret_of_one_trace_has_no_interval() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.txt"), references(5000)).unwrap();
    let args = ["regret", "t.txt", "-p", "lru,fifo", "-s", "10,20", "--held-out", "none", "-q"];
    for row in rows(&run(folder.path(), &[&args[..], &["--json"]].concat())) {
        assert!(row["p90"].is_number() && row["p90_low"].is_null(), "{row}");
        assert!(row["median_high"].is_null() && row["p90_less_low"].is_null(), "{row}");
    }
    assert!(ok(folder.path(), &args).contains("one trace has no intervals"));
}

#[test]
fn a_file_that_standard_output_goes_to_is_written_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("t.txt"), references(500)).unwrap();
    let sim = ["sim", "t.txt", "-p", "lru", "-s", "10", "-q", "--no-results", "-o"];
    for name in ["/dev/stdout", "/dev/fd/1", "link"] {
        if name == "link" {
            std::os::unix::fs::symlink("/dev/stdout", folder.join("link")).unwrap();
        }
        let out = folder.join("all.txt");
        let mut file = std::fs::File::create(&out).unwrap();
        file.write_all(b"before\n").unwrap();
        let mut command = command(folder, &[&sim[..], &[name]].concat());
        assert!(command.stdout(file.try_clone().unwrap()).status().unwrap().success());
        file.write_all(b"after\n").unwrap();
        let written = std::fs::read_to_string(&out).unwrap();
        assert!(written.starts_with("before\n") && written.contains("lru"), "{name}: {written}");
        assert!(name == "link" || written.ends_with("after\n"), "{name}: {written}");
    }
}

#[test]
fn a_name_that_is_no_text_is_a_name() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let name = std::ffi::OsStr::from_bytes(b"t\xff.txt");
    std::fs::write(folder.join(name), references(500)).unwrap();
    for (before, after) in [
        (&["sim"][..], &["-p", "lru", "-s", "10", "-q"][..]),
        (&["sim"], &["-p", "lru", "-s", "10", "--out-dir", "out", "-q"]),
        (&["sim"], &["-p", "lru", "--curve", "-q"]),
        (&["trace", "stat"], &["--format", "json", "-q"]),
        (&["trace", "head"], &["--format", "json"]),
        (&["advise"], &["-q"]),
        (&["regret"], &["-p", "lru", "-s", "9", "--held-out", "none", "--json", "-q"]),
    ] {
        let output = command(folder, before).arg(name).args(after).output().unwrap();
        let said = text(&output.stderr);
        assert!(!said.contains("panicked"), "{before:?} {after:?}: {said}");
        assert!(output.status.success() || before == ["advise"], "{before:?} {after:?}: {said}");
    }
}

#[test]
fn threads_are_no_more_than_there_is_work_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("t.txt"), references(500)).unwrap();
    let sim = ["sim", "t.txt", "-p", "lru,arc", "-s", "10", "-q", "--threads", "1000000"];
    ok(folder, &[&sim[..], &["--no-results"]].concat());
    ok(folder, &[&sim[..], &["--out-dir", "out"]].concat());
}
