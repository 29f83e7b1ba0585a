//! Capture of a thread's reports to `tracing` during an action.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    /// Reports of this thread while a test listens.
    static REPORTED: RefCell<Option<Vec<Reported>>> = const { RefCell::new(None) };
}

/// A span, or an event.
#[derive(Clone, Debug)]
pub struct Reported {
    /// Level of the report.
    #[allow(dead_code)]
    pub level: Level,
    /// The span's name, or `event`; then each field as `name=value`, with a space before it.
    #[allow(dead_code)]
    pub text: String,
}

/// The subscriber of the whole process. One of a thread's own would not do: where a second thread
/// reaches a span or an event first, `tracing` asks that thread's subscriber whether anybody wants
/// it, and remembers the answer for all threads.
struct ByThread;

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

fn report(metadata: &Metadata<'_>, name: &str, record: impl FnOnce(&mut Fields)) {
    REPORTED.with_borrow_mut(|reported| {
        let Some(reported) = reported else { return };
        let mut fields = Fields(name.to_string());
        record(&mut fields);
        reported.push(Reported { level: *metadata.level(), text: fields.0 });
    });
}

impl Subscriber for ByThread {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        report(span.metadata(), span.metadata().name(), |fields| span.record(fields));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        report(event.metadata(), "event", |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Returns the reports of this thread during `action`, which must not call this in turn.
pub fn traced<R>(action: impl FnOnce() -> R) -> (Vec<Reported>, R) {
    static SUBSCRIBED: Once = Once::new();
    SUBSCRIBED.call_once(|| {
        tracing::subscriber::set_global_default(ByThread).unwrap();
        // Who asked between the subscriber's making and its setting was told that nobody listens.
        tracing::callsite::rebuild_interest_cache();
    });
    REPORTED.set(Some(Vec::new()));
    let answer = action();
    (REPORTED.take().unwrap(), answer)
}
