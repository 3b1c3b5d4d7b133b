//! Promised and taken times of every job of a live run.
//!
//! A promise is computed from the decisions alone, at the times at which they were made: the time
//! that the job would take on ideal processors, on which a foreground job computes whenever it
//! wants to and a background job in the remaining time ([`dormouse_vm::ideal`]). It depends neither
//! on the CPU time that the job received nor on credits that a worker reported: a burstable
//! machine's credits are computed from its launch on. The time of a migration is not promised, but
//! taken from the log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dormouse_model::{
    Decision, Effect, Event, MAX_REPORT_DELAY, Notice, PromotionMethod, Report, Step, Submission,
};
use dormouse_units::{Cpus, Ppm, Seats, Span, TaskId, Tier, Time};
use dormouse_vm::ideal::{IdealMachine, MachineChange};

use super::pace::RunPace;
use super::submitted::SubmittedJobs;
use crate::{JobFacts, carried_out};

/// The worst thing that happened to a job, for the report; later variants are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobLife {
    /// The job ran in the foreground, with no job in the background of its processors.
    Alone,
    /// The job ran in the foreground, with other jobs in the background of some of its processors.
    Shared,
    /// The job ran in the background for some or all of its time.
    Background,
    /// The job was killed in the background, or lost with its machine, and was started again.
    Killed,
    /// The job was moved from the background to other processors (a migration).
    Moved,
}

/// Promised and actual time of a job, from its first start to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobPromise {
    /// Id of the job in the run.
    pub job: TaskId,
    /// Number of the job in the trace.
    pub number: u64,
    /// The worst thing that happened to the job.
    pub life: JobLife,
    /// Promised emulated time, including the time that the job's migrations took.
    pub promised: Span,
    /// Emulated time from the job's first start to its end, including the time that its migrations took.
    pub took: Span,
    /// Part of `took` in which the job was being migrated.
    pub moving: Span,
}

impl JobPromise {
    /// Extra time as a part of the promised time; negative if the job was early.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.took.as_secs_f64() / self.promised.as_secs_f64().max(1e-6) - 1.0
    }
}

/// The promises to all jobs that ended, in order of submission, computed on `machine`.
#[must_use]
pub fn promises(
    steps: &[Step],
    submissions: SubmittedJobs<'_>,
    facts: &JobFacts,
    pace: RunPace,
    machine: IdealMachine<TaskId>,
) -> Vec<JobPromise> {
    let mut story = PromiseBuilder::new(submissions, facts, pace);
    for step in steps {
        if step.effects.iter().any(|effect| matches!(effect, Effect::VmLaunched { .. })) {
            story.changes.push((pace.real(step.at), MachineChange::Made));
        }
        match &step.event {
            Event::InstantOver => story.add_instant(step),
            Event::Machine {
                report: Report::TaskMoved { task, lost, real_took_us, .. }, ..
            } if !step.effects.contains(&Effect::Stale) => {
                story.add_move(*task, !lost.is_empty(), *real_took_us);
            }
            Event::Machine {
                report: Report::CheckpointTaken { task, real_owed_us, held_at, .. },
                ..
            } if !step.effects.contains(&Effect::Stale) => {
                story.add_checkpoint(step.at, *task, *real_owed_us, *held_at);
            }
            Event::Machine { report: Report::TaskStarted { task, done, .. }, .. }
                if !step.effects.contains(&Effect::Stale) =>
            {
                story.correct_work(step.at, *task, *done);
            }
            _ => {}
        }
    }
    story.into_promises(machine)
}

/// A job that has started.
#[derive(Debug)]
struct StartedJob {
    begun: Time,
    ended: Option<Time>,
    life: JobLife,
    moving_us: u64,
    place: Option<(Tier, Cpus)>,
    /// Real time at which the job was commanded to migrate; `None` once its host has reported the migration.
    leaves: Option<Duration>,
    /// Part of the job's work that was already done when the job was last started.
    began_with: Ppm,
    /// Index, in the list of the machine's changes, of the stop for the job's last checkpoint.
    last_hold: Option<usize>,
}

