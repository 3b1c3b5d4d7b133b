//! The scheduler: one queue, passes over it, and decisions.

use std::collections::BTreeMap;

use dormouse_units::{Attempt, Time};

use crate::algorithm::{Config, Fill, Promotion};
use crate::decision::{Decision, Event, Move, Tier, Why};
use crate::explain::{Note, Noted, Watch};
use crate::job::{Job, JobId, Placement};
use crate::processors::Processors;
use crate::queue::{Candidate, Ending, Endings, Shortest};
use crate::reservation::{Reservation, by_count};

/// Why a job is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It could never run.
    #[error("{job} wants {processes} processors; the machine has {machine}")]
    TooLarge {
        /// Which.
        job: JobId,
        /// Processors it wants.
        processes: u32,
        /// Processors there are.
        machine: u32,
    },
    /// It would run on nothing.
    #[error("{job} wants no processor")]
    NoProcess {
        /// Which.
        job: JobId,
    },
    /// Positions in the order of submission only go up.
    #[error("{job} comes after a job of the same or a later position in the order of submission")]
    OutOfOrder {
        /// Which.
        job: JobId,
    },
}

impl Refusal {
    /// The job that is refused.
    #[must_use]
    pub const fn job(&self) -> JobId {
        match self {
            Self::TooLarge { job, .. } | Self::NoProcess { job } | Self::OutOfOrder { job } => *job,
        }
    }
}

/// Where a job is.
#[derive(Clone, Debug)]
enum State {
    Waiting,
    Background { on: Placement, attempt: Attempt },
    Foreground { on: Placement, attempt: Attempt, expected_end: Time },
}

#[derive(Clone, Debug)]
struct Known {
    job: Job,
    state: State,
}

/// FCFS, EASY, KEASY, REASY or MEASY, as its [`Config`] says: a pure state machine.
#[derive(Clone, Debug)]
pub struct Scheduler {
    config: Config,
    promotion: Option<Promotion>,
    jobs: BTreeMap<JobId, Known>,
    newest: Option<JobId>,
    /// Jobs without a foreground, waiting or in the background, in order of submission.
    queue: Vec<Candidate>,
    /// The waiting ones among them; kept only on two tiers.
    shortest: Shortest,
    endings: Endings,
    processors: Processors,
    /// Jobs in the background, and whether one left it since it was last filled.
    background: (usize, bool),
    scanned: Option<Scanned>,
    watch: Option<Watch>,
}

/// What the last pass found out. Until a job ends or the shadow time comes, nobody it has
/// turned down would fare better: nothing becomes idle, the shadow time stays, and an
/// estimate only reaches further. So a pass after submissions alone looks at these alone.
#[derive(Clone, Copy, Debug)]
struct Scanned {
    /// Candidates of the queue that it looked at.
    upto: usize,
    /// What it left of the head's reservation.
    left: Reservation,
    pinned: Option<JobId>,
}

