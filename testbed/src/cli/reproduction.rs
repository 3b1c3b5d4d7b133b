//! Makes a requested reproduction, and prints its results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::many::{Common, Shards};
use super::{engine, next_steps, preflight, terminal};
use clap::Args;
use dormouse_reproduce::papers::{
    ClaimList, FinishedReproduction, MakeLive, ReproductionRequest, live_part_needs_criu, named,
    table,
};
use dormouse_reproduce::sweep::{FolderSpec, ReproductionSpec};

/// Results with which the results of this command are compared.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AgainstArgs {
    /// Show which claims have a different verdict or figure than in an earlier claims.json, given as that file or its folder
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    pub(super) compare_with: Option<PathBuf>,
}

/// Number of seeds: the given number, or the default in the paper's data file.
pub(super) fn seeds(what: &str, given: Option<u64>) -> Result<u64, Failure> {
    given.map_or_else(|| Ok(named(what)?.0.seeds), Ok)
}

/// The function that makes live runs of each live cell, with this program.
pub(super) fn make_live(seeds: u64) -> Result<MakeLive, Failure> {
    let unknown = |error| format!("can't find this program to run it live: {error}");
    let program = std::env::current_exe().map_err(|error| Failure::Broken(unknown(error)))?;
    Ok(MakeLive { seeds, program })
}

/// Adds a live part to a reproduction, with one live run of each of its cells, if this host can run live.
fn with_live_part(
    request: ReproductionRequest,
    spec: &ReproductionSpec,
    (shards, common): (&Shards, &Common),
) -> Result<ReproductionRequest, Failure> {
    let Some(needs_criu) = live_part_needs_criu(spec)? else { return Ok(request) };
    let what = &spec.what;
    if shards.shard.is_some() || shards.engine.is_asked_for() {
        let why = "its cells are played on this host, one after the other";
        return Err(Failure::BadInput(format!("{what}: {why}; leave out --shard and --engine")));
    }
    let instead = "the other parts of the paper need no such rights";
    preflight::check_or(what, needs_criu, (instead, common.say))?;
    let make_live = match request.make_live {
        Some(asked) => asked,
        None => make_live(1)?,
    };
    Ok(ReproductionRequest { make_live: Some(make_live), ..request })
}

/// Makes a reproduction, and prints its results.
pub(super) fn run(
    spec: &ReproductionSpec,
    request: ReproductionRequest,
    (shards, common, against): (&Shards, &Common, &AgainstArgs),
) -> Result<(), Failure> {
    let before = against.compare_with.as_deref().map(ClaimList::read).transpose()?;
    let name = format!("reproduce-{}", spec.what.replace('/', "-"));
    let out = common.folder_for(&FolderSpec::Reproduce(spec.clone()), &name, shards);
    let request =
        ReproductionRequest { threads: common.threads(), compute: shards.compute(), ..request };
    let request = with_live_part(request, spec, (shards, common))?;
    if shards.engine.is_asked_for() {
        request.check_parts(spec)?;
        return engine::hand_over(&FolderSpec::Reproduce(spec.clone()), &out, (shards, common))
            .map(drop);
    }
    let mut made = BTreeMap::new();
    let done = common.watched(|progress| {
        let mut counted = |stage: &str, n, of| {
            made.insert(stage.to_owned(), n);
            progress(stage, n, of);
        };
        request.run(spec, (&out, shards.force), &mut counted)
    })?;
    match (done, shards.shard) {
        (None, Some(shard)) => common.report_part(&out, (shard, made.values().sum())),
        (done, _) => report(common, &out, (done.as_ref(), before.as_ref())),
    }
}

/// Merges the parts of a reproduction or sweep.
pub(super) fn merge(
    parts: &[PathBuf],
    (out, force): (&Path, bool),
    common: &Common,
) -> Result<(), Failure> {
    let request = ReproductionRequest::new(common.threads());
    let done = common.watched(|progress| request.merge(parts, (out, force), progress))?;
    report(common, out, (done.as_ref(), None))
}

fn report(
    common: &Common,
    out: &Path,
    (done, before): (Option<&FinishedReproduction>, Option<&ClaimList>),
) -> Result<(), Failure> {
    if let Some(done) = done {
        let mut text = table(done, terminal::stdout());
        if let Some(before) = before {
            text += &changed(&done.claim_list(), before);
        }
        common.report(out, (text, done.json()))?;
    }
    match done {
        Some(done) if is_whole(&done.what) && done.ours.judged() == 0 => Err(unjudged(done)),
        Some(done) => {
            next_steps::say(common.say, || next_steps::after_paper(&done.what, out));
            Ok(())
        }
        None => Ok(()),
    }
}

/// Differences of the claims' verdicts and figures from earlier results, in words, and the number of equal claims.
pub(super) fn changed(now: &ClaimList, before: &ClaimList) -> String {
    match &now.changes(before)[..] {
        [] => "\n  every claim has the verdict and the figure of --compare-with".to_owned(),
        lines => {
            let lines: String = lines.iter().map(|line| format!("\n    {line}")).collect();
            let (same, of) = now.unchanged(before);
            format!(
                "\n  other than in --compare-with:{lines}\n  {same} of {of} claims that both have are as in --compare-with"
            )
        }
    }
}

/// Whether `what` names a whole paper; a part of a paper may have no claims.
fn is_whole(what: &str) -> bool {
    !what.contains('/')
}

/// The failure that none of a paper's claims has a verdict.
fn unjudged(done: &FinishedReproduction) -> Failure {
    let what = &done.what;
    let none = format!("{what}: none of the paper's claims could be judged");
    match &done.without[..] {
        [] => Failure::Broken(format!(
            "{none}: no run has the figures that they need; make more parts or --seeds"
        )),
        without => {
            let why: Vec<&str> = without.iter().map(|(_, why)| why.as_str()).collect();
            Failure::BadInput(format!("{none}; left out: {}", why.join("; and ")))
        }
    }
}
