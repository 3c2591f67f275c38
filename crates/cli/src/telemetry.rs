//! What a process tells of itself beside its output: a log, and traces.
//!
//! Both are off by default. `CODESPAR_LOG=debug` (or a filter such as `codespar_model=trace`) or
//! `--debug` writes a log to stderr, `--debug-file` to a file. Lines go through the printer, so that
//! they have no secrets and no control characters. `OTEL_TRACES_EXPORTER=otlp` sends traces to an
//! OpenTelemetry collector.

use std::{fs::File, os::unix::fs::OpenOptionsExt, path::Path, sync::Arc};

use tracing_subscriber::{
    EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt,
};

use crate::{args::ClientArgs, error::CommandError, printer};

/// The variable that decides whether there are traces, and the value that says so.
pub(crate) const EXPORTER: (&str, &str) = ("OTEL_TRACES_EXPORTER", "otlp");

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Held until the end of the process.
pub(crate) struct Telemetry {
    #[cfg(feature = "otlp")]
    traces: Option<codespar_traces::Traces>,
}

impl Telemetry {
    pub(crate) fn start(args: &ClientArgs) -> Result<Self, CommandError> {
        let mut layers: Vec<BoxedLayer> = log(args)?.into_iter().collect();
        let are_traces_on = std::env::var(EXPORTER.0).is_ok_and(|name| name == EXPORTER.1);
        #[cfg(feature = "otlp")]
        let traces = match are_traces_on {
            true => Some(collector::traces()?),
            false => None,
        };
        #[cfg(feature = "otlp")]
        layers.extend(traces.as_ref().map(|traces| traces.layer().boxed()));
        #[cfg(not(feature = "otlp"))]
        if are_traces_on {
            printer::err(format_args!(
                "codespar: {}={} has no effect: this build cannot send traces; build it with \
                 --features otlp",
                EXPORTER.0, EXPORTER.1
            ));
        }
        if !layers.is_empty() {
            tracing_subscriber::registry().with(layers).init();
        }
        Ok(Self {
            #[cfg(feature = "otlp")]
            traces,
        })
    }

    /// Sends what is left of the traces. A collector that is not there changes nothing of the
    /// outcome of the command.
    pub(crate) fn finish(&self) {
        #[cfg(feature = "otlp")]
        if let Some(Err(error)) = self.traces.as_ref().map(codespar_traces::Traces::finish) {
            printer::err(format_args!(
                "codespar: the latest traces were not sent to the collector: {error}"
            ));
        }
    }
}

fn log(args: &ClientArgs) -> Result<Option<BoxedLayer>, CommandError> {
    let by_option = || args.debug_file.is_some().then(|| "debug".to_owned());
    let wanted = args
        .debug
        .clone()
        .or_else(|| std::env::var("CODESPAR_LOG").ok());
    let Some(filter) = wanted.or_else(by_option) else {
        return Ok(None);
    };
    let log = match &args.debug_file {
        Some(path) => printer::Log::File(Arc::new(open_log(path)?)),
        None => printer::Log::Stderr,
    };
    let filter = EnvFilter::try_new(&filter).unwrap_or_else(|error| {
        printer::err(format_args!(
            "codespar: CODESPAR_LOG={filter}: {error}; using `info`"
        ));
        EnvFilter::new("info")
    });
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(move || log.clone());
    Ok(Some(lines.with_filter(filter).boxed()))
}

/// For the user alone: a log has paths and prompts.
fn open_log(path: &Path) -> Result<File, CommandError> {
    let mut options = File::options();
    options.create(true).append(true).mode(0o600);
    options
        .open(path)
        .map_err(|error| CommandError::Usage(format!("--debug-file {}: {error}", path.display())))
}

#[cfg(feature = "otlp")]
mod collector {
    use std::time::Duration;

    use codespar_tasks::TraceLinks;
    use codespar_traces::Traces;

    use crate::error::CommandError;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Links between processes are there as soon as traces are.
    pub(super) fn traces() -> Result<Traces, CommandError> {
        let traces = Traces::to_collector(Box::new(client))
            .map_err(|error| CommandError::Usage(error.to_string()))?;
        TraceLinks {
            current: codespar_traces::current_parent,
            set_parent: codespar_traces::set_parent,
        }
        .install();
        Ok(traces)
    }

    /// Redirections are not followed: headers for the collector may hold a key.
    fn client() -> Result<reqwest::Client, String> {
        // An error only says that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .connect_timeout(TIMEOUT)
            .timeout(2 * TIMEOUT)
            .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none());
        client
            .build()
            .map_err(|error| error.without_url().to_string())
    }
}