impl Scheduler {
    /// A scheduler of an empty machine.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            promotion: config.algorithm.promotion(),
            jobs: BTreeMap::new(),
            newest: None,
            queue: Vec::new(),
            shortest: Shortest::default(),
            endings: Endings::default(),
            processors: Processors::new(config.processors),
            background: (0, true),
            scanned: None,
            watch: None,
        }
    }

    /// From now on notes why this job has no foreground; one job at a time.
    pub fn watch(&mut self, job: JobId) {
        self.watch = Some(Watch::new(job));
    }

    /// What was noted of the watched job.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        self.watch.as_ref().map_or(&[], Watch::notes)
    }

    /// Hears what happened at one instant and decides, once. Give all events of the
    /// instant together, ends of jobs first, for the schedule that the crate's
    /// documentation defines; one at a time is as safe.
    ///
    /// # Errors
    ///
    /// A submitted job that can't be taken; nothing is known of it afterwards, the events
    /// after it are not heard, and nothing is decided.
    pub fn handle(
        &mut self,
        now: Time,
        events: impl IntoIterator<Item = Event>,
        out: &mut Vec<Decision>,
    ) -> Result<(), Refusal> {
        for event in events {
            match event {
                Event::Submitted(job) => self.submitted(job)?,
                Event::Finished { job, attempt } => self.finished(job, attempt),
            }
        }
        self.pass(now, out);
        Ok(())
    }

    fn submitted(&mut self, job: Job) -> Result<(), Refusal> {
        let (id, processes, estimate) = (job.id, job.processes, job.estimate);
        if processes == 0 {
            return Err(Refusal::NoProcess { job: id });
        }
        if processes > self.config.processors {
            let machine = self.config.processors;
            return Err(Refusal::TooLarge { job: id, processes, machine });
        }
        if self.newest.is_some_and(|newest| id <= newest) {
            return Err(Refusal::OutOfOrder { job: id });
        }
        self.newest = Some(id);
        let candidate = Candidate { id, processes, estimate };
        self.jobs.insert(id, Known { job, state: State::Waiting });
        self.queue.push(candidate);
        if self.promotion.is_some() {
            self.shortest.add(&candidate);
        }
        Ok(())
    }

    fn finished(&mut self, id: JobId, finished: Attempt) {
        let is_current = match self.jobs.get(&id).map(|known| &known.state) {
            Some(State::Background { attempt, .. } | State::Foreground { attempt, .. }) => {
                *attempt == finished
            }
            Some(State::Waiting) | None => false,
        };
        if !is_current {
            return;
        }
        let Some(known) = self.jobs.remove(&id) else { return };
        self.scanned = None;
        match known.state {
            State::Waiting => {}
            State::Background { on, .. } => {
                self.processors.leave_background(&on);
                self.background = (self.background.0 - 1, true);
                if let Ok(at) = self.queue.binary_search_by_key(&id, |c| c.id) {
                    self.queue.remove(at);
                }
            }
            State::Foreground { on, expected_end, .. } => {
                self.processors.leave_foreground(&on);
                let processes = known.job.processes;
                self.endings.remove(Ending { at: expected_end, id, processes });
            }
        }
    }

    /// The three steps of Algorithm 1.
    fn pass(&mut self, now: Time, out: &mut Vec<Decision>) {
        let before = self.scanned.take().filter(|scanned| scanned.left.shadow > now);
        if before.is_none() {
            self.run_from_the_head(now, out);
        }
        if self.config.algorithm.backfills() && !self.queue.is_empty() {
            self.scanned = Some(self.backfill(now, before, out));
        }
        if self.promotion.is_some() {
            match (self.config.fill, self.background) {
                (Fill::EveryPass, _) => self.fill_background(before, out),
                // Who was left waiting by the last pass was not looked at in it.
                (Fill::AfterDeparture, (0, _) | (_, true)) => self.fill_background(None, out),
                (Fill::AfterDeparture, (_, false)) => {}
            }
        }
        self.note_watched(now, self.scanned.map(|scanned| scanned.left));
        if self.promotion == Some(Promotion::Wait) {
            // The background may have taken the head: its reservation is another kind then.
            self.scanned = None;
        }
        if let Some(scanned) = &mut self.scanned {
            scanned.upto = self.queue.len();
        }
    }

    /// Step 1: first come, first served, until one does not fit.
    fn run_from_the_head(&mut self, now: Time, out: &mut Vec<Decision>) {
        let mut started = 0;
        while let Some(&first) = self.queue.get(started) {
            if first.processes > self.processors.idle_foregrounds()
                || !self.deploy(now, &first, None, Why::FirstInLine, out)
            {
                break;
            }
            started += 1;
        }
        self.queue.drain(..started);
    }

    /// Step 2: a reservation for the head, then whoever does not delay it; after submissions
    /// alone, the reservation and the rest of the queue as the pass `before` left them.
    fn backfill(&mut self, now: Time, before: Option<Scanned>, out: &mut Vec<Decision>) -> Scanned {
        let head = self.queue[0];
        let mut scanned = before.unwrap_or_else(|| {
            let (left, pinned) = self.reserve(now, &head);
            Scanned { upto: 1, left, pinned }
        });
        let from = scanned.upto;
        let (mut at, mut kept) = (from, from);
        while at < self.queue.len() && self.processors.idle_foregrounds() > 0 {
            let candidate = self.queue[at];
            at += 1;
            if self.processors.idle_foregrounds() < candidate.processes
                || !self.try_backfill(now, head.id, &candidate, &mut scanned, out)
            {
                self.queue[kept] = candidate;
                kept += 1;
            }
        }
        self.queue.drain(kept..at);
        scanned
    }

    /// Starts a candidate that fits now if it does not delay the head.
    fn try_backfill(
        &mut self,
        now: Time,
        head: JobId,
        candidate: &Candidate,
        scanned: &mut Scanned,
        out: &mut Vec<Decision>,
    ) -> bool {
        let Reservation { shadow, extra } = scanned.left;
        if now + candidate.estimate <= shadow {
            let why = Why::EndsBeforeShadow { head, shadow };
            return self.deploy(now, candidate, None, why, out);
        }
        let starts = candidate.processes <= extra && {
            let why = Why::OnExtra { head, shadow, extra };
            self.deploy(now, candidate, scanned.pinned, why, out)
        };
        if starts {
            scanned.left.extra -= candidate.processes;
        }
        starts
    }

    /// The reservation of `head`, and `head` itself if only its own processors will do.
    fn reserve(&self, now: Time, head: &Candidate) -> (Reservation, Option<JobId>) {
        let idle = self.processors.idle_foregrounds();
        if self.promotion == Some(Promotion::Wait)
            && let Some(Known { state: State::Background { on, .. }, .. }) = self.jobs.get(&head.id)
        {
            let shadow = self
                .processors
                .foreground_jobs(on)
                .filter_map(|job| match self.jobs.get(&job)?.state {
                    State::Foreground { expected_end, .. } => Some(expected_end),
                    State::Waiting | State::Background { .. } => None,
                })
                .fold(now, Time::max);
            let extra = idle - self.processors.idle_among(on);
            return (Reservation { shadow, extra }, Some(head.id));
        }
        (by_count(now, head.processes, idle, self.endings.in_order()), None)
    }

    /// Deploy (Algorithm 2): into the foreground, off the processors of `avoid`. Tells
    /// whether it could; the caller takes it from the queue.
    fn deploy(
        &mut self,
        now: Time,
        candidate: &Candidate,
        avoid: Option<JobId>,
        why: Why,
        out: &mut Vec<Decision>,
    ) -> bool {
        let id = candidate.id;
        let Some(known) = self.jobs.get_mut(&id) else { return false };
        let (on, attempt, decision) = match &known.state {
            State::Foreground { .. } => return false,
            State::Waiting => {
                let chosen = self.processors.choose_foreground(candidate.processes, avoid);
                let Some(on) = chosen else { return false };
                let (attempt, tier) = (Attempt::new(1), Tier::Foreground);
                if self.promotion.is_some() {
                    self.shortest.remove(candidate);
                }
                let start = Decision::Start { job: id, attempt, tier, on: on.clone(), why };
                (on, attempt, start)
            }
            State::Background { on, attempt } => {
                let (old, attempt) = (on.clone(), *attempt);
                let (on, attempt, by) = if self.processors.are_idle(&old) {
                    self.processors.leave_background(&old);
                    (old, attempt, Move::Swap)
                } else {
                    let Some(promotion) = self.promotion else { return false };
                    if promotion == Promotion::Wait {
                        return false;
                    }
                    self.processors.leave_background(&old);
                    let chosen = self.processors.choose_foreground(candidate.processes, avoid);
                    let Some(on) = chosen else {
                        self.processors.sit_background(id, &known.job.usage, &old);
                        return false;
                    };
                    if promotion == Promotion::Kill {
                        (on.clone(), attempt.next(), Move::Kill { on })
                    } else {
                        (on.clone(), attempt, Move::Migrate { on })
                    }
                };
                (on, attempt, Decision::Promote { job: id, attempt, by, why })
            }
        };
        self.processors.sit_foreground(id, &known.job.usage, &on);
        if matches!(known.state, State::Background { .. }) {
            self.background = (self.background.0 - 1, true);
        }
        let expected_end = now + known.job.estimate;
        self.endings.add(Ending { at: expected_end, id, processes: candidate.processes });
        known.state = State::Foreground { on, attempt, expected_end };
        out.push(decision);
        true
    }

    /// Step 3: waiting jobs into the background, shortest first; after submissions alone only
    /// these, since the others did not fit and the room has not grown.
    fn fill_background(&mut self, before: Option<Scanned>, out: &mut Vec<Decision>) {
        let fresh = self.queue.get(before.map_or(0, |b| b.upto)..).unwrap_or_default();
        self.background.1 = false;
        if self.shortest.is_empty() || fresh.is_empty() {
            return;
        }
        let Config { usable_below, usable_idle, .. } = self.config;
        let room = self.processors.background_room(usable_below, usable_idle);
        let mut room = room.as_slice();
        let chosen = if before.is_some() {
            fresh.iter().collect::<Shortest>().fitting(room.len())
        } else {
            self.shortest.fitting(room.len())
        };
        for (id, processes) in chosen {
            let (on, rest) = room.split_at(processes as usize);
            room = rest;
            let Some(known) = self.jobs.get_mut(&id) else { continue };
            let on = Placement::from(on);
            self.processors.sit_background(id, &known.job.usage, &on);
            let attempt = Attempt::new(1);
            known.state = State::Background { on: on.clone(), attempt };
            self.background.0 += 1;
            if let Ok(at) = self.queue.binary_search_by_key(&id, |c| c.id) {
                self.shortest.remove(&self.queue[at]);
            }
            let (tier, why) = (Tier::Background, Why::ShortestWaiting);
            out.push(Decision::Start { job: id, attempt, tier, on, why });
        }
    }

    fn note_watched(&mut self, now: Time, reservation: Option<Reservation>) {
        let Some(watch) = &mut self.watch else { return };
        let Ok(ahead) = self.queue.binary_search_by_key(&watch.job, |c| c.id) else { return };
        let candidate = &self.queue[ahead];
        let idle = self.processors.idle_foregrounds();
        let what = match reservation {
            None => Noted::NotYet { ahead },
            Some(Reservation { shadow, .. }) if ahead == 0 => Noted::Head { idle, shadow },
            Some(_) if candidate.processes > idle => Noted::TooFewIdle { ahead, idle },
            Some(Reservation { shadow, extra })
                if now + candidate.estimate > shadow && candidate.processes > extra =>
            {
                Noted::WouldDelay { ahead, head: self.queue[0].id, shadow, extra }
            }
            Some(_) => Noted::Pinned { ahead },
        };
        watch.note(now, what);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use dormouse_cloud::Stream;
    use dormouse_units::{Ppm, Span};

    use super::*;
    use crate::Algorithm;
    use crate::job::Usage;

    /// A job for one to all of eight processors.
    fn job(id: u32, stream: &mut Stream) -> Job {
        let processes = 1 + stream.below(8) as u32;
        let share = Ppm::new(400_000 + stream.below(600_001) as u32);
        let usage = if processes == 1 { Usage::FULL } else { Usage::Uniform(share) };
        let estimate = Span::from_secs(1 + stream.below(300) as u64);
        Job { id: JobId::new(id), number: id.into(), processes, estimate, usage }
    }

    /// What a pass remembers of the last one saves work and changes no decision.
    #[test]
    fn a_pass_decides_as_one_that_remembers_nothing() {
        for (algorithm, seed) in
            Algorithm::ALL.into_iter().flat_map(|a| (0..40).map(move |s| (a, s)))
        {
            let mut stream = Stream::new(seed, "scheduler test", 0);
            let mut scheduler = Scheduler::new(Config::new(algorithm, 8));
            let mut forgetful = scheduler.clone();
            let (mut next, mut running) = (0, BTreeMap::new());
            for at in 0..400 {
                let event = if running.is_empty() || stream.below(5) < 3 {
                    next += 1;
                    Event::Submitted(job(next, &mut stream))
                } else {
                    let chosen = stream.below(running.len());
                    let (job, attempt) = running.iter().nth(chosen).map(|(j, a)| (*j, *a)).unwrap();
                    running.remove(&job);
                    Event::Finished { job, attempt }
                };
                let now = Time::from_secs(at * 7);
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                scheduler.handle(now, [event.clone()], &mut ours).unwrap();
                forgetful.scanned = None;
                forgetful.handle(now, [event], &mut theirs).unwrap();
                assert_eq!(ours, theirs, "{algorithm}, seed {seed}, at {now}");
                for decision in ours {
                    let (Decision::Start { job, attempt, .. }
                    | Decision::Promote { job, attempt, .. }) = decision;
                    running.insert(job, attempt);
                }
            }
        }
    }
}
