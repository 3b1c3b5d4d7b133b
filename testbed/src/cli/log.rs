//! What the services say while they run.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Says warnings, and what `RUST_LOG` asks for, on standard error; with `news` also who joins what.
#[cfg(not(feature = "otlp"))]
pub(crate) fn begin(news: bool) {
    // A second call finds the first's in place: that is as good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter(news))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}

/// The same, with the news, from before `work` on, which needs a process of one thread.
#[cfg(not(feature = "otlp"))]
pub(crate) fn before_threads<T>(work: impl FnOnce() -> T) -> T {
    begin(true);
    work()
}

/// Says warnings, and what `RUST_LOG` asks for, on standard error; with `news` also who joins what.
/// Spans go to a collector, where one is named.
#[cfg(feature = "otlp")]
pub(crate) fn begin(news: bool) {
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;

    let shown = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter(filter(news));
    let registry = tracing_subscriber::registry().with(shown);
    let _ = match super::traces::begin() {
        Some(exported) => registry.with(exported).try_init(),
        None => registry.try_init(),
    };
}

/// The same, with the news, from before `work` on, which needs a process of one thread: spans are
/// exported by others, and from then on.
#[cfg(feature = "otlp")]
pub(crate) fn before_threads<T>(work: impl FnOnce() -> T) -> T {
    let shown = tracing_subscriber::fmt()
        .with_env_filter(filter(true))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    let done = tracing::subscriber::with_default(shown, work);
    begin(true);
    done
}

fn filter(news: bool) -> EnvFilter {
    let mut filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let news = news.then_some([dormouse_worker::agent::NEWS, dormouse_coordinator::NEWS]);
    for target in news.into_iter().flatten() {
        // The name of a target and a level are a directive.
        if let Ok(directive) = format!("{target}=info").parse() {
            filter = filter.add_directive(directive);
        }
    }
    filter
}
