//! What every job of a live run was promised, and what it took.
//!
//! The promise is made of the decisions alone, at the times at which they were made: what
//! processors of just the right speed make of them, whose foreground computes whenever it wants to
//! and whose background computes in the rest ([`dormouse_tasks::ideal`]). Nothing that a job
//! received is in it. What a move takes is promised to nobody: it is taken from the log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dormouse_batch::{Decision, Event, JobId, Move, Placement, Submission, Tier};
use dormouse_coordinator::{BatchFacts, BatchStep, LATEST, MoveFact};
use dormouse_tasks::ideal::{Change, Machine};
use dormouse_units::{Span, Time};

use super::pace::Pace;

/// How a job came through, for the report: the worst of what happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Life {
    /// In the foreground, with nobody behind it.
    Alone,
    /// In the foreground, with others in the background of some of its processors.
    Shared,
    /// In the background, for some or all of its time.
    Background,
    /// Killed in the background, and started again.
    Killed,
    /// Moved from the background to elsewhere.
    Moved,
}

/// What a job was promised and took, from its first start to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Promise {
    pub(super) job: JobId,
    /// In the trace.
    pub(super) number: u64,
    pub(super) life: Life,
    /// In emulated time; the time that its moves took is in both.
    pub(super) promised: Span,
    pub(super) took: Span,
    /// The time of that in which it was being moved.
    pub(super) moving: Span,
}

impl Promise {
    /// What it took too much, as a part of what it was promised; below zero if it was early.
    pub(crate) fn error(&self) -> f64 {
        self.took.as_secs_f64() / self.promised.as_secs_f64().max(1e-6) - 1.0
    }
}

/// Of every job that ended, in order of submission.
pub(crate) fn promises(
    steps: &[BatchStep],
    submissions: &[Submission],
    facts: &BatchFacts,
    pace: Pace,
) -> Vec<Promise> {
    let mut story = Story::new(submissions, facts, pace);
    for step in steps {
        story.see(step);
    }
    story.told()
}

/// What is known of a job that has started.
#[derive(Debug)]
struct Known {
    begun: Time,
    ended: Option<Time>,
    life: Life,
    moving_us: u64,
    place: Option<(Tier, Placement)>,
}

struct Story<'a> {
    submissions: &'a [Submission],
    pace: Pace,
    /// How much later than it was heard of each ended, real microseconds.
    late_us: &'a BTreeMap<JobId, i64>,
    /// What its moves came to, in their order.
    moves: BTreeMap<JobId, std::vec::IntoIter<&'a MoveFact>>,
    known: BTreeMap<JobId, Known>,
    changes: Vec<(Duration, Change<JobId>)>,
}

impl<'a> Story<'a> {
    fn new(submissions: &'a [Submission], facts: &'a BatchFacts, pace: Pace) -> Self {
        let mut moves = BTreeMap::<JobId, Vec<_>>::new();
        for fact in &facts.moves {
            moves.entry(fact.job).or_default().push(fact);
        }
        let moves = moves.into_iter().map(|(job, facts)| (job, facts.into_iter())).collect();
        let late_us = &facts.late_us;
        Self { submissions, pace, late_us, moves, known: BTreeMap::new(), changes: Vec::new() }
    }

    fn start(&self, key: JobId, tier: Tier, on: &Placement) -> Option<Change<JobId>> {
        let Submission { runtime, processes, usage, .. } =
            self.submissions.get(key.get() as usize)?;
        let program = self.pace.program(*runtime, *processes as usize, usage);
        let foreground = tier == Tier::Foreground;
        Some(Change::Start { key, program, on: on.to_vec(), foreground })
    }

    fn see(&mut self, step: &BatchStep) {
        for event in &step.events {
            if let Event::Finished { job, .. } = event
                && let Some(known) = self.known.get_mut(job)
            {
                (known.ended, known.place) = (Some(step.at), None);
            }
        }
        let at = self.pace.real(step.at.as_micros());
        for decision in &step.decisions {
            self.decided(step.at, at, decision);
        }
        self.note_neighbours();
    }

