//! A reproduction that was asked for is made, and it is said what came out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::many::{Common, Shards};
use super::{engine, next_steps, terminal};
use clap::Args;
use dormouse_reproduce::papers::{ClaimList, Finished, Request, named, table};
use dormouse_reproduce::sweep::{Reproduction, Spec};

/// Results that these are compared with.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AgainstArgs {
    /// Say which claims have another verdict or figure than in this claims.json, or in that of this folder
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    pub(super) compare_with: Option<PathBuf>,
}

/// Number of seeds: those given, or the default in the paper's data file.
pub(super) fn seeds(what: &str, given: Option<u64>) -> Result<u64, Failure> {
    given.map_or_else(|| Ok(named(what)?.0.seeds), Ok)
}

/// Makes what is asked for, and says what came out.
pub(super) fn run(
    spec: &Reproduction,
    request: Request,
    (shards, common, against): (&Shards, &Common, &AgainstArgs),
) -> Result<(), Failure> {
    let before = against.compare_with.as_deref().map(ClaimList::read).transpose()?;
    let name = format!("reproduce-{}", spec.what.replace('/', "-"));
    let out = common.folder_for(&Spec::Reproduce(spec.clone()), &name, shards);
    let request = Request { threads: common.threads(), compute: shards.compute(), ..request };
    if shards.engine.is_asked_for() {
        request.check_parts(spec)?;
        return engine::hand_over(&Spec::Reproduce(spec.clone()), &out, (shards, common)).map(drop);
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

/// Takes parts together.
pub(super) fn merge(
    parts: &[PathBuf],
    (out, force): (&Path, bool),
    common: &Common,
) -> Result<(), Failure> {
    let request = Request::new(common.threads());
    let done = common.watched(|progress| request.merge(parts, (out, force), progress))?;
    report(common, out, (done.as_ref(), None))
}

fn report(
    common: &Common,
    out: &Path,
    (done, before): (Option<&Finished>, Option<&ClaimList>),
) -> Result<(), Failure> {
    if let Some(done) = done {
        let mut text = table(done, terminal::stdout());
        if let Some(before) = before {
            text += &changed(&done.claim_list().changes(before));
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

/// What differs from the results that were given, in words.
fn changed(lines: &[String]) -> String {
    match lines {
        [] => "\n  every claim has the verdict and the figure of --compare-with".to_owned(),
        lines => {
            let lines: String = lines.iter().map(|line| format!("\n    {line}")).collect();
            format!("\n  other than in --compare-with:{lines}")
        }
    }
}

/// Whether a whole paper was asked for: a part of one may have no claims.
fn is_whole(what: &str) -> bool {
    !what.contains('/')
}

/// None of a paper's claims has a verdict.
fn unjudged(done: &Finished) -> Failure {
    let what = &done.what;
    let none = format!("{what}: none of the paper's claims could be judged");
    match &done.without[..] {
        [] => Failure::Broken(format!("{none}: no run says anything of them")),
        without => {
            let why: Vec<&str> = without.iter().map(|(_, why)| why.as_str()).collect();
            Failure::BadInput(format!("{none}; left out is {}", why.join("; and ")))
        }
    }
}
