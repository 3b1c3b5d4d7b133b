//! What the services say while they run.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Says warnings, and what `RUST_LOG` asks for, on standard error; with `news` also who joins what.
pub(crate) fn begin(news: bool) {
    let mut filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let news = news.then_some([dormouse_worker::agent::NEWS, dormouse_coordinator::NEWS]);
    for target in news.into_iter().flatten() {
        // The name of a target and a level are a directive.
        if let Ok(directive) = format!("{target}=info").parse() {
            filter = filter.add_directive(directive);
        }
    }
    // A second call finds the first's in place: that is as good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
