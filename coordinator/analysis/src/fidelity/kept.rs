//! Errors of the jobs of a live run: the time that each job took, compared with the time that it was promised.

use dormouse_model::JobStartLedger;
use dormouse_units::{Span, TaskId};
use serde::Serialize;

use super::AllowedErrors;
use super::figures::{mean, note_first, seconds, total_us};
use super::promises::{JobLife, JobPromise};
use crate::{LiveFacts, cut_short};

/// CPU time in seconds by which a process may be ahead of the time that it was due. A process that
/// was further ahead makes a run unfaithful, even if the worker later stopped the process to
/// compensate. The kernel pays out a quota in slices and notices only at a tick of its clock that a
/// slice is used up: leads of some 40 ms have been measured.
const WORST_AHEAD_S: f64 = 0.1;

/// Errors of one group of jobs, such as all jobs that ran in the background.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LifeErrors {
    /// What happened to the jobs of this group, as a phrase that follows the word "jobs" (see `JobLife`).
    pub life: &'static str,
    /// Number of jobs in this group.
    pub jobs: usize,
    /// Mean error of the jobs in this group; an error is a job's extra time as a fraction of its promised time.
    pub mean_error: f64,
    /// The error furthest from zero among the jobs in this group, as a fraction of the job's promised time.
    pub worst_error: f64,
}

/// Errors of the jobs of a live run against their promised times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PromiseErrors {
    /// Number of jobs that ended; all of them are judged.
    pub jobs: usize,
    /// Mean error over all jobs; an error is a job's extra time as a fraction of its promised time.
    pub mean_error: f64,
    /// The error furthest from zero among all jobs: a job's extra time as a fraction of its promised time.
    pub worst_error: f64,
    /// Number, in the trace, of the job with the worst error; `None` without jobs.
    pub worst_job: Option<u64>,
    /// Largest error of a single job in a faithful run (`live.worst-error`), as a fraction of the job's promised time.
    pub allowed_worst_error: f64,
    /// Largest mean error of the jobs in a faithful run (`live.mean-error`), as a fraction of the promised times.
    pub allowed_mean_error: f64,
    /// Number of jobs whose error is within 1, 3 and 5 % of the promised time.
    pub within: [usize; 3],
    /// Numbers, in the trace, of the jobs whose times differ from the promised times by more than is allowed.
    pub past: Vec<u64>,
    /// Errors grouped by what happened to the jobs: undisturbed, shared, in the background, killed or moved.
    pub lives: Vec<LifeErrors>,
    /// Emulated seconds that migrations of jobs took; both the promised and the actual times of jobs contain them.
    pub moving_s: f64,
    /// Most real seconds of CPU time by which a process was ahead of what its processor owed it.
    pub ahead_s: f64,
    /// Most real seconds of CPU time by which a process was behind what its processor owed it.
    pub behind_s: f64,
    /// CPU time that all jobs were due, by their accounts, in real seconds of a core.
    pub due_s: f64,
    /// CPU time that all jobs received, by their accounts, in real seconds of a core.
    pub received_s: f64,
    /// CPU time charged to all jobs for other things than their work, by their accounts, in real seconds of a core.
    pub beside_s: f64,
    /// Total time for which the CPU quotas of jobs were lifted, by the jobs' accounts, in real seconds.
    pub lifted_s: f64,
    /// Number of the job with the process that was furthest ahead of its due, and that lead in seconds of CPU time;
    /// `None` if no lead was too large.
    #[serde(skip)]
    beyond: Option<(u64, f64)>,
    /// One sentence for each checkpoint for which a job was stopped too briefly.
    #[serde(skip)]
    short: Vec<String>,
}

