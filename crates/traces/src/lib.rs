//! Sends the spans of a process to an OpenTelemetry collector: OTLP over HTTP.
//!
//! Other crates make spans with `tracing` alone, under the target [`TRACE_TARGET`]; without this crate
//! they cost next to nothing. Spans hold ids, names, counts and durations. Prompts, code, commands
//! and results do not belong into them.
//!
//! Where spans go, which of them and how often is said by the standard variables of OpenTelemetry
//! (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`,
//! `OTEL_RESOURCE_ATTRIBUTES`, …), which its SDK reads itself.

mod client;
mod links;

use std::time::Duration;

use codespar_protocol::TRACE_TARGET;
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

pub use client::Connect;
use client::{Client, Failure};
pub use links::{current_parent, set_parent};

/// What says which service spans are of, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES`
/// say otherwise.
const SERVICE: &str = "codespar";

/// How long the end of a process waits for the collector to take the last spans.
const LAST_EXPORT: Duration = Duration::from_secs(3);

/// Why no spans are exported.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("traces: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// The spans of this process on their way. Dropped without [`Traces::finish`], the latest are lost.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    failure: Failure,
}

impl Traces {
    /// `connect` makes the client for the collector, when the first spans are sent: a command that has
    /// none does not pay for it.
    pub fn to_collector(connect: Connect) -> Result<Self, TraceError> {
        let failure = Failure::default();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new(connect, failure.clone()))
            .build()?;
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource())
            .build();
        Ok(Self { provider, failure })
    }

    /// What collects the spans; events and the spans of others are left out.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        let ours = Targets::new().with_target(TRACE_TARGET, LevelFilter::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(ours)
    }

    /// Sends what is left, and waits for it a little. The error is why the collector did not take it.
    pub fn finish(&self) -> Result<(), String> {
        let finished = self.provider.shutdown_with_timeout(LAST_EXPORT);
        if let Some(failure) = self.failure.lock().take() {
            return Err(failure);
        }
        finished.map_err(|error| error.to_string())
    }
}

/// The process that spans are of. What the variables say of it comes first.
fn resource() -> Resource {
    let given = Resource::builder().build();
    let named = |key: &'static str| given.get(&key.into()).is_some();
    let mut builder = Resource::builder();
    let is_unnamed = given
        .get(&"service.name".into())
        .is_none_or(|name| name.as_str().starts_with("unknown_service"));
    if is_unnamed {
        builder = builder.with_service_name(SERVICE);
    }
    if !named("service.version") {
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        builder = builder.with_attribute(version);
    }
    let process = KeyValue::new("process.pid", i64::from(std::process::id()));
    builder.with_attribute(process).build()
}