struct PromiseBuilder<'a> {
    submissions: SubmittedJobs<'a>,
    pace: RunPace,
    /// Real microseconds by which each job ended later than reported.
    late_us: &'a BTreeMap<TaskId, i64>,
    known: BTreeMap<TaskId, StartedJob>,
    changes: Vec<(Duration, MachineChange<TaskId>)>,
}

impl<'a> PromiseBuilder<'a> {
    fn new(submissions: SubmittedJobs<'a>, facts: &'a JobFacts, pace: RunPace) -> Self {
        let late_us = &facts.late_us;
        Self { submissions, pace, late_us, known: BTreeMap::new(), changes: Vec::new() }
    }

    fn start_change(&self, key: TaskId, tier: Tier, on: &Cpus) -> Option<MachineChange<TaskId>> {
        let Submission { runtime, processes, usage, .. } = self.submissions.get(key)?;
        let program = self.pace.program(*runtime, *processes as usize, usage);
        let foreground = tier == Tier::Foreground;
        Some(MachineChange::Start { key, program, on: on.to_vec(), foreground })
    }

    fn add_instant(&mut self, step: &Step) {
        let at = self.pace.real(step.at);
        for notice in &step.notices {
            match notice {
                Notice::TaskFinished { task, .. } => {
                    if let Some(known) = self.known.get_mut(task) {
                        (known.ended, known.place) = (Some(step.at), None);
                        // A checkpoint whose report took long to arrive was taken earlier.
                        if let Some(last) = known.last_hold
                            && let Some((begun, MachineChange::Hold(_, owed))) =
                                self.changes.get_mut(last)
                        {
                            *begun = (*begun).min(at.saturating_sub(*owed));
                        }
                    }
                }
                Notice::TaskFailed { task, .. } => self.remove_jobs(at, |job| job == *task),
                // All jobs are on one machine.
                Notice::VmLost { .. } => self.remove_jobs(at, |_| true),
                _ => {}
            }
        }
        for decision in carried_out(step) {
            self.add_decision(step, at, decision);
        }
        self.note_neighbours();
    }

    /// Removes the jobs that `which` selects from their processors; these jobs have not ended.
    fn remove_jobs(&mut self, at: Duration, which: impl Fn(TaskId) -> bool) {
        let there =
            self.known.iter_mut().filter(|(job, known)| known.place.is_some() && which(**job));
        for (job, known) in there {
            (known.place, known.leaves) = (None, None);
            self.changes.push((at, MachineChange::Kill(*job)));
        }
    }

    fn add_decision(&mut self, step: &Step, at: Duration, decision: &Decision) {
        let now = step.at;
        match decision {
            Decision::Start { task, on: Seats { tier, cpus, .. }, .. } => {
                self.changes.extend(self.start_change(*task, *tier, cpus).map(|start| (at, start)));
                self.add_start(now, *task, *tier, cpus);
                self.goes_on_from(step, at, *task);
            }
            Decision::Promote { task, by, .. } => {
                self.add_promotion(at, *task, by);
                if matches!(by, PromotionMethod::Kill { .. }) {
                    self.goes_on_from(step, at, *task);
                }
            }
            _ => {}
        }
    }

    /// Sets the work done of a job that starts from a checkpoint to the work that the checkpoint holds.
    fn goes_on_from(&mut self, step: &Step, at: Duration, job: TaskId) {
        let from = step.effects.iter().find_map(|effect| match effect {
            Effect::TaskSent { task, from: Some((_, done)), .. } if *task == job => Some(*done),
            _ => None,
        });
        let Some(known) = self.known.get_mut(&job) else { return };
        known.began_with = from.unwrap_or_default();
        if known.began_with > Ppm::ZERO {
            self.changes.push((at, MachineChange::HasDone(job, known.began_with.get())));
        }
    }

    /// Corrects the work done of a job that began with a different checkpoint than its command
    /// named, because the named checkpoint was damaged.
    fn correct_work(&mut self, at: Time, job: TaskId, done: Ppm) {
        let at = self.pace.real(at);
        if self.known.get(&job).is_some_and(|known| known.began_with != done) {
            self.changes.push((at, MachineChange::HasDone(job, done.get())));
        }
    }

