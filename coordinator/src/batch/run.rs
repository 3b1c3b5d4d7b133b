//! One run of parallel jobs: what happens in, steps and commands out. Pure.

use std::collections::BTreeMap;

use dormouse_batch::{
    Config, Decision, Event, Job, JobId, Move, Placement, Refusal, Scheduler, Submission, Tier,
    Usage, UsageInformation,
};
use dormouse_units::{Attempt, Time};
use serde::{Deserialize, Serialize};

use super::MachineReport;

/// One event and all that came of it: a line of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchStep {
    /// When, in emulated time.
    pub at: Time,
    /// What the scheduler heard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// What it decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// What the machine reported, whether the scheduler heard of it or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<MachineReport>,
    /// Why the run was ended with jobs left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<String>,
}

/// What the machine is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Start { job: JobId, attempt: Attempt, tier: Tier, on: Placement },
    Promote { job: JobId, attempt: Attempt },
    Move { job: JobId, attempt: Attempt, on: Placement },
    Kill { job: JobId, attempt: Attempt },
}

/// A run under way.
#[derive(Debug)]
pub(crate) struct BatchRun {
    scheduler: Scheduler,
    information: UsageInformation,
    /// In order of submission; a job's id is its place here.
    submissions: Vec<Submission>,
    /// The first that has not been submitted.
    next: usize,
    /// The current start of every job that has one and has not ended.
    current: BTreeMap<JobId, Attempt>,
    ended: usize,
}

impl BatchRun {
    pub(crate) fn new(
        config: Config,
        information: UsageInformation,
        submissions: Vec<Submission>,
    ) -> Self {
        Self {
            scheduler: Scheduler::new(config),
            information,
            submissions,
            next: 0,
            current: BTreeMap::new(),
            ended: 0,
        }
    }

    /// When the next job is submitted.
    pub(crate) fn next_submission(&self) -> Option<Time> {
        self.submissions.get(self.next).map(|s| s.submitted)
    }

    /// A job as its user described it.
    pub(crate) fn submission(&self, job: JobId) -> Option<&Submission> {
        self.submissions.get(job.get() as usize)
    }

    pub(crate) fn jobs(&self) -> usize {
        self.submissions.len()
    }

    pub(crate) const fn ended(&self) -> usize {
        self.ended
    }

    pub(crate) fn running(&self) -> usize {
        self.current.len()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended == self.submissions.len()
    }

    /// Takes in what the machine reports of this instant, and submits all jobs that are due: the
    /// scheduler hears of all of it at once. A report of a start that is not the current one any
    /// more, because the job was killed when it was sent, changes nothing.
    ///
    /// # Errors
    ///
    /// A job can't be taken.
    pub(crate) fn hear(
        &mut self,
        now: Time,
        mut reports: Vec<MachineReport>,
    ) -> Result<(Vec<BatchStep>, Vec<Order>), Refusal> {
        let mut events: Vec<_> = reports.iter().filter_map(|r| self.event_of(r)).collect();
        events.extend(self.submitted(now));
        let last = reports.pop();
        let alone = |report| BatchStep { at: now, report: Some(report), ..BatchStep::default() };
        let mut steps: Vec<_> = reports.into_iter().map(alone).collect();
        let (step, orders) = self.step(now, events, last)?;
        steps.push(step);
        Ok((steps, orders))
    }

    /// What the scheduler hears of a report.
    fn event_of(&mut self, report: &MachineReport) -> Option<Event> {
        let &MachineReport::Finished { job, attempt, .. } = report else { return None };
        if self.current.get(&job) != Some(&attempt) {
            return None;
        }
        self.current.remove(&job);
        self.ended += 1;
        Some(Event::Finished { job, attempt })
    }

