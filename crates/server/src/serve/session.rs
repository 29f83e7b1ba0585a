//! The terms agreed between client and server.

use millpond_base::Reason;

use crate::protocol::{
    OptionReply, REASON_CONTEXT, REASON_SHIFT, Request, allocation, number_of, reason_of, residency,
};

/// A metadata context that the server supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Context {
    /// Holes and data.
    Allocation,
    /// Reasons in the highest bits of cookies.
    Reason,
    /// Content of the cache.
    Residency,
}

impl Context {
    pub const ALL: [Context; 3] = [Context::Allocation, Context::Reason, Context::Residency];

    pub fn name(self) -> &'static str {
        match self {
            Context::Allocation => allocation::NAME,
            Context::Reason => REASON_CONTEXT,
            Context::Residency => residency::NAME,
        }
    }

    /// Returns the context's number in replies.
    pub fn id(self) -> u32 {
        match self {
            Context::Allocation => 1,
            Context::Reason => 2,
            Context::Residency => 3,
        }
    }

    pub fn reply(self) -> OptionReply {
        OptionReply::MetaContext { id: self.id(), name: self.name().to_string() }
    }

    /// Returns the contexts that a query names: one, or all of a namespace for a list request.
    pub fn find(query: &str, lists: bool) -> Vec<Context> {
        let is_meant = |context: &Context| {
            let name = context.name();
            name == query || (lists && query.ends_with(':') && name.starts_with(query))
        };
        Context::ALL.into_iter().filter(is_meant).collect()
    }
}

/// A connection after its handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Session {
    /// Class of the export's writes.
    pub class: Reason,
    /// `true` if replies come in chunks.
    pub is_structured: bool,
    /// Metadata contexts of BLOCK_STATUS.
    pub contexts: Vec<Context>,
}

impl Session {
    /// Returns `true` if the client's cookies carry reasons.
    pub fn has_hints(&self) -> bool {
        self.contexts.contains(&Context::Reason)
    }

    /// Returns the reason of this request's write.
    pub fn reason(&self, request: &Request) -> Reason {
        let hint = reason_of(request.cookie >> REASON_SHIFT).filter(|_| self.has_hints());
        hint.unwrap_or(self.class)
    }

    /// Returns the number of the export's class.
    pub fn class_number(&self) -> u32 {
        number_of(self.class) as u32
    }
}