    /// Adds the time for which the job was stopped for a checkpoint. The stop begins at the time
    /// that the job's worker states, but not later than the report; if the worker states no time,
    /// just before the report.
    fn add_checkpoint(&mut self, at: Time, job: TaskId, owed_us: u64, held_at: Option<Time>) {
        let owed = Duration::from_micros(owed_us);
        let pace = self.pace;
        if let Some(known) = self.known.get_mut(&job).filter(|known| known.place.is_some()) {
            known.last_hold = Some(self.changes.len());
            let since = match held_at {
                Some(held_at) => pace.real(held_at.max(known.begun).min(at)),
                None => pace.real(at).saturating_sub(owed),
            };
            self.changes.push((since, MachineChange::Hold(job, owed)));
        }
    }

    fn add_start(&mut self, now: Time, job: TaskId, tier: Tier, on: &Cpus) {
        let place = Some((tier, on.clone()));
        if let Some(known) = self.known.get_mut(&job) {
            (known.place, known.life) = (place, known.life.max(JobLife::Killed));
            return;
        }
        let life = match tier {
            Tier::Foreground => JobLife::Alone,
            Tier::Background => JobLife::Background,
        };
        let known = StartedJob {
            begun: now,
            ended: None,
            life,
            moving_us: 0,
            place,
            leaves: None,
            began_with: Ppm::ZERO,
            last_hold: None,
        };
        self.known.insert(job, known);
    }

    fn add_promotion(&mut self, at: Duration, job: TaskId, by: &PromotionMethod) {
        match by {
            PromotionMethod::Swap => {
                self.changes.push((at, MachineChange::Promote(job)));
                if let Some(StartedJob { place: Some((tier, _)), .. }) = self.known.get_mut(&job) {
                    *tier = Tier::Foreground;
                }
            }
            PromotionMethod::Kill { on } => {
                self.changes.push((at, MachineChange::Kill(job)));
                self.changes.extend(self.start_change(job, Tier::Foreground, on).map(|s| (at, s)));
                self.move_to_foreground(job, JobLife::Killed, on);
            }
            PromotionMethod::Migrate { on } => {
                self.move_to_foreground(job, JobLife::Moved, on);
                if let Some(known) = self.known.get_mut(&job) {
                    known.leaves = Some(at);
                }
            }
        }
    }

    /// Adds a reported migration. A job that ends before CRIU can dump it is not migrated.
    fn add_move(&mut self, job: TaskId, anew: bool, took_us: u64) {
        let Some(known) = self.known.get_mut(&job) else { return };
        let (Some(at), Some((_, on))) = (known.leaves.take(), &known.place) else { return };
        known.moving_us = known.moving_us.saturating_add(took_us);
        let (on, back) = (on.to_vec(), at + Duration::from_micros(took_us));
        self.changes.push((at, MachineChange::Stand(job)));
        self.changes.push((back, MachineChange::GoOn { key: job, on, anew }));
    }

    fn move_to_foreground(&mut self, job: TaskId, life: JobLife, on: &Cpus) {
        if let Some(known) = self.known.get_mut(&job) {
            known.life = known.life.max(life);
            known.place = Some((Tier::Foreground, on.clone()));
        }
    }

    /// Marks foreground jobs that share a processor with a background job.
    fn note_neighbours(&mut self) {
        let below = self.known.values().filter_map(|known| known.place.as_ref());
        let below: BTreeSet<u32> = below
            .filter(|(tier, _)| *tier == Tier::Background)
            .flat_map(|(_, on)| on.iter().copied())
            .collect();
        for known in self.known.values_mut() {
            let Some((Tier::Foreground, on)) = &known.place else { continue };
            if on.iter().any(|p| below.contains(p)) {
                known.life = known.life.max(JobLife::Shared);
            }
        }
    }

    /// The time at which a job really ended; `end`, the time in the log, is when the job was due to end.
    fn real_end(&self, job: TaskId, end: Time) -> Time {
        let late_us = self.late_us.get(&job).copied().unwrap_or_default();
        let span = self.pace.speedup.to_emulated(Duration::from_micros(late_us.unsigned_abs()));
        match late_us {
            ..0 => end - span,
            // A report this late was logged when it came.
            _ if Duration::from_micros(late_us.unsigned_abs()) >= MAX_REPORT_DELAY => end,
            _ => end + span,
        }
    }

