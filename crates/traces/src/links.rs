//! The link between spans of different processes: a `traceparent` of W3C's Trace Context.

use opentelemetry::{
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::TraceContextExt,
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const HEADER: &str = "traceparent";

/// The span that is current here, as another process can name it as a parent. `None` outside of
/// every span, and where none is collected.
pub fn current_parent() -> Option<String> {
    let context = Span::current().context();
    if !context.span().span_context().is_valid() {
        return None;
    }
    let mut parent = Parent(None);
    TraceContextPropagator::new().inject_context(&context, &mut parent);
    parent.0
}

/// Puts a span that was not entered yet below one of another process. A text that names none, or is
/// malformed, is ignored.
pub fn set_parent(span: &Span, parent: &str) {
    let context = TraceContextPropagator::new().extract(&Parent(Some(parent.to_owned())));
    if context.span().span_context().is_valid() {
        // Refused where no spans are collected, which is as good.
        let _ = span.set_parent(context);
    }
}

struct Parent(Option<String>);

impl Injector for Parent {
    fn set(&mut self, key: &str, value: String) {
        if key == HEADER {
            self.0 = Some(value);
        }
    }
}

impl Extractor for Parent {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.as_deref().filter(|_| key == HEADER)
    }

    fn keys(&self) -> Vec<&str> {
        vec![HEADER]
    }
}
