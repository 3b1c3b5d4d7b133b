//! Common parts of commands that make many runs: the folder of results, progress, and the final message.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::args::Say;
use super::engine::EngineArgs;
use super::failure::Failure;
use super::print::show;
use super::progress::Progress;
use crate::said;
use dormouse_reproduce::sweep::{
    FolderSpec, Samples, SharedInputs, SweepCell, SweepFolder, SweepShard, SweepWork,
};

/// Options that all commands of many runs share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results", mut_arg("json", |json| json.help("Print the results as JSON instead of the tables")))]
pub(crate) struct Common {
    /// Folder for the results; a killed command continues from there
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Number of threads [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    pub(super) say: Say,
}

/// Options of commands whose runs can be split into parts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct Shards {
    /// Make part I of N only; `dormouse merge` joins the parts, which may share a folder
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<SweepShard>,
    /// Replace the results of another command in the folder; runs that both commands need are kept
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
}

impl Shards {
    /// The part of the runs to make; `None`: all runs.
    pub(super) fn compute(&self) -> Option<SweepShard> {
        Some(self.shard.unwrap_or(SweepShard::ALL))
    }
}

impl Common {
    /// The number of threads that the user gave; `None`: the default number.
    pub(super) const fn given_threads(&self) -> Option<u16> {
        self.threads
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            usize::from,
        )
    }

    /// Folder of the results: the one that the user gave, or `runs/NAME`, with the shard in its name.
    pub(super) fn folder(&self, name: &str, shard: Option<SweepShard>) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let part = shard.map(|s| format!("-{}", s.to_string().replace('/', "-of-")));
            PathBuf::from("runs").join(format!("{name}{}", part.unwrap_or_default()))
        })
    }

    /// Folder for the results of a command that makes these runs. If the user names none, and the default folder holds
    /// the results of another command, a new folder beside it is used, and a note says so.
    pub(super) fn folder_for(&self, spec: &FolderSpec, name: &str, shards: &Shards) -> PathBuf {
        let folder = self.folder(name, shards.shard);
        if self.out.is_some() || shards.force || !spec.is_another_than_in(&folder) {
            return folder;
        }
        let digest = Sha256::digest(spec.identity());
        let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let beside = folder.with_file_name(format!(
            "{}-{digest}",
            folder.file_name().unwrap_or_default().to_string_lossy()
        ));
        if !self.say.quiet {
            let (there, here) = (folder.display(), beside.display());
            said::note(&format!(
                "{there} holds the results of another command; these go to {here}"
            ));
        }
        beside
    }

    /// Runs `work`, and shows the progress that it reports: the stage, the number of done items, and the number of all items.
    pub(super) fn watched<T, E: Into<Failure>>(
        &self,
        work: impl FnOnce(&mut (dyn FnMut(&str, usize, usize) + Send)) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let mut shown: Option<Progress> = None;
        let done = work(&mut |stage, n, of| {
            let progress = match shown.take().filter(|progress| progress.is_of(stage)) {
                Some(progress) => shown.insert(progress),
                None => shown.insert(self.say.progress(of, stage)),
            };
            progress.show(n as u64, of as u64, "", None);
        });
        done.map_err(Into::into)
    }

    /// The samples of cells under seeds 1 to `seeds`; runs of `compute` that the folder lacks are made. `None`: only a
    /// part of the runs was requested, and a message says that this part is complete.
    pub(super) fn samples(
        &self,
        cells: &[SweepCell],
        (seeds, compute): (u64, Option<SweepShard>),
        shared: &SharedInputs,
        folder: &mut SweepFolder,
    ) -> Result<Option<Samples>, Failure> {
        let work = SweepWork { seeds: 1..=seeds, threads: self.threads(), compute, shared };
        let mut made = 0;
        let samples = self.watched(|show| {
            work.run(cells, folder, &mut |n, of| {
                made = n;
                show("runs", n, of);
            })
        })?;
        if let Some(shard) = compute.filter(|shard| shard.is_part()) {
            self.report_part(folder.path(), (shard, made))?;
            return Ok(None);
        }
        Ok(Some(samples))
    }

    /// Prints the results, as text or as JSON.
    pub(super) fn report(&self, out: &Path, (text, json): (String, Value)) -> Result<(), Failure> {
        if self.say.quiet {
            return Ok(());
        }
        show(self.say.json, json, || format!("{text}\n\n  results in {}", out.display()))
    }

    /// Prints that a part is complete, and how many of its runs this process made.
    pub(super) fn report_part(
        &self,
        out: &Path,
        (shard, made): (SweepShard, usize),
    ) -> Result<(), Failure> {
        let runs = if made == 1 { "run" } else { "runs" };
        let made = format!("{made} {runs} that were not there");
        let text = format!("  part {shard} is made: {made}; join the parts with merge");
        self.report(out, (text, Value::Null))
    }
}