    fn decided(&mut self, now: Time, at: Duration, decision: &Decision) {
        let job = decision.job();
        match decision {
            Decision::Start { tier, on, .. } => {
                self.changes.extend(self.start(job, *tier, on).map(|start| (at, start)));
                let life = match tier {
                    Tier::Foreground => Life::Alone,
                    Tier::Background => Life::Background,
                };
                let place = Some((*tier, on.clone()));
                let known = Known { begun: now, ended: None, life, moving_us: 0, place };
                self.known.insert(job, known);
            }
            Decision::Promote { by: Move::Swap, .. } => {
                self.changes.push((at, Change::Promote(job)));
                if let Some(Known { place: Some((tier, _)), .. }) = self.known.get_mut(&job) {
                    *tier = Tier::Foreground;
                }
            }
            Decision::Promote { by: Move::Kill { on }, .. } => {
                self.changes.push((at, Change::Kill(job)));
                self.changes.extend(self.start(job, Tier::Foreground, on).map(|s| (at, s)));
                self.came(job, Life::Killed, on);
            }
            Decision::Promote { by: Move::Migrate { on }, .. } => {
                self.came(job, Life::Moved, on);
                // One that came to its end before it could be dumped was never moved.
                let Some(fact) = self.moves.get_mut(&job).and_then(Iterator::next) else { return };
                self.changes.push((at, Change::Stand(job)));
                let (on, anew) = (on.to_vec(), !fact.lost.is_empty());
                let took = Duration::from_micros(fact.took_us);
                self.changes.push((at + took, Change::GoOn { key: job, on, anew }));
                if let Some(known) = self.known.get_mut(&job) {
                    known.moving_us += fact.took_us;
                }
            }
        }
    }

    fn came(&mut self, job: JobId, life: Life, on: &Placement) {
        if let Some(known) = self.known.get_mut(&job) {
            known.life = known.life.max(life);
            known.place = Some((Tier::Foreground, on.clone()));
        }
    }

    /// Jobs in the foreground are not alone while others are in the background there.
    fn note_neighbours(&mut self) {
        let below = self.known.values().filter_map(|known| known.place.as_ref());
        let below: BTreeSet<u32> = below
            .filter(|(tier, _)| *tier == Tier::Background)
            .flat_map(|(_, on)| on.iter().copied())
            .collect();
        for known in self.known.values_mut() {
            let Some((Tier::Foreground, on)) = &known.place else { continue };
            if on.iter().any(|p| below.contains(p)) {
                known.life = known.life.max(Life::Shared);
            }
        }
    }

    /// When a job really ended that was heard of at `end`, which is when it was due.
    fn really(&self, job: JobId, end: Time) -> Time {
        let late_us = self.late_us.get(&job).copied().unwrap_or_default();
        let span = self.pace.emulated(Duration::from_micros(late_us.unsigned_abs()));
        match late_us {
            ..0 => end - span,
            // It was heard of when it came.
            _ if Duration::from_micros(late_us.unsigned_abs()) >= LATEST => end,
            _ => end + span,
        }
    }

    fn told(mut self) -> Vec<Promise> {
        // Those of the same time stay in their order.
        self.changes.sort_by_key(|(at, _)| *at);
        let mut machine = Machine::default();
        for (at, change) in std::mem::take(&mut self.changes) {
            machine.advance(at);
            machine.apply(change);
        }
        let ended: Vec<_> = self
            .known
            .iter()
            .filter_map(|(job, known)| Some((*job, known, known.ended?)))
            .collect();
        // A job that is later than all others took has broken its promise by any measure.
        let limit = machine.now() + machine.now() + Duration::from_secs(60);
        let promise = |(job, known, end): (JobId, &Known, Time)| {
            machine.advance_to_end(job, limit);
            let through = machine.ended(job).unwrap_or(limit);
            let begun = self.pace.real(known.begun.as_micros());
            Promise {
                job,
                number: self.submissions.get(job.get() as usize).map_or(0, |s| s.number),
                life: known.life,
                promised: self.pace.emulated(through.saturating_sub(begun)),
                took: self.really(job, end).since(known.begun),
                moving: self.pace.emulated(Duration::from_micros(known.moving_us)),
            }
        };
        ended.into_iter().map(promise).collect()
    }
}

