//! The terminal: raw mode and its second screen, and both given back however the command ends.
//!
//! A terminal is asked for its size and for keys several times a second anyhow, so no signal is
//! listened to. Sequences are those that every terminal since the VT100 knows, but for the second
//! screen, which those without ignore. Only `rustix` is needed, which the engine has.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, Once};
use std::time::Duration;

use millpond_base::PastPoison;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{self, OptionalActions, Termios};

use super::view::Line;

/// Second screen, no cursor, no wrapping of long lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
const BOLD: &str = "\x1b[1m";
const USUAL: &str = "\x1b[0m";

/// Longest time that the rest of a key's sequence may take after its Esc.
const SEQUENCE: Duration = Duration::from_millis(50);

/// Columns and rows of a terminal that does not know its own.
const SIZE: (usize, usize) = (80, 24);

/// What to give back, for a panic as well.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

struct Taken {
    input: OwnedFd,
    output: File,
    mode: Termios,
}

/// Gives the terminal back, if it is taken.
fn give_back() {
    let taken = TAKEN.lock().past_poison().take();
    if let Some(mut taken) = taken {
        // Nothing can be done about a terminal that is gone.
        let _ = taken.output.write_all(LEAVE.as_bytes());
        let _ = termios::tcsetattr(&taken.input, OptionalActions::Flush, &taken.mode);
    }
}

/// What a panic says must be read on the usual screen.
fn before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            usual(panic);
        }));
    });
}

/// Returns `true` if standard input and output are a terminal that `top` can use.
pub(super) fn is_there() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !is_dumb && termios::isatty(io::stdin()) && termios::isatty(io::stdout())
}

/// A terminal that is ours until this is dropped. There is one at a time.
pub(super) struct Terminal {
    input: OwnedFd,
    output: File,
    drawn: (usize, usize),
}

impl Terminal {
    /// Returns the terminal of standard input and output.
    pub(super) fn standard() -> io::Result<Terminal> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        Terminal::take(input, io::stdout().as_fd().try_clone_to_owned()?)
    }

    /// Takes a terminal.
    fn take(input: OwnedFd, output: OwnedFd) -> io::Result<Terminal> {
        before_panics();
        let mode = termios::tcgetattr(&input)?;
        let output = File::from(output);
        let taken = Taken { input: input.try_clone()?, output: output.try_clone()?, mode };
        let mut raw = taken.mode.clone();
        raw.make_raw();
        *TAKEN.lock().past_poison() = Some(taken);
        // From here on, what is taken is given back.
        let mut terminal = Terminal { input, output, drawn: (0, 0) };
        termios::tcsetattr(&terminal.input, OptionalActions::Flush, &raw)?;
        terminal.output.write_all(ENTER.as_bytes())?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (usize, usize) {
        match termios::tcgetwinsize(&self.output) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => SIZE,
        }
    }

    /// The size that was drawn for last.
    pub(super) fn drawn(&self) -> (usize, usize) {
        self.drawn
    }

    /// Shows lines that were made for a size, with one write.
    pub(super) fn draw(&mut self, lines: &[Line], size: (usize, usize)) -> io::Result<()> {
        self.output.write_all(frame(lines, size.1).as_bytes())?;
        self.drawn = size;
        Ok(())
    }

    /// Waits for a key, so long at most; whether it asks to leave.
    pub(super) fn wait(&self, timeout: Duration) -> io::Result<bool> {
        if !self.is_ready(timeout)? {
            return Ok(false);
        }
        let mut keys = [0; 256];
        let mut count = self.read(&mut keys)?;
        if keys[..count].ends_with(b"\x1b") && count < keys.len() && self.is_ready(SEQUENCE)? {
            count += self.read(&mut keys[count..])?;
        }
        // Nobody is there any more when the input ends.
        Ok(count == 0 || asks_to_leave(&keys[..count]))
    }

    fn read(&self, keys: &mut [u8]) -> io::Result<usize> {
        match rustix::io::read(&self.input, keys) {
            Err(Errno::IO) => Ok(0),
            other => Ok(other?),
        }
    }

    fn is_ready(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.input, PollFlags::IN)], Some(&timeout)) {
            // A signal: the caller looks again.
            Err(Errno::INTR) => Ok(false),
            other => Ok(other? > 0),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// The bytes that replace what the screen shows: no line below the last row, so nothing scrolls.
/// A line is erased before it is written: afterwards, that would take the last column with it.
fn frame(lines: &[Line], rows: usize) -> String {
    let mut text = "\x1b[H".to_string();
    for (at, line) in lines.iter().take(rows).enumerate() {
        let (bold, usual) = if line.is_bold { (BOLD, USUAL) } else { ("", "") };
        let end = if at > 0 { "\r\n" } else { "" };
        text.push_str(&format!("{end}\x1b[K{bold}{}{usual}", line.text));
    }
    if lines.len() < rows {
        text.push_str("\r\n\x1b[J");
    }
    text
}

/// `q`, Ctrl-C, or Esc that begins no other key's sequence.
fn asks_to_leave(keys: &[u8]) -> bool {
    let mut keys = keys;
    while let Some((key, rest)) = keys.split_first() {
        keys = match (key, rest) {
            (b'q' | b'Q' | 0x03, _) | (0x1b, []) | (0x1b, [0x1b, ..]) => return true,
            // CSI: parameters up to a final byte. SS3: one more byte. Alt and a key: that key.
            (0x1b, [b'[', rest @ ..]) => {
                let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
                end.map_or(&[][..], |end| &rest[end + 1..])
            }
            (0x1b, [b'O', rest @ ..]) => rest.get(1..).unwrap_or_default(),
            (0x1b, [_, rest @ ..]) => rest,
            _ => rest,
        };
    }
    false
}

#[cfg(test)]
mod tests;
