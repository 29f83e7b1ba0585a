//! Sending of replies. The worker that produced a reply sends as much as the socket accepts at
//! once. The connection's sender sends the rest, and waits for it.

use std::io;
use std::net::Shutdown;

use super::outbox::{Outbox, Reply, Unsent};
use crate::wire::Wire;

/// Peer of a connection, and its unsent replies.
#[derive(Debug)]
pub(super) struct Peer {
    pub outbox: Outbox,
    wire: Wire,
}

impl Peer {
    pub fn new(outbox: Outbox, wire: Wire) -> Peer {
        Peer { outbox, wire }
    }

    /// Sends replies, or leaves them to the sender. Never waits for the peer.
    pub fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        self.outbox.push(replies);
        while let Some(mut unsent) = self.outbox.take() {
            // Encrypted replies cannot be sent in part.
            let sent = if self.wire.is_plain() { self.send(&mut unsent, false) } else { Ok(()) };
            match sent {
                Ok(()) if unsent.is_empty() => {}
                Ok(()) => return self.outbox.leave(unsent),
                Err(error) => return self.break_off(&error),
            }
        }
    }

    /// Sends the replies that workers left, until no more can come.
    pub fn send_rest(&self) {
        while let Some(unsent) = self.outbox.wait() {
            let mut next = Some(unsent);
            while let Some(mut unsent) = next {
                if let Err(error) = self.send(&mut unsent, true) {
                    return self.break_off(&error);
                }
                next = self.outbox.take();
            }
        }
        self.wire.finish();
    }

    /// Sends all of `unsent` if it `waits`; otherwise as much as the socket accepts at once.
    fn send(&self, unsent: &mut Unsent, waits: bool) -> io::Result<()> {
        while !unsent.is_empty() {
            let sent = self.wire.send(&unsent.parts(), waits);
            match sent {
                Ok(count) => self.outbox.sent(unsent, count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !waits => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn break_off(&self, error: &io::Error) {
        tracing::debug!(%error, "a reply cannot be sent");
        self.outbox.break_off();
        self.wire.shut_down(Shutdown::Both);
    }
}
