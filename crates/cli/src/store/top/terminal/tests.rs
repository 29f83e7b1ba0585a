//! Keys, frames, and a pseudo-terminal that gets back its mode.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use millpond_base::PastPoison;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::*;

/// One terminal can be taken at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Both ends of a pseudo-terminal: ours, and the one that programs see.
fn pair() -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (ours, theirs)
}

fn is_raw(terminal: &OwnedFd) -> bool {
    let modes = tcgetattr(terminal).unwrap().local_modes;
    !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
}

/// What was written so far.
fn written(ours: &OwnedFd) -> String {
    let mut bytes = [0; 4096];
    let count = File::from(ours.try_clone().unwrap()).read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[test]
fn a_terminal_is_given_back_when_it_is_left_and_when_the_program_panics() {
    let _one = ONE.lock().past_poison();
    let (ours, theirs) = pair();
    let take = || Terminal::take(theirs.try_clone().unwrap(), theirs.try_clone().unwrap()).unwrap();
    for is_panic in [false, true] {
        assert!(!is_raw(&theirs));
        let terminal = take();
        assert!(is_raw(&theirs));
        assert_eq!(written(&ours), ENTER);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _terminal = terminal;
            assert!(!is_panic, "a mistake, made on purpose");
        }));
        assert_eq!(caught.is_err(), is_panic);
        assert!(!is_raw(&theirs));
        assert_eq!(written(&ours), LEAVE);
    }
}

#[test]
fn a_terminal_knows_its_size_and_its_keys() {
    let _one = ONE.lock().past_poison();
    let (ours, theirs) = pair();
    let mut keys = File::from(ours.try_clone().unwrap());
    let mut terminal = Terminal::take(theirs.try_clone().unwrap(), theirs).unwrap();
    assert_eq!(terminal.size(), SIZE, "a size of 0 is none");
    tcsetwinsize(&ours, Winsize { ws_row: 9, ws_col: 41, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    assert_eq!(terminal.size(), (41, 9));
    let line = Line { text: "hello".to_string(), is_bold: true };
    terminal.draw(&[line], (41, 9)).unwrap();
    assert_eq!(terminal.drawn(), (41, 9));
    assert!(!terminal.wait(Duration::ZERO).unwrap());
    keys.write_all(b"x\x1b[A").unwrap();
    assert!(!terminal.wait(Duration::from_secs(60)).unwrap());
    keys.write_all(b"\x03").unwrap();
    assert!(terminal.wait(Duration::from_secs(60)).unwrap(), "Ctrl-C is a key in raw mode");
    drop((keys, ours));
    assert!(terminal.wait(Duration::from_secs(60)).unwrap(), "the terminal is gone");
}

#[test]
fn q_esc_and_ctrl_c_leave_and_other_keys_do_not() {
    for keys in [&b"q"[..], b"Q", b"\x03", b"\x1b", b"\x1b\x1b", b"ab\x1b[Aq", b"\x1bOPq"] {
        assert!(asks_to_leave(keys), "{keys:?}");
    }
    for keys in [&b""[..], b"x", b"\x1b[A", b"\x1b[15;2~", b"\x1b[", b"\x1bOP", b"\x1bO", b"\x1bq"]
    {
        assert!(!asks_to_leave(keys), "{keys:?}");
    }
}

#[test]
fn a_frame_replaces_the_screen_and_never_scrolls_it() {
    let line = |text: &str, is_bold| Line { text: text.to_string(), is_bold };
    let lines = [line("a", true), line("b", false), line("c", false)];
    let all = "\x1b[H\x1b[K\x1b[1ma\x1b[0m\r\n\x1b[Kb\r\n\x1b[Kc";
    assert_eq!(frame(&lines, 3), all);
    assert_eq!(frame(&lines, 4), format!("{all}\r\n\x1b[J"));
    assert_eq!(frame(&lines, 1), "\x1b[H\x1b[K\x1b[1ma\x1b[0m");
}
