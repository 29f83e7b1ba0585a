//! A browser that looks at pages: nothing is wider than the window, every plot is there, and the
//! browser has nothing to complain of, on a desktop and on a phone.

#![allow(clippy::print_stdout)] // what is left out is named

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

const FLAGS: [&str; 4] =
    ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Widths of a desktop's window and of a phone's.
const WIDTHS: [u32; 2] = [1280, 390];

/// Measures the page, where the DOM has it when it is printed.
const MEASURE: &str = "<script>addEventListener('load', () => {
    const box = svg => svg.getBoundingClientRect();
    // What is scrolled by itself may be wider.
    const shown = svg => box(svg.closest('.wide') ?? svg);
    const plots = [...document.querySelectorAll('svg[role=img]')].map(shown);
    const seen = {
        window: innerWidth, page: document.documentElement.scrollWidth, plots: plots.length,
        drawn: plots.filter(p => p.width > 200 && p.height > 40 && p.right <= innerWidth + 1).length,
        headings: document.querySelectorAll('h1').length,
    };
    const wide = [...document.querySelectorAll('body *')].filter(e =>
        box(e).right > innerWidth + 1 && !e.closest('.wide, svg, pre'));
    seen.wide = wide.slice(0, 3).map(e => e.tagName + '.' + e.className);
    parent.document.documentElement.setAttribute('data-seen', btoa(JSON.stringify(seen)));
});</script>";

/// A browser that loads pages, if there is one.
pub fn browser() -> Option<&'static str> {
    // A stub of a package, or a sandbox without a place for one, has the program and no browser.
    let works = |name: &&&str| {
        let blank = Command::new(name).args(FLAGS).args(["--dump-dom", "about:blank"]).output();
        blank.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("<html"))
    };
    let found = BROWSERS.iter().find(works).copied();
    if found.is_none() {
        println!("left out: no Chromium that loads a page; `apt-get install chromium` has one");
    }
    found
}

fn base64(text: &str) -> String {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let (mut bits, mut held, mut out) = (0u32, 0, String::new());
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        bits = bits << 6 | u32::from(value(byte));
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(char::from((bits >> held) as u8));
        }
    }
    out
}

/// Opens `page` in a window of this width; returns its measures and the browser's complaints.
fn seen(browser: &str, page: &Path, width: u32, profile: &Path) -> (Json, String) {
    let output = Command::new(browser)
        .args(FLAGS)
        .args(["--hide-scrollbars", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--window-size={},900", width.max(500)))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    let Some((_, rest)) = dom.split_once("data-seen=\"") else {
        panic!("{}: the page was not loaded: {said}", page.display());
    };
    let encoded = rest.split('"').next().unwrap();
    (serde_json::from_str(&base64(encoded)).unwrap(), complaints.join("\n"))
}

/// Checks a page at both widths; `folder` takes the browser's files.
pub fn check(browser: &str, page: &Path, folder: &Path) {
    let html = fs::read_to_string(page).unwrap();
    let measured = html.replace("</main>", &format!("</main>{MEASURE}"));
    let measured = measured.replace('&', "&amp;").replace('"', "&quot;");
    // A window is 500 pixels wide at least; a frame within it can be less.
    let framed = folder.join("framed.html");
    for width in WIDTHS {
        let frame = format!("width:{width}px;height:900px;border:0");
        let outer =
            format!("<!doctype html><iframe style=\"{frame}\" srcdoc=\"{measured}\"></iframe>");
        fs::write(&framed, outer).unwrap();
        let (seen, complaints) = seen(browser, &framed, width, &folder.join("profile"));
        let number = |name: &str| seen[name].as_f64().unwrap();
        let what = format!("{} at {width}: {seen}", page.display());
        assert_eq!(number("window"), f64::from(width), "{what}");
        assert!(number("page") <= number("window"), "wider than the window: {what}");
        assert!(number("plots") > 0.0 && number("drawn") == number("plots"), "plots: {what}");
        assert_eq!(number("headings"), 1.0, "{what}");
        assert_eq!(complaints, "", "{what}");
    }
}