impl PromiseErrors {
    /// Computes the errors of a run's jobs. `hold` is the emulated time for which the experiment stops a job for a
    /// checkpoint; if the worker reports a longer time, the reported time counts.
    #[must_use]
    pub fn from_promises(
        promises: &[JobPromise],
        facts: &LiveFacts,
        allowed: &AllowedErrors,
        hold: Span,
    ) -> Self {
        let hold_us = u64::try_from(allowed.speedup.to_real(hold).as_micros()).unwrap_or(u64::MAX);
        let ledgers = &facts.jobs.ledgers;
        let worst = furthest_promise(promises.iter());
        let errors = || promises.iter().map(JobPromise::error);
        let within = [0.01, 0.03, 0.05].map(|part| errors().filter(|e| e.abs() <= part).count());
        let past = promises.iter().filter(|p| p.error().abs() > allowed.worst_error);
        let number = |of: TaskId| promises.iter().find(|p| p.job == of).map(|p| p.number);
        let beyond = ledgers.iter().filter_map(|(job, ledger)| {
            let cpu_s = seconds(ledger.ahead_us) * facts.share.as_f64();
            (cpu_s > WORST_AHEAD_S).then_some((number(*job)?, cpu_s))
        });
        let short = facts.checkpoints.iter().filter_map(|of| {
            let how = cut_short(of.real_held_us, of.real_owed_us.max(hold_us))?;
            Some(format!("job {} {how}", number(of.task)?))
        });
        let sum = |of: fn(&JobStartLedger) -> u64| {
            seconds(total_us(ledgers.iter().map(|(_, ledger)| of(ledger))))
        };
        let most = |of: fn(&JobStartLedger) -> u64| {
            seconds(ledgers.iter().map(|(_, ledger)| of(ledger)).max().unwrap_or(0))
        };
        Self {
            jobs: promises.len(),
            allowed_worst_error: allowed.worst_error,
            allowed_mean_error: allowed.mean_error,
            mean_error: mean(errors()),
            worst_error: worst.map_or(0.0, JobPromise::error),
            worst_job: worst.map(|p| p.number),
            within,
            past: past.map(|p| p.number).collect(),
            lives: errors_by_life(promises),
            moving_s: promises.iter().fold(0.0, |sum, p| sum + p.moving.as_secs_f64()),
            ahead_s: most(|ledger| ledger.ahead_us),
            behind_s: most(|ledger| ledger.behind_us),
            due_s: sum(|ledger| ledger.due_us),
            received_s: sum(|ledger| ledger.received_us),
            beside_s: sum(|ledger| ledger.beside_us),
            lifted_s: sum(|ledger| ledger.lifted_us),
            beyond: beyond.max_by(|a, b| a.1.total_cmp(&b.1)),
            short: short.collect(),
        }
    }

