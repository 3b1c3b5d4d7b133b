//! Spans of a live run, as a collector receives them.
//!
//! It needs the feature `otlp`, and what live runs need; elsewhere it is skipped and says so:
//! `cargo test -p dormouse --features otlp --test otlp`.
#![expect(clippy::disallowed_macros, reason = "a test says why it is skipped")]
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// Tasks on spot VMs that hibernate for good after the first checkpoints.
const EXPERIMENT: &str = r#"name = "traced"
seed = 1
[cloud]
catalogue = "ec2-2020"
[[interruption]]
model = "schedule"
acts = [{ at = "400s", action = "hibernate", type = "c3.large" }]
[workload]
kind = "bag"
deadline = "45m"
[[workload.task]]
name = "small"
count = 4
memory = "10 MB"
runtime = { "c3.large" = "300s", "t3.large" = "300s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[live]
speedup = 30
"#;

/// A collector that keeps all spans.
#[derive(Clone, Debug, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request.into_inner().resource_spans.into_iter().flat_map(|it| it.scope_spans);
        self.spans.lock().unwrap().extend(scopes.flat_map(|it| it.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Runs the experiment with a collector beside it, and gives the spans that came.
fn spans_of(file: &Path, out: &Path) -> Vec<Span> {
    let runtime = Runtime::new().unwrap();
    let collector = Collector::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let service = TraceServiceServer::new(collector.clone());
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        Server::builder().add_service(service).serve_with_incoming(incoming).await.unwrap();
    });
    let ran = Command::new(env!("CARGO_BIN_EXE_dormouse"))
        .arg("run")
        .arg(file)
        .args(["--live", "--quiet", "--out"])
        .arg(out)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    std::mem::take(&mut *collector.spans.lock().unwrap())
}

#[test]
fn a_collector_receives_the_spans_of_a_run_and_its_worker() {
    let doctor = Command::new(env!("CARGO_BIN_EXE_dormouse")).arg("doctor").output().unwrap();
    if !doctor.status.success() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "this host can't run live");
        println!("skipped: this host can't run live, as `dormouse doctor` says");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("experiment.toml"), folder.path().join("out"));
    std::fs::write(&file, EXPERIMENT).unwrap();
    let spans = spans_of(&file, &out);
    let mut by_name: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in &spans {
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
        by_name.entry(&span.name).or_default().push(span);
    }
    let counts: BTreeMap<_, _> = by_name.iter().map(|(name, of)| (*name, of.len())).collect();
    let log = std::fs::read_to_string(out.join("events.jsonl")).unwrap();
    let reported = |kind: &str| log.matches(&format!("\"report\":\"{kind}\"")).count();

    let [run] = by_name["run"][..] else { panic!("there is one run: {counts:?}") };
    assert!(run.parent_span_id.is_empty());
    // What the coordinator does is within its run.
    for name in ["session", "decide", "write", "store"] {
        let of = by_name.get(name).unwrap_or_else(|| panic!("no {name}: {counts:?}"));
        let within = |span: &&&Span| {
            span.trace_id == run.trace_id
                && span.parent_span_id == run.span_id
                && span.start_time_unix_nano >= run.start_time_unix_nano
                && span.end_time_unix_nano <= run.end_time_unix_nano
        };
        assert_eq!(of.iter().filter(within).count(), of.len(), "a {name} is not within its run");
    }
    // Each line but the header is a decision, whether something was decided or not.
    assert_eq!(counts["decide"], log.lines().count() - 1, "{counts:?}");
    assert_eq!(counts["session"], 1, "{counts:?}");
    assert!(counts["store"] >= reported("checkpoint-taken"), "{counts:?}");
    // What the worker does is in traces of its own.
    for name in ["dump", "send", "restore"] {
        assert!(counts.get(name).is_some_and(|n| *n > 0), "no {name}: {counts:?}");
    }
    assert!(counts["dump"] >= reported("checkpoint-taken"), "{counts:?}");
}
