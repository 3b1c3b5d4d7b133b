//! A reproduction that was asked for is made, and it is said what came out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::many::{Common, Shards};
use super::{engine, next_steps, terminal};
use dormouse_reproduce::papers::{Finished, Request, named, table};
use dormouse_reproduce::sweep::{Reproduction, Spec};

/// Number of seeds: those given, or the default in the paper's data file.
pub(super) fn seeds(what: &str, given: Option<u64>) -> Result<u64, Failure> {
    given.map_or_else(|| Ok(named(what)?.0.seeds), Ok)
}

/// Makes what is asked for, and says what came out.
pub(super) fn run(
    spec: &Reproduction,
    request: Request,
    (shards, common): (&Shards, &Common),
) -> Result<(), Failure> {
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
        (done, _) => report(common, &out, done.as_ref()),
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
    report(common, out, done.as_ref())
}

fn report(common: &Common, out: &Path, done: Option<&Finished>) -> Result<(), Failure> {
    if let Some(done) = done {
        common.report(out, (table(done, terminal::stdout()), done.json()))?;
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