#[cfg(test)]
mod tests {
    use dormouse_batch::{Usage, Why};
    use dormouse_units::{Attempt, Ppm};

    use super::*;

    const PACE: Pace =
        Pace { emulated_us_per_second: 10_000_000, phase: Duration::from_millis(100) };

    fn submission(number: u64, runtime: u64, usage: u32) -> Submission {
        let runtime = Span::from_secs(runtime);
        let usage = Usage::Uniform(Ppm::new(usage));
        let submitted = Time::ZERO;
        Submission { number, submitted, processes: 1, runtime, estimate: runtime, usage }
    }

    fn start(job: u32, tier: Tier, on: u32) -> Decision {
        let (job, attempt) = (JobId::new(job), Attempt::new(1));
        Decision::Start { job, attempt, tier, on: vec![on].into(), why: Why::FirstInLine }
    }

    fn promote(job: u32, attempt: u32, by: Move) -> Decision {
        let (job, attempt) = (JobId::new(job), Attempt::new(attempt));
        Decision::Promote { job, attempt, by, why: Why::FirstInLine }
    }

    fn finished(job: u32) -> Event {
        Event::Finished { job: JobId::new(job), attempt: Attempt::new(1) }
    }

    fn step(at: u64, events: Vec<Event>, decisions: Vec<Decision>) -> BatchStep {
        BatchStep { at: Time::from_secs(at), events, decisions, ..BatchStep::default() }
    }

    fn told(promises: &[Promise]) -> Vec<(u64, Life, f64, f64)> {
        let round = |span: Span| span.as_secs_f64().round();
        promises.iter().map(|p| (p.number, p.life, round(p.promised), round(p.took))).collect()
    }

    #[test]
    fn the_background_is_promised_what_the_foreground_leaves_whatever_it_got() {
        let submissions = [submission(7, 100, 400_000), submission(8, 60, 1_000_000)];
        for took in [90, 101, 300] {
            let steps = [
                step(5, vec![], vec![start(0, Tier::Foreground, 3), start(1, Tier::Background, 3)]),
                step(5 + took, vec![finished(1)], vec![]),
                step(405, vec![finished(0)], vec![]),
            ];
            let promises = promises(&steps, &submissions, &BatchFacts::default(), PACE);
            let took = Span::from_secs(took).as_secs_f64();
            let expected = [(7, Life::Shared, 100.0, 400.0), (8, Life::Background, 100.0, took)];
            assert_eq!(told(&promises), expected);
            assert!((promises[1].error() - (took / 100.0 - 1.0)).abs() < 1e-3);
        }
    }

    #[test]
    fn a_kill_loses_the_work_and_a_move_the_time_it_took() {
        let submissions = [submission(1, 100, 1_000_000), submission(2, 100, 1_000_000)];
        let on = |on: u32| vec![on].into();
        let steps = [
            step(0, vec![], vec![start(0, Tier::Background, 0), start(1, Tier::Background, 1)]),
            step(
                40,
                vec![],
                vec![
                    promote(0, 2, Move::Kill { on: on(2) }),
                    promote(1, 1, Move::Migrate { on: on(3) }),
                ],
            ),
            step(140, vec![finished(0), finished(1)], vec![]),
        ];
        let fact = MoveFact {
            job: JobId::new(1),
            done: Ppm::new(400_000),
            lost: String::new(),
            took_us: 500_000,
            dump_us: 0,
            restore_us: 0,
            bytes: 1,
        };
        let facts = BatchFacts { moves: vec![fact], ..BatchFacts::default() };
        let found = promises(&steps, &submissions, &facts, PACE);
        let expected = [(1, Life::Killed, 140.0, 140.0), (2, Life::Moved, 105.0, 140.0)];
        assert_eq!(told(&found), expected);
        assert_eq!(found[1].moving, Span::from_secs(5));
        // It ended before it could be moved.
        let found = promises(&steps, &submissions, &BatchFacts::default(), PACE);
        assert_eq!(told(&found)[1], (2, Life::Moved, 100.0, 140.0));
    }
}
