//! Spans of runs and workers, exported by OTLP to the collector that the environment names.

use std::sync::OnceLock;
use std::time::Duration;

use crate::said;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Runtime};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// Environment variables that name a collector, by the OpenTelemetry specification.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
/// Time limit for sending the last spans.
const LAST: Duration = Duration::from_secs(5);

/// Sends spans until the process ends.
struct Exporting {
    provider: SdkTracerProvider,
    /// The asynchronous runtime of the exporter's connection.
    _runtime: Runtime,
}

static EXPORTING: OnceLock<Exporting> = OnceLock::new();

/// Exports the spans of this process from now on; `None`: no collector is named, or none can be reached, which is
/// reported.
pub(super) fn begin<S>() -> Option<impl Layer<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let is_named = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    ENDPOINTS.into_iter().find(is_named)?;
    let provider = match exporting() {
        Ok(exporting) => exporting.provider.clone(),
        Err(why) => {
            said::note(&format!("spans can't be exported: {why}"));
            return None;
        }
    };
    let targets = [dormouse_coordinator::SPANS, dormouse_worker::SPANS];
    let spans = Targets::new().with_targets(targets.map(|of| (of, LevelFilter::DEBUG)));
    let tracer = provider.tracer("dormouse");
    Some(tracing_opentelemetry::layer().with_tracer(tracer).with_filter(spans))
}

fn exporting() -> Result<&'static Exporting, String> {
    if let Some(exporting) = EXPORTING.get() {
        return Ok(exporting);
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let entered = runtime.enter();
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_tonic().build();
    let exporter = exporter.map_err(|error| error.to_string())?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
        // It is taken from there.
        Some(_) => Resource::builder(),
        None => Resource::builder().with_service_name("dormouse"),
    };
    let provider = SdkTracerProvider::builder()
        .with_resource(resource.with_attribute(version).build())
        .with_batch_exporter(exporter)
        .build();
    drop(entered);
    Ok(EXPORTING.get_or_init(|| Exporting { provider, _runtime: runtime }))
}

/// Sends the remaining spans before the process ends.
pub(super) fn end() {
    if let Some(Exporting { provider, .. }) = EXPORTING.get()
        && let Err(error) = provider.shutdown_with_timeout(LAST)
    {
        said::note(&format!("the last spans could not be exported: {error}"));
    }
}
