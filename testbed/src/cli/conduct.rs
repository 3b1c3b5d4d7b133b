//! Live runs: begun by `dormouse run --live` and `dormouse coordinator`, gone on with by
//! `dormouse resume`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use dormouse_coordinator::Progress;

use super::args::ResumeArgs;
use super::failure::Failure;
use super::preflight;
use super::run::{Say, end};
use crate::batch::BatchHeader;
use crate::experiment::Kind;
use crate::live::{self, Conduct, Rehearsal, conduct, rehearse};
use crate::output::{Header, Mode, Outcome, Staging, is_unfinished, read_header};

/// Why no plan can be made of an experiment that was checked before.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn cannot(error: dormouse_policies::PlanError) -> Failure {
    Failure::BadInput(error.to_string())
}

/// Conducts a run to its end and writes what came of it; without `listen`, on workers of its own;
/// without `takes`, which says how long it takes, it is gone on with.
pub(super) fn conduct_live(
    header: &Header,
    rehearsal: Rehearsal,
    takes: Option<String>,
    listen: Option<SocketAddr>,
    mut staging: Staging,
    say: Say,
) -> Result<(), Failure> {
    let (experiment, began, resume) = (&header.experiment, Instant::now(), takes.is_none());
    let scheduler = experiment.scheduler().map_err(cannot)?;
    let plan = experiment.plan().map_err(cannot)?;
    super::log::begin(listen.is_some() && !say.quiet);
    let folder = staging.path().to_path_buf();
    let progress = say.progress(experiment.setup.bag.tasks.len(), "tasks");
    // Said once the hosts hold it: what is refused has one line.
    let speedup = header.speedup.as_ref().map(ToString::to_string);
    let mut news = takes.filter(|_| !say.quiet).map(|takes| speedup.into_iter().chain([takes]));
    let conducted = conduct(
        Conduct {
            header,
            scheduler,
            rehearsal,
            listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
            local_workers: if listen.is_none() { experiment.live.workers } else { 0 },
            out: folder.clone(),
            resume,
        },
        |now| {
            for line in news.take_if(|_| now.begun).into_iter().flatten() {
                progress.suspend(|| eprintln!("dormouse: {line}"));
            }
            show(&progress, now);
        },
    );
    progress.finish_and_clear();
    let live::Outcome { record, fidelity, .. } = match conducted {
        Ok(outcome) => outcome,
        Err(error) => {
            let begun = resume || crate::output::has_steps(&folder);
            if begun && !error.is_bad_input() {
                staging.settle();
                let dir = folder.display();
                let why = format!("{error}; `dormouse resume {dir}` goes on with the run");
                return Err(Failure::Broken(why));
            }
            return Err(error.into());
        }
    };
    let broke = record.cancelled.clone();
    let wall_s = began.elapsed().as_secs_f64();
    let fidelity = Some(&fidelity);
    let outcome = Outcome { header, record: &record, plan: plan.as_ref(), fidelity, wall_s };
    end(say, &outcome, staging, broke)
}

/// Goes on with a live run whose coordinator was killed: its log is replayed, workers that are
/// still there are taken back, and tasks of the others restart from their last checkpoints.
///
/// A run of parallel jobs ends with its coordinator: its jobs share memory on one worker, so that
/// what is lost with it is all of them.
pub(crate) fn resume(args: &ResumeArgs) -> Result<(), Failure> {
    if Kind::of_run(&args.dir)? == Kind::Batch {
        let BatchHeader { command, .. } = BatchHeader::read(&args.dir)?;
        let (dir, what) = (args.dir.display(), "a run of parallel jobs can't be gone on with");
        return Err(Failure::BadInput(format!("{dir}: {what}; make it again with `{command}`")));
    }
    let header = read_header(&args.dir)?;
    check(&args.dir, &header)?;
    let experiment = &header.experiment;
    if args.listen.is_none() {
        preflight::check(&experiment.name, experiment.needs_criu())?;
    }
    let rehearsal = rehearse(experiment, experiment.scheduler().map_err(cannot)?);
    let staging = Staging::go_on(&args.dir)?;
    let say = Say { quiet: args.quiet, json: args.json };
    conduct_live(&header, rehearsal, None, args.listen, staging, say)
}

fn check(dir: &Path, header: &Header) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::BadInput(format!("{}: {why}", dir.display())));
    if header.mode == Mode::Virtual {
        return refuse("it is a run of virtual time; make it again with `dormouse run`");
    }
    if !is_unfinished(dir) {
        return refuse("this run came to its end; there is nothing left to go on with");
    }
    Ok(())
}

/// One line of how a live run goes.
fn show(bar: &indicatif::ProgressBar, now: &Progress) {
    bar.set_position(u64::from(now.completed));
    bar.set_message(if now.begun {
        format!(
            "{:.0} s, {} running on {} VMs, {} hibernations, {} migrations, ${:.4}",
            now.now.as_secs_f64(),
            now.running,
            now.vms,
            now.counts.hibernations,
            now.counts.migrations,
            now.cost.as_usd()
        )
    } else {
        format!("{} of {} workers are here", now.workers, now.workers_wanted)
    });
}
