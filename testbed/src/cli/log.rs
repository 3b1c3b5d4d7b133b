//! What the services say while they run.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Says warnings, and what `RUST_LOG` asks for, on standard error.
pub(crate) fn begin() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call finds the first's in place: that is as good.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