    fn into_promises(mut self, mut machine: IdealMachine<TaskId>) -> Vec<JobPromise> {
        // A stable sort: changes of the same time stay in order.
        self.changes.sort_by_key(|(at, _)| *at);
        for (at, change) in std::mem::take(&mut self.changes) {
            // The worker's reference logs the same, so that the two can be compared.
            tracing::trace!(?at, ?change, "the promise hears");
            machine.advance_to(at);
            machine.apply_change(change);
        }
        let ended: Vec<_> = self
            .known
            .iter()
            .filter_map(|(job, known)| Some((*job, known, known.ended?)))
            .collect();
        // A job that takes longer than this has broken its promise by any measure.
        let limit = machine.now() + machine.now() + Duration::from_secs(60);
        let promise = |(job, known, end): (TaskId, &StartedJob, Time)| {
            machine.advance_to_end(job, limit);
            let through = machine.ended_at(job).unwrap_or(limit);
            let begun = self.pace.real(known.begun);
            JobPromise {
                job,
                number: self.submissions.get(job).map_or(0, |s| s.number),
                life: known.life,
                promised: self.pace.speedup.to_emulated(through.saturating_sub(begun)),
                took: self.real_end(job, end).since(known.begun),
                moving: self.pace.speedup.to_emulated(Duration::from_micros(known.moving_us)),
            }
        };
        ended.into_iter().map(promise).collect()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::StartReason;
    use dormouse_units::{Attempt, Bytes, CheckpointSeq, HostId, Speedup, Usage, VmId};

    use super::super::testing::{instant, start};
    use super::*;

    const PACE: RunPace =
        RunPace { speedup: Speedup::times_real(10), phase: Duration::from_millis(100) };

    fn submission(number: u64, runtime: u64, usage: u32) -> Submission {
        let runtime = Span::from_secs(runtime);
        let usage = Usage::Uniform(Ppm::new(usage));
        let (submitted, memory) = (Time::ZERO, Bytes::ZERO);
        let estimate = runtime;
        Submission {
            number,
            submitted,
            processes: 1,
            runtime,
            estimate,
            usage,
            memory,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        }
    }

    fn promote(job: u32, by: PromotionMethod) -> Decision {
        let (task, vm, reason) = (TaskId::new(job), VmId::new(0), StartReason::FirstInLine);
        Decision::Promote { task, vm, by, reason }
    }

    fn finished(job: u32) -> Notice {
        Notice::TaskFinished { task: TaskId::new(job), vm: VmId::new(0) }
    }

    fn promises_of(steps: &[Step], submissions: &[Submission]) -> Vec<JobPromise> {
        let (of, facts) = (SubmittedJobs::alone(submissions), JobFacts::default());
        promises(steps, of, &facts, PACE, IdealMachine::default())
    }

    fn told(promises: &[JobPromise]) -> Vec<(u64, JobLife, f64, f64)> {
        let round = |span: Span| span.as_secs_f64().round();
        promises.iter().map(|p| (p.number, p.life, round(p.promised), round(p.took))).collect()
    }

    #[test]
    fn the_background_is_promised_what_the_foreground_leaves_whatever_it_got() {
        let submissions = [submission(7, 100, 400_000), submission(8, 60, 1_000_000)];
        for took in [90, 101, 300] {
            let steps = [
                instant(
                    5,
                    vec![],
                    vec![start(0, Tier::Foreground, &[3]), start(1, Tier::Background, &[3])],
                ),
                instant(5 + took, vec![finished(1)], vec![]),
                instant(405, vec![finished(0)], vec![]),
            ];
            let promises = promises_of(&steps, &submissions);
            let took = Span::from_secs(took).as_secs_f64();
            let expected =
                [(7, JobLife::Shared, 100.0, 400.0), (8, JobLife::Background, 100.0, took)];
            assert_eq!(told(&promises), expected);
            assert!((promises[1].error() - (took / 100.0 - 1.0)).abs() < 1e-3);
        }
    }

    #[test]
    fn a_kill_loses_the_work_and_a_move_the_time_it_took() {
        let submissions = [submission(1, 100, 1_000_000), submission(2, 100, 1_000_000)];
        let on = |on: u32| vec![on].into();
        let starts = vec![start(0, Tier::Background, &[0]), start(1, Tier::Background, &[1])];
        let promotions = vec![
            promote(0, PromotionMethod::Kill { on: on(2) }),
            promote(1, PromotionMethod::Migrate { on: on(3) }),
        ];
        let steps = [
            instant(0, vec![], starts),
            instant(40, vec![], promotions),
            instant(140, vec![finished(0), finished(1)], vec![]),
        ];
        let report = Report::TaskMoved {
            vm: VmId::new(0),
            task: TaskId::new(1),
            attempt: Attempt::new(1),
            done: Ppm::new(400_000),
            lost: String::new(),
            real_took_us: 500_000,
            real_dump_us: 0,
            real_restore_us: 0,
            bytes: Bytes::new(1),
        };
        let event = Event::Machine { host: HostId::new(0), number: 3, report };
        let mut reported = steps.to_vec();
        reported.insert(2, Step { event, ..instant(45, vec![], vec![]) });
        let found = promises_of(&reported, &submissions);
        let expected = [(1, JobLife::Killed, 140.0, 140.0), (2, JobLife::Moved, 105.0, 140.0)];
        assert_eq!(told(&found), expected);
        assert_eq!(found[1].moving, Span::from_secs(5));
        // It ended before it could be moved.
        let found = promises_of(&steps, &submissions);
        assert_eq!(told(&found)[1], (2, JobLife::Moved, 100.0, 140.0));
    }

    /// A checkpoint costs a background job no time while a foreground job uses the processor anyway.
    #[test]
    fn a_checkpoint_is_reckoned_from_when_its_worker_says_but_not_after_its_report() {
        let submissions = [submission(1, 100, 500_000), submission(2, 10, 600_000)];
        let promised = |held_at: Option<u64>, reported: u64| {
            let [held_at, reported] =
                [held_at, Some(reported)].map(|ms| ms.map(|ms| Time::from_micros(ms * 1000)));
            let report = Report::CheckpointTaken {
                vm: VmId::new(0),
                task: TaskId::new(1),
                attempt: Attempt::new(1),
                checkpoint: CheckpointSeq::new(1),
                done: Ppm::new(300_000),
                bytes: Bytes::new(1),
                real_held_us: 10_000,
                real_dump_us: 5_000,
                real_owed_us: 10_000,
                real_criu_us: 0,
                held_at,
            };
            let (host, number) = (HostId::new(0), 1);
            let event = Event::Machine { host, number, report };
            let starts = vec![start(0, Tier::Foreground, &[0]), start(1, Tier::Background, &[0])];
            let steps = [
                instant(0, vec![], starts),
                Step { event, at: reported.unwrap_or_default(), ..instant(0, vec![], vec![]) },
                instant(50, vec![finished(1)], vec![]),
            ];
            let found = promises_of(&steps, &submissions);
            found[0].promised.as_micros() / 10_000
        };
        assert_eq!((promised(None, 19_300), promised(None, 19_800)), (2_000, 2_010));
        assert_eq!(promised(Some(19_200), 19_800), 2_000);
        assert_eq!(promised(Some(30_000), 19_800), promised(Some(19_800), 19_800));
    }

    /// The promised time of a job that is started again counts from its first start, including the
    /// time for which the job had no machine.
    #[test]
    fn a_lost_machine_loses_the_work_of_its_jobs() {
        let submissions = [submission(1, 100, 1_000_000), submission(2, 50, 1_000_000)];
        let steps = [
            instant(0, vec![], vec![start(0, Tier::Foreground, &[0])]),
            instant(30, vec![Notice::VmLost { vm: VmId::new(0) }], vec![]),
            instant(35, vec![], vec![start(0, Tier::Foreground, &[1])]),
            instant(40, vec![], vec![start(1, Tier::Foreground, &[0])]),
            instant(90, vec![finished(1)], vec![]),
            instant(135, vec![finished(0)], vec![]),
        ];
        let found = promises_of(&steps, &submissions);
        assert_eq!(
            told(&found),
            [(1, JobLife::Killed, 135.0, 135.0), (2, JobLife::Alone, 50.0, 50.0)]
        );
    }
}