    /// The reasons why the run is not faithful, one sentence each; empty if the run is faithful.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(worst) = self.worst_job.filter(|_| !self.past.is_empty()) {
            let jobs: Vec<_> = self.past.iter().take(12).map(u64::to_string).collect();
            let more = if self.past.len() > jobs.len() { ", …" } else { "" };
            notes.push(format!(
                "{} of {} jobs were more than {:.0} % off the time that they were promised, at \
                 worst job {worst} by {:+.1} %: jobs {}{more}",
                self.past.len(),
                self.jobs,
                self.allowed_worst_error * 100.0,
                self.worst_error * 100.0,
                jobs.join(", ")
            ));
        }
        if self.mean_error.abs() > self.allowed_mean_error {
            let way = if self.mean_error > 0.0 { "more" } else { "less" };
            notes.push(format!(
                "jobs took {:.2} % {way} than they were promised on average; it may be {:.1} %",
                self.mean_error.abs() * 100.0,
                self.allowed_mean_error * 100.0
            ));
        }
        if let Some((job, ahead_s)) = self.beyond {
            notes.push(format!(
                "a process of job {job} had {:.0} ms of CPU time more than its processor promises, \
                 before it was stopped for that; it may be {:.0} ms: its quota did not hold it",
                ahead_s * 1e3,
                WORST_AHEAD_S * 1e3
            ));
        }
        note_first(&self.short, "checkpoints", &mut notes);
        notes
    }

    /// Sentences on the errors, for the report.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let percent = |part: f64| format!("{:+.2} %", part * 100.0);
        let [one, three, five] = self.within;
        let mut sentences = vec![format!(
            "Every job is promised a time: what processors of just the right speed make of the same \
             decisions, with the foreground computing whenever it wants to and the background in \
             the rest. All {} jobs that ended are judged: {one} within 1 %, {three} within 3 %, \
             {five} within 5 %; the mean is {}, the worst {}{}. For the time that a move takes \
             nothing is promised ({:.0} s in all, counted on both sides).",
            self.jobs,
            percent(self.mean_error),
            percent(self.worst_error),
            self.worst_job.map(|job| format!(" (job {job})")).unwrap_or_default(),
            self.moving_s
        )];
        for of in &self.lives {
            sentences.push(format!(
                "{} jobs {}: mean {}, worst {}.",
                of.jobs,
                of.life,
                percent(of.mean_error),
                percent(of.worst_error)
            ));
        }
        sentences.push(format!(
            "On real cores the jobs were due {:.2} s of CPU time and computed for {:.2} s; {:.2} s \
             were charged beside that, for births, dumps, restores and ends, and quotas were lifted \
             for {:.2} s. A process was at most {:.3} s of real time ahead of its processor and \
             {:.3} s behind.",
            self.due_s,
            self.received_s,
            self.beside_s,
            self.lifted_s,
            self.ahead_s,
            self.behind_s
        ));
        sentences
    }

    /// One line on the errors, for the table.
    pub(crate) fn line(&self) -> String {
        format!(
            "jobs take {:+.2} % of their promise on average, {:+.1} % at worst",
            self.mean_error * 100.0,
            self.worst_error * 100.0
        )
    }
}

fn errors_by_life(promises: &[JobPromise]) -> Vec<LifeErrors> {
    let all = [
        (JobLife::Alone, "alone in the foreground"),
        (JobLife::Shared, "in the foreground of others"),
        (JobLife::Background, "in the background for some time"),
        (JobLife::Killed, "killed and started again"),
        (JobLife::Moved, "moved"),
    ];
    let of = |(life, words): (JobLife, &'static str)| {
        let these = || promises.iter().filter(move |p| p.life == life);
        let worst = furthest_promise(these())?;
        Some(LifeErrors {
            life: words,
            jobs: these().count(),
            mean_error: mean(these().map(JobPromise::error)),
            worst_error: worst.error(),
        })
    };
    all.into_iter().filter_map(of).collect()
}

