//! Logging of commands and services: users of a command see messages in that command's words; log files, and the
//! standard error of services, have whole lines with times and source locations.

use std::fmt;
use std::fs::File;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use dormouse_units::one_line;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Name of the file in a run's folder that has everything that the run's coordinator logged.
const FILE: &str = "coordinator.log";

/// Most bytes of a log line on standard error; the file has the whole line.
const LONGEST: usize = 2_000;

/// A tracing layer that writes log lines to one destination.
type Said = Box<dyn Layer<Registry> + Send + Sync>;

/// Sets logging up: warnings go to standard error, with `news` also informative events such as a worker that joins, and
/// all of them to a file in `folder`. `RUST_LOG` can select more for standard error.
pub(crate) fn begin(news: bool, folder: Option<&Path>) {
    let mut all = vec![shown(news)];
    let file = folder
        .and_then(|folder| File::options().create(true).append(true).open(folder.join(FILE)).ok());
    all.extend(file.map(kept));
    // A second call finds the first's in place: that is as good.
    #[cfg(not(feature = "otlp"))]
    let _ = tracing_subscriber::registry().with(all).try_init();
    // Spans go to a collector, where one is named.
    #[cfg(feature = "otlp")]
    let _ = match super::traces::begin() {
        Some(exported) => tracing_subscriber::registry().with(all).with(exported).try_init(),
        None => tracing_subscriber::registry().with(all).try_init(),
    };
}

/// Sets logging up, with news, and then runs `work`. The process may have only one thread when this is called; from
/// then on other threads export the spans.
pub(crate) fn before_threads<T>(work: impl FnOnce() -> T) -> T {
    let early = tracing_subscriber::registry().with(vec![shown(true)]);
    let done = tracing::subscriber::with_default(early, work);
    begin(true, None);
    done
}

/// The layer for standard error. Lines have times and source locations unless somebody reads them at a terminal; lines
/// that `RUST_LOG` selects always have them.
fn shown(news: bool) -> Said {
    let (asked, is_terminal) = (std::env::var_os("RUST_LOG"), std::io::stderr().is_terminal());
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if asked.is_some() || (news && !is_terminal) {
        return layer.with_ansi(is_terminal).with_filter(filter(news)).boxed();
    }
    layer.with_ansi(false).event_format(CommandLine).with_filter(filter(news)).boxed()
}

/// The layer for the log file: warnings, news, and details that the user of a command does not need to see.
fn kept(file: File) -> Said {
    let layer = tracing_subscriber::fmt::layer().with_writer(Arc::new(file)).with_ansi(false);
    layer.with_filter(with_infos(filter(true), &[dormouse_coordinator::DETAILS])).boxed()
}

fn filter(news: bool) -> EnvFilter {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let all = [dormouse_worker::agent::NEWS, dormouse_coordinator::NEWS];
    if news { with_infos(filter, &all) } else { filter }
}

/// Returns the filter, changed so that events of these targets pass from level `info` on.
fn with_infos(mut filter: EnvFilter, targets: &[&str]) -> EnvFilter {
    for target in targets {
        // The name of a target and a level are a directive.
        if let Ok(directive) = format!("{target}=info").parse() {
            filter = filter.add_directive(directive);
        }
    }
    filter
}

/// Format of a log line that a command prints: without a time, level or source location.
struct CommandLine;

impl<S, N> FormatEvent<S, N> for CommandLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut words = Words::default();
        event.record(&mut words);
        writeln!(writer, "dormouse: {}", one_line(&words.to_string(), LONGEST))
    }
}

/// Collects the texts of an event's fields: what happened, why, and the other values.
#[derive(Debug, Default)]
struct Words {
    message: String,
    error: Option<String>,
    others: Vec<String>,
}

impl Words {
    fn add(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            "error" | "why" => self.error = Some(value),
            name => self.others.push(format!("{} {value}", name.replace('_', " "))),
        }
    }
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, dormouse_experiment::chain(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.others.is_empty() {
            write!(f, " ({})", self.others.join(", "))?;
        }
        match &self.error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Mutex;

    use super::*;

    /// A shared buffer in which tests look at what was written.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().map_err(|_| io::Error::other("poisoned"))?.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_warning_is_a_line_of_the_command() {
        let page = Page::default();
        let writer = page.clone();
        let layer = tracing_subscriber::fmt::layer().event_format(CommandLine);
        let layer = layer.with_ansi(false).with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(worker = "local-1", why = %"it is silent", "a worker is lost");
            let error = io::Error::other("no\u{1b}[31m room");
            tracing::warn!(error = &error as &dyn std::error::Error, "the log can't grow");
        });
        let text = page.0.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "dormouse: a worker is lost (worker local-1): it is silent");
        assert!(lines[1].starts_with("dormouse: the log can't grow: no"), "{text}");
        assert!(lines.len() == 2 && !text.contains('\u{1b}'), "{text}");
    }
}
