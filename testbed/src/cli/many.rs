//! What commands of many runs have in common: where results go, progress, what is said at the end.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::failure::Failure;
use super::print::print;
use super::progress::Progress;
use crate::sweep::{Shard, SweepError};

/// What all of them take.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Where the results go; a killed command goes on from there
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Threads [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing but errors
    #[arg(long, short, conflicts_with = "json")]
    pub(super) quiet: bool,
    /// Print the results as JSON instead of the tables
    #[arg(long)]
    pub(super) json: bool,
}

/// What those take whose runs come in parts.
#[derive(Debug, Args)]
pub(crate) struct Shards {
    /// Make part I of N only; `dormouse merge` joins the parts
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Shard>,
    /// Replace the results of another command in the folder; what both need is kept
    #[arg(long)]
    pub(super) force: bool,
}

impl Common {
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            usize::from,
        )
    }
}

/// Where the results go.
pub(super) fn folder(common: &Common, name: &str, shard: Option<Shard>) -> PathBuf {
    common.out.clone().unwrap_or_else(|| {
        let part = shard.map(|s| format!("-{}", s.to_string().replace('/', "-of-")));
        PathBuf::from("runs").join(format!("{name}{}", part.unwrap_or_default()))
    })
}

/// Says what came out: nothing of a part but that it is made.
pub(super) fn report(
    common: &Common,
    out: &Path,
    table: Option<String>,
    json: Option<Value>,
) -> Result<(), Failure> {
    if common.quiet {
        return Ok(());
    }
    if common.json {
        return print(&format!("{:#}", json.unwrap_or_default()));
    }
    let table =
        table.unwrap_or_else(|| "  this part is made; join the parts with merge".to_owned());
    print(&table)?;
    print(&format!("\n  results in {}", out.display()))
}

/// How far a command of several stages has come.
pub(super) struct Bar {
    progress: Option<(String, Progress)>,
    quiet: bool,
}

impl Bar {
    pub(super) fn new(quiet: bool) -> Self {
        Self { progress: None, quiet }
    }

    pub(super) fn show(&mut self, stage: &str, n: usize, of: usize) {
        if self.progress.as_ref().is_none_or(|(name, _)| name != stage) {
            self.finish();
            self.progress = Some((stage.to_owned(), Progress::new(self.quiet, of, stage)));
        }
        if let Some((_, progress)) = &mut self.progress {
            progress.show(n as u64, of as u64, "", None);
        }
    }

    pub(super) fn finish(&self) {
        if let Some((_, progress)) = &self.progress {
            progress.finish();
        }
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        let text = crate::chain::chain(&error);
        if error.is_bad_input() { Self::BadInput(text) } else { Self::Broken(text) }
    }
}