fn furthest_promise<'a>(of: impl Iterator<Item = &'a JobPromise>) -> Option<&'a JobPromise> {
    of.max_by(|a, b| a.error().abs().total_cmp(&b.error().abs()))
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Bytes, CheckpointSeq, Ppm, Span, Speedup};

    use super::*;
    use crate::CheckpointCost;

    const ALLOWED: AllowedErrors =
        AllowedErrors { worst_error: 0.05, mean_error: 0.005, speedup: Speedup::times_real(30) };

    fn promise(job: u32, life: JobLife, promised: u64, took: u64) -> JobPromise {
        let [promised, took] = [promised, took].map(Span::from_secs);
        let (job, number) = (TaskId::new(job), u64::from(job) + 1);
        JobPromise { job, number, life, promised, took, moving: Span::ZERO }
    }

    fn ahead(job: u32, ms: u64) -> LiveFacts {
        let ledger = JobStartLedger { ahead_us: ms * 1000, ..JobStartLedger::default() };
        let mut facts = LiveFacts { share: Ppm::new(100_000), ..LiveFacts::default() };
        facts.jobs.ledgers = vec![(TaskId::new(job), ledger)];
        facts
    }

    #[test]
    fn jobs_on_time_are_faithful_and_told_by_their_lives() {
        let promises = [
            promise(0, JobLife::Alone, 1000, 1000),
            promise(1, JobLife::Background, 1000, 1004),
            promise(2, JobLife::Background, 1000, 986),
        ];
        let kept = PromiseErrors::from_promises(&promises, &ahead(0, 300), &ALLOWED, Span::ZERO);
        assert_eq!(kept.notes(), Vec::<String>::new());
        assert_eq!((kept.jobs, kept.within, kept.worst_job), (3, [2, 3, 3], Some(3)));
        let lives: Vec<_> = kept.lives.iter().map(|of| (of.jobs, of.life)).collect();
        assert_eq!(lives, [(1, "alone in the foreground"), (2, "in the background for some time")]);
        assert!((kept.mean_error + 0.01 / 3.0).abs() < 1e-9, "{kept:?}");
    }

    #[test]
    fn ledgers_of_a_hostile_log_are_summed_up() {
        let most = u64::MAX;
        let ledger = JobStartLedger {
            due_us: most,
            received_us: most,
            beside_us: most,
            lifted_us: most,
            ..JobStartLedger::default()
        };
        let mut facts = LiveFacts::default();
        facts.jobs.ledgers = vec![(TaskId::new(0), ledger), (TaskId::new(1), ledger)];
        let kept = PromiseErrors::from_promises(&[], &facts, &ALLOWED, Span::ZERO);
        let sums = [kept.due_s, kept.received_s, kept.beside_s, kept.lifted_s];
        assert!(sums.iter().all(|sum| (sum / seconds(most) - 1.0).abs() < 1e-9), "{sums:?}");
    }

    #[test]
    fn one_job_past_its_time_is_named() {
        let promises =
            [promise(0, JobLife::Moved, 1000, 940), promise(1, JobLife::Alone, 1000, 1060)];
        let notes =
            PromiseErrors::from_promises(&promises, &LiveFacts::default(), &ALLOWED, Span::ZERO)
                .notes();
        assert!(
            matches!(&notes[..], [one] if one.contains("2 of 2") && one.ends_with("jobs 1, 2"))
        );
    }

    #[test]
    fn many_jobs_that_are_a_little_off_are_biased() {
        for (took, said) in [(1008, "0.80 % more"), (992, "0.80 % less")] {
            let promises = [0, 1, 2].map(|job| promise(job, JobLife::Shared, 1000, took));
            let notes = PromiseErrors::from_promises(
                &promises,
                &LiveFacts::default(),
                &ALLOWED,
                Span::ZERO,
            )
            .notes();
            assert!(matches!(&notes[..], [one] if one.contains(said)), "{notes:?}");
        }
    }

    #[test]
    fn a_process_that_ran_free_is_found_though_it_paid_for_it() {
        let promises = [promise(0, JobLife::Alone, 1000, 1000)];
        // On a tenth of a core.
        for (ms, notes) in [(990, 0), (1_010, 1)] {
            let found =
                PromiseErrors::from_promises(&promises, &ahead(0, ms), &ALLOWED, Span::ZERO)
                    .notes();
            assert_eq!(found.len(), notes, "{found:?}");
        }
    }

    #[test]
    fn a_worker_that_owes_less_than_the_experiment_says_is_not_believed() {
        let promises = [promise(0, JobLife::Alone, 1000, 1000)];
        let allowed = AllowedErrors { speedup: Speedup::times_real(20), ..ALLOWED };
        let notes = |held_ms: u64, owed_ms: u64| {
            let cost = CheckpointCost {
                task: TaskId::new(0),
                checkpoint: CheckpointSeq::new(1),
                bytes: Bytes::ZERO,
                real_held_us: held_ms * 1000,
                real_dump_us: 0,
                real_owed_us: owed_ms * 1000,
                real_criu_us: 0,
            };
            let facts = LiveFacts { checkpoints: vec![cost], ..LiveFacts::default() };
            PromiseErrors::from_promises(&promises, &facts, &allowed, Span::from_secs(10)).notes()
        };
        assert_eq!(notes(500, 500), Vec::<String>::new());
        for (held, owed) in [(300, 500), (0, 0), (100, 100)] {
            let found = notes(held, owed);
            let words = format!("job 1 was stopped for {held} ms instead of 500 ms");
            assert!(found.iter().any(|note| note.contains(&words)), "{words}: {found:?}");
        }
    }
}