    /// The jobs that are due.
    fn submitted(&mut self, now: Time) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(due) = self.submissions.get(self.next).filter(|s| s.submitted <= now) {
            let id = JobId::new(u32::try_from(self.next).unwrap_or(u32::MAX));
            let usage = match self.information {
                UsageInformation::Absent(taken_for) if due.processes > 1 => {
                    Usage::Uniform(taken_for)
                }
                UsageInformation::Absent(_) | UsageInformation::Exact => due.usage.clone(),
            };
            let &Submission { number, processes, estimate, .. } = due;
            events.push(Event::Submitted(Job { id, number, processes, estimate, usage }));
            self.next += 1;
        }
        events
    }

    fn step(
        &mut self,
        at: Time,
        events: Vec<Event>,
        report: Option<MachineReport>,
    ) -> Result<(BatchStep, Vec<Order>), Refusal> {
        let mut decisions = Vec::new();
        if !events.is_empty() {
            self.scheduler.handle(at, events.iter().cloned(), &mut decisions)?;
        }
        let orders = decisions.iter().flat_map(|decision| self.orders(decision)).collect();
        Ok((BatchStep { at, events, decisions, report, cancelled: None }, orders))
    }

    /// What a decision means for the machine.
    fn orders(&mut self, decision: &Decision) -> Vec<Order> {
        let former = self.current.get(&decision.job()).copied();
        let (Decision::Start { job, attempt, .. } | Decision::Promote { job, attempt, .. }) =
            *decision;
        self.current.insert(job, attempt);
        match decision {
            Decision::Start { tier, on, .. } => {
                vec![Order::Start { job, attempt, tier: *tier, on: on.clone() }]
            }
            Decision::Promote { by: Move::Swap, .. } => vec![Order::Promote { job, attempt }],
            Decision::Promote { by: Move::Migrate { on }, .. } => {
                vec![Order::Move { job, attempt, on: on.clone() }]
            }
            Decision::Promote { by: Move::Kill { on }, .. } => {
                let start = Order::Start { job, attempt, tier: Tier::Foreground, on: on.clone() };
                let kill = former.map(|attempt| Order::Kill { job, attempt });
                kill.into_iter().chain([start]).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_batch::Algorithm;
    use dormouse_units::Span;

    use super::*;

    fn submission(number: u64, at: u64, processes: u32, runtime: u64) -> Submission {
        let runtime = Span::from_secs(runtime);
        let usage = Usage::Uniform(dormouse_units::Ppm::new(500_000));
        let submitted = Time::from_secs(at);
        Submission { number, submitted, processes, runtime, estimate: runtime, usage }
    }

    fn run(algorithm: Algorithm) -> BatchRun {
        // Job 1 waits behind job 0 and is put below it; when job 2, first of those that wait for
        // three processors, is through, …
        let jobs = vec![submission(1, 0, 3, 100), submission(2, 0, 2, 50)];
        BatchRun::new(Config::new(algorithm, 4), UsageInformation::Exact, jobs)
    }

    fn finished(job: u32, attempt: u32) -> MachineReport {
        let (job, attempt) = (JobId::new(job), Attempt::new(attempt));
        let (verified, uses, ledger) = (true, Vec::new(), None);
        MachineReport::Finished { job, attempt, verified, uses, ledger, late_us: 0 }
    }

    #[test]
    fn a_background_job_comes_to_the_foreground_as_the_algorithm_has_it() {
        for (algorithm, expected) in
            [(Algorithm::Keasy, "kill"), (Algorithm::Reasy, "swap"), (Algorithm::Measy, "move")]
        {
            let mut run = run(algorithm);
            let (steps, orders) = run.hear(Time::ZERO, Vec::new()).expect("they fit");
            let [step] = &steps[..] else { panic!("{steps:?}") };
            assert_eq!((step.events.len(), step.decisions.len()), (2, 2));
            let [Order::Start { tier: Tier::Foreground, .. }, Order::Start { tier, on, .. }] =
                &orders[..]
            else {
                panic!("{orders:?}")
            };
            assert_eq!(*tier, Tier::Background);
            assert!(on.contains(&3), "the idle processor first: {on:?}");
            let (_, orders) =
                run.hear(Time::from_secs(9), vec![finished(0, 1)]).expect("it is heard");
            let what: Vec<_> = orders
                .iter()
                .map(|order| match order {
                    Order::Promote { .. } => "swap",
                    Order::Move { .. } => "move",
                    Order::Kill { .. } => "kill",
                    Order::Start { .. } => "start",
                })
                .collect();
            // All four foregrounds are idle: nobody has to leave its place.
            assert_eq!(what, ["swap"], "{algorithm}, {expected}");
            assert!(!run.is_over());
            run.hear(Time::from_secs(20), vec![finished(1, 1)]).expect("it is heard");
            assert!(run.is_over(), "{algorithm}");
        }
    }

    #[test]
    fn a_kill_is_followed_by_a_start_and_its_former_life_is_not_heard_again() {
        let jobs = vec![
            submission(1, 0, 2, 100),
            submission(2, 0, 1, 20),
            submission(3, 0, 2, 90),
            submission(4, 1, 1, 10),
        ];
        let mut run =
            BatchRun::new(Config::new(Algorithm::Keasy, 3), UsageInformation::Exact, jobs);
        let (_, orders) = run.hear(Time::from_secs(1), Vec::new()).expect("they fit");
        assert!(orders.len() >= 3, "{orders:?}");
        let (_, orders) = run.hear(Time::from_secs(5), vec![finished(0, 1)]).expect("heard");
        let killed = orders.iter().find_map(|o| match o {
            Order::Kill { job, attempt } => Some((*job, *attempt)),
            _ => None,
        });
        if let Some((job, attempt)) = killed {
            let again = orders.iter().any(|o| {
                matches!(o, Order::Start { job: j, attempt: a, .. } if *j == job && *a == attempt.next())
            });
            assert!(again, "{orders:?}");
            let before = run.ended();
            let late = finished(job.get(), attempt.get());
            let (steps, orders) = run.hear(Time::from_secs(6), vec![late]).expect("heard");
            assert!(steps.iter().all(|step| step.events.is_empty()) && orders.is_empty());
            assert_eq!(run.ended(), before);
        } else {
            panic!("nobody was killed: {orders:?}");
        }
    }

    #[test]
    fn what_is_of_one_instant_is_heard_of_at_once() {
        let jobs = vec![submission(1, 0, 1, 10), submission(2, 0, 1, 10), submission(3, 10, 1, 5)];
        let config = Config::new(Algorithm::Easy, 2);
        let mut run = BatchRun::new(config, UsageInformation::Exact, jobs);
        run.hear(Time::ZERO, vec![MachineReport::Created]).expect("they fit");
        let both = vec![finished(0, 1), finished(1, 1)];
        let (steps, orders) = run.hear(Time::from_secs(10), both).expect("heard");
        assert_eq!(steps.iter().map(|step| step.events.len()).collect::<Vec<_>>(), [0, 3]);
        assert!(steps.iter().all(|step| step.report.is_some()));
        assert_eq!(orders.len(), 1);
    }
}
