//! The server's side of the handshake.

use std::io::{Read, Write};

use millpond_base::Reason;

use super::error::ConnectionError;
use super::exports::Exports;
use super::session::{Context, Session};
use crate::protocol::{
    ClientOption, Greeting, InfoRequest, MetaRequest, OPTION_BYTES_MAX, OptionHeader, OptionReply,
    PAYLOAD_BYTES_MAX, handshake_flags, infos, option_replies, options, transmission_flags,
};
use crate::volume::Volume;
use crate::wire::Wire;

/// Most bytes of an option that are skipped; a client that sends more is disconnected.
const SKIPPED_MAX: u32 = PAYLOAD_BYTES_MAX;

/// A handshake in progress.
pub(super) struct Negotiation<'s, S> {
    stream: &'s mut S,
    volume: &'s Volume,
    exports: &'s Exports,
    /// Set if the client must begin TLS first.
    needs_tls: bool,
    client_flags: u32,
    is_structured: bool,
    /// The chosen contexts, and their export.
    contexts: (String, Vec<Context>),
}

/// Outcome of a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Requests follow.
    Session(Session),
    /// The client left.
    Left,
    /// TLS begins, and then the options start again.
    StartTls,
}

impl<'s, S: Read + Write> Negotiation<'s, S> {
    /// Greets the client, and reads its flags. `None` if it left.
    pub fn begin(
        stream: &'s mut S,
        volume: &'s Volume,
        exports: &'s Exports,
        needs_tls: bool,
    ) -> Result<Option<Negotiation<'s, S>>, ConnectionError> {
        let flags = handshake_flags::FIXED_NEWSTYLE | handshake_flags::NO_ZEROES;
        stream.write_all(&Greeting { flags }.encode())?;
        let Some(bytes) = Wire::read_array(stream)? else { return Ok(None) };
        let client_flags = u32::from_be_bytes(bytes);
        if client_flags & !u32::from(flags) != 0 {
            return Err(ConnectionError::Refused("the client has flags that are not known"));
        }
        Ok(Some(Negotiation::go_on(stream, volume, exports, needs_tls, client_flags)))
    }

    /// Continues the handshake with a greeted client, now under TLS.
    pub fn go_on(
        stream: &'s mut S,
        volume: &'s Volume,
        exports: &'s Exports,
        needs_tls: bool,
        client_flags: u32,
    ) -> Negotiation<'s, S> {
        Negotiation {
            stream,
            volume,
            exports,
            needs_tls,
            client_flags,
            is_structured: false,
            contexts: Default::default(),
        }
    }

    /// Returns the client's flags.
    pub fn client_flags(&self) -> u32 {
        self.client_flags
    }

    /// Replies to options until one of them ends the handshake.
    pub fn run(&mut self) -> Result<Outcome, ConnectionError> {
        loop {
            let Some(bytes) = Wire::read_array::<{ OptionHeader::BYTES }>(self.stream)? else {
                return Ok(Outcome::Left);
            };
            let OptionHeader { option, length } = OptionHeader::decode(&bytes)?;
            if length > OPTION_BYTES_MAX {
                self.skip(option, length)?;
                continue;
            }
            let mut data = vec![0; length as usize];
            self.stream.read_exact(&mut data)?;
            let outcome = match ClientOption::decode(option, &data) {
                _ if self.needs_tls && !matches!(option, options::ABORT | options::STARTTLS) => {
                    self.refuse_without_tls(option)?
                }
                Ok(decoded) => self.answer(decoded)?,
                Err(error) if option == options::EXPORT_NAME => return Err(error.into()),
                Err(error) => {
                    self.refuse(option, option_replies::ERR_INVALID, &error.to_string())?
                }
            };
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
    }

    fn skip(&mut self, option: u32, length: u32) -> Result<(), ConnectionError> {
        if length > SKIPPED_MAX || option == options::EXPORT_NAME {
            return Err(ConnectionError::Refused("an option is too long"));
        }
        Wire::skip(self.stream, length.into())?;
        self.refuse(option, option_replies::ERR_TOO_BIG, "an option may have 64 KiB")?;
        Ok(())
    }

    fn reply(&mut self, option: u32, reply: &OptionReply) -> Result<(), ConnectionError> {
        Ok(self.stream.write_all(&reply.encode(option))?)
    }

    fn refuse(
        &mut self,
        option: u32,
        kind: u32,
        why: &str,
    ) -> Result<Option<Outcome>, ConnectionError> {
        self.reply(option, &OptionReply::error(kind, why))?;
        Ok(None)
    }

    fn refuse_without_tls(&mut self, option: u32) -> Result<Option<Outcome>, ConnectionError> {
        if option == options::EXPORT_NAME {
            return Err(ConnectionError::Refused("TLS is needed"));
        }
        self.refuse(option, option_replies::ERR_TLS_REQD, "begin TLS first")
    }

    fn answer(&mut self, decoded: ClientOption) -> Result<Option<Outcome>, ConnectionError> {
        let option = decoded.number();
        match decoded {
            ClientOption::Abort => {
                // The client may be gone already.
                let _ = self.reply(option, &OptionReply::Ack);
                Ok(Some(Outcome::Left))
            }
            ClientOption::ExportName(name) => self.export_name(&name).map(Some),
            ClientOption::List => {
                let exports = self.exports;
                for name in exports.names() {
                    self.reply(option, &OptionReply::Server(name))?;
                }
                self.reply(option, &OptionReply::Ack)?;
                Ok(None)
            }
            ClientOption::StartTls if self.needs_tls => {
                self.reply(option, &OptionReply::Ack)?;
                Ok(Some(Outcome::StartTls))
            }
            ClientOption::StartTls => {
                self.refuse(option, option_replies::ERR_POLICY, "there is no TLS here, or already")
            }
            ClientOption::Info(info) => {
                self.describe(option, &info)?;
                Ok(None)
            }
            ClientOption::Go(info) => {
                let class = self.describe(option, &info)?;
                Ok(class.map(|(name, class)| Outcome::Session(self.session(&name, class))))
            }
            ClientOption::StructuredReply => {
                self.is_structured = true;
                self.reply(option, &OptionReply::Ack)?;
                Ok(None)
            }
            ClientOption::ListMetaContext(meta) => self.contexts(option, &meta, true),
            ClientOption::SetMetaContext(meta) => self.contexts(option, &meta, false),
            ClientOption::Unknown(_) => {
                self.refuse(option, option_replies::ERR_UNSUP, "the option is not known")
            }
        }
    }

    fn session(&self, name: &str, class: Reason) -> Session {
        let (of, contexts) = &self.contexts;
        let contexts = if of == name { contexts.clone() } else { Vec::new() };
        Session { class, is_structured: self.is_structured, contexts }
    }

    fn flags(&self) -> u16 {
        use transmission_flags as can;
        let all = can::HAS_FLAGS
            | can::SEND_FLUSH
            | can::SEND_FUA
            | can::CAN_MULTI_CONN
            | can::SEND_CACHE
            | if self.is_structured { can::SEND_DF } else { 0 };
        match self.volume.is_read_only() {
            true => all | can::READ_ONLY,
            false => all | can::SEND_TRIM | can::SEND_WRITE_ZEROES,
        }
    }

    fn export_name(&mut self, name: &str) -> Result<Outcome, ConnectionError> {
        const PADDING: usize = 124;
        let Some((name, class)) = self.exports.find(name) else {
            return Err(ConnectionError::Refused(
                "the client asks for an export that there is not",
            ));
        };
        let mut reply = self.volume.length().to_be_bytes().to_vec();
        reply.extend(self.flags().to_be_bytes());
        if self.client_flags & u32::from(handshake_flags::NO_ZEROES) == 0 {
            reply.extend([0; PADDING]);
        }
        self.stream.write_all(&reply)?;
        Ok(Outcome::Session(self.session(&name, class)))
    }

    /// Replies to INFO and GO. Returns the export, if it exists.
    fn describe(
        &mut self,
        option: u32,
        info: &InfoRequest,
    ) -> Result<Option<(String, Reason)>, ConnectionError> {
        let Some((name, class)) = self.exports.find(&info.name) else {
            self.refuse(option, option_replies::ERR_UNKNOWN, "there is no export of that name")?;
            return Ok(None);
        };
        let (size, flags) = (self.volume.length(), self.flags());
        self.reply(option, &OptionReply::Export { size, flags })?;
        let wants = |what: u16| info.wants.contains(&what);
        if wants(infos::NAME) {
            self.reply(option, &OptionReply::Name(name.clone()))?;
        }
        if wants(infos::DESCRIPTION) {
            self.reply(option, &OptionReply::Description(Exports::description(class)))?;
        }
        if wants(infos::BLOCK_SIZE) {
            let preferred = self.volume.block().max(4096);
            let most = PAYLOAD_BYTES_MAX;
            self.reply(option, &OptionReply::BlockSize { least: 1, preferred, most })?;
        }
        self.reply(option, &OptionReply::Ack)?;
        Ok(Some((name, class)))
    }

    /// Replies to LIST_META_CONTEXT and SET_META_CONTEXT.
    fn contexts(
        &mut self,
        option: u32,
        meta: &MetaRequest,
        lists: bool,
    ) -> Result<Option<Outcome>, ConnectionError> {
        if !lists {
            self.contexts = Default::default();
            if !self.is_structured {
                let why = "metadata contexts need structured replies";
                return self.refuse(option, option_replies::ERR_INVALID, why);
            }
        }
        let Some((name, _)) = self.exports.find(&meta.export) else {
            let why = "there is no export of that name";
            return self.refuse(option, option_replies::ERR_UNKNOWN, why);
        };
        let mut found: Vec<Context> = Vec::new();
        if lists && meta.queries.is_empty() {
            found.extend(Context::ALL);
        }
        for context in meta.queries.iter().flat_map(|query| Context::find(query, lists)) {
            if !found.contains(&context) {
                found.push(context);
            }
        }
        for context in &found {
            self.reply(option, &context.reply())?;
        }
        self.reply(option, &OptionReply::Ack)?;
        if !lists {
            self.contexts = (name, found);
        }
        Ok(None)
    }
}
