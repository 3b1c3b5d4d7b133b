//! The scheduler of parallel jobs: one queue, passes over it, and decisions.

use dormouse_cloud::Market;
use dormouse_model::{Decision, Job, Notice, Promotion, StartReason};
use dormouse_units::{Cpus, Mode, Seats, Span, TaskId, Tier, Time, TypeName, VmId, Window};

use super::config::{Config, Fill};
use super::explain::{Note, Noted, Watch};
use super::processors::Processors;
use super::queue::{Candidate, Ending, Endings, Shortest};
use super::reservation::{Reservation, by_count};
use super::schedulers::{BatchPolicy, OnPromotion};
use crate::{GivenUp, Hearing, Policy};

/// Wait after a failed launch of the machine before it is asked for again.
const RETRY: Span = Span::from_secs(60);
/// Most starts of a job: a job that always fails would otherwise never let the run end.
pub const MOST_STARTS: u32 = 5;

/// Whether a job waits or runs, and on which processors.
#[derive(Clone, Debug)]
enum State {
    Waiting,
    Background { on: Cpus, since: Time },
    Foreground { on: Cpus, expected_end: Time },
}

#[derive(Clone, Debug)]
struct Known {
    job: Job,
    state: State,
    /// Number of the job's failed attempts.
    failures: u32,
}

/// The VM with all the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    /// The VM was not asked for.
    None,
    /// The VM was asked for but is not ready yet.
    Awaited(VmId),
    /// The VM can run jobs.
    Ready(VmId),
}

/// FCFS, EASY, KEASY, REASY or MEASY, as its [`Config`] says: a pure state machine.
#[derive(Clone, Debug)]
pub struct BatchScheduler {
    config: Config,
    /// The instance type of the machine.
    kind: TypeName,
    machine: Machine,
    next_vm: VmId,
    promotion: Option<OnPromotion>,
    jobs: Window<Known>,
    /// Jobs without a foreground, waiting or in the background, in order of submission.
    queue: Vec<Candidate>,
    /// The waiting jobs of the queue; kept only where there are two tiers.
    shortest: Shortest,
    endings: Endings,
    processors: Processors,
    /// Number of jobs in the background, and whether one left it since it was last filled.
    background: (usize, bool),
    scanned: Option<Scanned>,
    watch: Option<Watch>,
    /// Whether a job was given up that failed too often.
    has_given_up: bool,
}

/// Findings of the last pass. Until a job ends or the shadow time comes, no job that the pass has
/// turned down would fare better: nothing becomes idle, the shadow time stays, and an estimate only
/// reaches further. So a pass after submissions alone looks at the new jobs alone.
#[derive(Clone, Copy, Debug)]
struct Scanned {
    /// Number of candidates of the queue that the pass looked at.
    upto: usize,
    /// The head's reservation as the pass left it.
    left: Reservation,
    pinned: Option<TaskId>,
}

impl BatchScheduler {
    /// A scheduler that leases one VM of the type `kind`, whose vCPUs are its processors.
    #[must_use]
    pub fn new(config: Config, kind: TypeName) -> Self {
        Self {
            config,
            kind,
            machine: Machine::None,
            next_vm: VmId::new(0),
            promotion: config.algorithm.promotion(),
            jobs: Window::default(),
            queue: Vec::new(),
            shortest: Shortest::default(),
            endings: Endings::default(),
            processors: Processors::new(&config),
            background: (0, true),
            scanned: None,
            watch: None,
            has_given_up: false,
        }
    }

    fn launch(&mut self, out: &mut Vec<Decision>) {
        let vm = self.next_vm;
        self.next_vm = vm.next();
        self.machine = Machine::Awaited(vm);
        let (kind, market) = (self.kind.clone(), Market::OnDemand);
        out.push(Decision::Launch { vm, kind, market, bid: None });
    }

    /// Queues a job. A job that doesn't fit the machine is never run: whoever submits it has
    /// checked that.
    fn submitted(&mut self, job: &Job, failures: u32) {
        let candidate = Candidate { id: job.id, processes: job.processes, estimate: job.estimate };
        let fits = (1..=self.config.processors).contains(&job.processes);
        if !fits || self.jobs.get(job.id).is_some() {
            return;
        }
        let known = Known { job: job.clone(), state: State::Waiting, failures };
        self.jobs.insert(job.id, known);
        self.enqueue(candidate);
    }

    /// Puts a waiting job in its place of the queue, by order of submission.
    fn enqueue(&mut self, candidate: Candidate) {
        match self.queue.last() {
            Some(last) if last.id > candidate.id => {
                let at = self.queue.partition_point(|c| c.id < candidate.id);
                self.queue.insert(at, candidate);
                // The candidates that the last pass looked at have moved.
                self.scanned = None;
            }
            _ => self.queue.push(candidate),
        }
        if self.promotion.is_some() {
            self.shortest.add(&candidate);
        }
    }

    /// Takes a job off its processors; `None` if it has none.
    fn leaves(&mut self, id: TaskId) -> Option<(Job, u32)> {
        if matches!(self.jobs.get(id)?.state, State::Waiting) {
            return None;
        }
        let known = self.jobs.remove(id)?;
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
            State::Foreground { on, expected_end } => {
                self.processors.leave_foreground(&on);
                let processes = known.job.processes;
                self.endings.remove(Ending { at: expected_end, id, processes });
            }
        }
        Some((known.job, known.failures))
    }

    /// A job failed: it waits again, where it stood in the queue, unless it has failed too often.
    fn failed(&mut self, id: TaskId) {
        let Some((job, failures)) = self.leaves(id) else { return };
        if failures + 1 < MOST_STARTS {
            self.submitted(&job, failures + 1);
        } else {
            self.has_given_up = true;
        }
    }

    /// The machine is gone: all jobs wait again.
    fn machine_lost(&mut self, out: &mut Vec<Decision>) {
        let running =
            |(id, known): (TaskId, &Known)| (!matches!(known.state, State::Waiting)).then_some(id);
        let lost: Vec<_> = self.jobs.iter().filter_map(running).collect();
        for id in lost {
            if let Some((job, failures)) = self.leaves(id) {
                self.submitted(&job, failures);
            }
        }
        self.launch(out);
    }

    /// The machine could not be had: the scheduler asks for it again later.
    fn wait_for_machine(&mut self, now: Time, out: &mut Vec<Decision>) {
        self.machine = Machine::None;
        out.push(Decision::Wake { at: now + RETRY, token: 0 });
    }

    fn hear(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin | Notice::HostJoined | Notice::Available { .. } | Notice::Wake { .. }
                if self.machine == Machine::None =>
            {
                self.launch(out);
            }
            Notice::VmReady { vm } if self.machine == Machine::Awaited(vm) => {
                self.machine = Machine::Ready(vm);
            }
            Notice::LaunchRefused { .. } => self.wait_for_machine(now, out),
            Notice::VmLost { vm } if self.machine == Machine::Awaited(vm) => {
                self.wait_for_machine(now, out);
            }
            Notice::VmLost { vm } if self.machine == Machine::Ready(vm) => self.machine_lost(out),
            Notice::Submitted { ref job } => self.submitted(job, 0),
            Notice::TaskFailed { task, .. } => self.failed(task),
            _ => {}
        }
    }

    /// The three steps of Algorithm 1.
    fn pass(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let before = self.scanned.take().filter(|scanned| scanned.left.shadow > now);
        if before.is_none() {
            self.run_from_the_head(now, vm, out);
        }
        if self.config.algorithm.backfills() && !self.queue.is_empty() {
            self.scanned = Some(self.backfill(now, vm, before, out));
        }
        if self.promotion.is_some() {
            match (self.config.fill, self.background) {
                (Fill::EveryPass, _) => self.fill_background((now, vm), before, out),
                // The last pass did not look at the jobs that it left waiting.
                (Fill::AfterDeparture, (0, _) | (_, true)) => {
                    self.fill_background((now, vm), None, out);
                }
                (Fill::AfterDeparture, (_, false)) => {}
            }
        }
        self.note_watched(now, self.scanned.map(|scanned| scanned.left));
        if self.promotion == Some(OnPromotion::Wait) {
            // The head may have gone to the background: its reservation is of another kind then.
            self.scanned = None;
        }
        if let Some(scanned) = &mut self.scanned {
            scanned.upto = self.queue.len();
        }
    }

    /// Step 1: first come, first served, until a job does not fit.
    fn run_from_the_head(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let mut started = 0;
        while let Some(&first) = self.queue.get(started) {
            if first.processes > self.processors.idle_foregrounds()
                || !self.deploy((now, vm), &first, None, StartReason::FirstInLine, out)
            {
                break;
            }
            started += 1;
        }
        self.queue.drain(..started);
    }

    /// Step 2: a reservation for the head, then the jobs that do not delay it. After submissions
    /// alone, the reservation and the rest of the queue are as the pass `before` left them.
    fn backfill(
        &mut self,
        now: Time,
        vm: VmId,
        before: Option<Scanned>,
        out: &mut Vec<Decision>,
    ) -> Scanned {
        let head = self.queue[0];
        let mut scanned = before.unwrap_or_else(|| {
            let (left, pinned) = self.reserve(now, &head);
            Scanned { upto: 1, left, pinned }
        });
        let from = scanned.upto;
        let (mut at, mut kept) = (from, from);
        while self.processors.idle_foregrounds() > 0 {
            let idle = self.processors.idle_foregrounds();
            let fits = |c: &Candidate| c.processes <= idle;
            let rest = self.queue.get(at..).unwrap_or_default();
            let passed = rest.iter().position(fits).unwrap_or(rest.len());
            if kept < at {
                self.queue.copy_within(at..at + passed, kept);
            }
            (at, kept) = (at + passed, kept + passed);
            let Some(&candidate) = self.queue.get(at) else { break };
            at += 1;
            if !self.try_backfill((now, vm), head.id, &candidate, &mut scanned, out) {
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
        (now, vm): (Time, VmId),
        head: TaskId,
        candidate: &Candidate,
        scanned: &mut Scanned,
        out: &mut Vec<Decision>,
    ) -> bool {
        let Reservation { shadow, extra } = scanned.left;
        if now + candidate.estimate <= shadow {
            let why = StartReason::EndsBeforeShadow { head, shadow };
            return self.deploy((now, vm), candidate, None, why, out);
        }
        let starts = candidate.processes <= extra && {
            let why = StartReason::OnExtra { head, shadow, extra };
            self.deploy((now, vm), candidate, scanned.pinned, why, out)
        };
        if starts {
            scanned.left.extra -= candidate.processes;
        }
        starts
    }

    /// The reservation of `head`, and `head` itself if it can run only on its own processors.
    fn reserve(&self, now: Time, head: &Candidate) -> (Reservation, Option<TaskId>) {
        let idle = self.processors.idle_foregrounds();
        if self.promotion == Some(OnPromotion::Wait)
            && let Some(Known { state: State::Background { on, .. }, .. }) = self.jobs.get(head.id)
        {
            let shadow = self
                .processors
                .foreground_jobs(on)
                .filter_map(|job| match self.jobs.get(job)?.state {
                    State::Foreground { expected_end, .. } => Some(expected_end),
                    State::Waiting | State::Background { .. } => None,
                })
                .fold(now, Time::max);
            let extra = idle - self.processors.idle_among(on);
            return (Reservation { shadow, extra }, Some(head.id));
        }
        (by_count(now, head.processes, idle, self.endings.in_order()), None)
    }

    /// Deploy (Algorithm 2): brings a job to the foreground, off the processors of `avoid`. Returns
    /// whether it could; the caller takes the job from the queue.
    fn deploy(
        &mut self,
        (now, vm): (Time, VmId),
        candidate: &Candidate,
        avoid: Option<TaskId>,
        reason: StartReason,
        out: &mut Vec<Decision>,
    ) -> bool {
        let id = candidate.id;
        let config = self.config;
        let Some(known) = self.jobs.get_mut(id) else { return false };
        let whole = now + known.job.estimate;
        let (on, expected_end, decision) = match &known.state {
            State::Foreground { .. } => return false,
            State::Waiting => {
                let chosen = self.processors.choose_foreground(candidate.processes, avoid);
                let Some(on) = chosen else { return false };
                if self.promotion.is_some() {
                    self.shortest.remove(candidate);
                }
                let seats = Seats { vm, tier: Tier::Foreground, cpus: on.clone() };
                let mode = Mode::Burst;
                (on, whole, Decision::Start { task: id, on: seats, mode, reason })
            }
            State::Background { on, since } => {
                let (old, since) = (on.clone(), *since);
                let (on, by) = if self.processors.are_idle(&old) {
                    self.processors.leave_background(&old);
                    (old, Promotion::Swap)
                } else {
                    let Some(promotion) = self.promotion else { return false };
                    if promotion == OnPromotion::Wait {
                        return false;
                    }
                    self.processors.leave_background(&old);
                    let chosen = self.processors.choose_foreground(candidate.processes, avoid);
                    let Some(on) = chosen else {
                        self.processors.sit_background(id, &known.job.usage, &old);
                        return false;
                    };
                    let by = if promotion == OnPromotion::Kill {
                        Promotion::Kill { on: on.clone() }
                    } else {
                        Promotion::Migrate { on: on.clone() }
                    };
                    (on, by)
                };
                let expected_end = config.end_expected_of(&by, (since, now), known.job.estimate);
                (on, expected_end, Decision::Promote { task: id, vm, by, reason })
            }
        };
        self.processors.sit_foreground(id, &known.job.usage, &on);
        if matches!(known.state, State::Background { .. }) {
            self.background = (self.background.0 - 1, true);
        }
        self.endings.add(Ending { at: expected_end, id, processes: candidate.processes });
        known.state = State::Foreground { on, expected_end };
        out.push(decision);
        true
    }

    /// Step 3: puts waiting jobs into the background, shortest first. After submissions alone only
    /// the new jobs are looked at, since the others did not fit and the room has not grown.
    fn fill_background(
        &mut self,
        (now, vm): (Time, VmId),
        before: Option<Scanned>,
        out: &mut Vec<Decision>,
    ) {
        let fresh = self.queue.get(before.map_or(0, |b| b.upto)..).unwrap_or_default();
        self.background.1 = false;
        if self.shortest.is_empty() || fresh.is_empty() {
            return;
        }
        let room = self.processors.background_room();
        let chosen = match (room, before) {
            (0, _) => Vec::new(),
            (_, Some(_)) => fresh.iter().collect::<Shortest>().fitting(room),
            (_, None) => self.shortest.fitting(room),
        };
        if chosen.is_empty() {
            return;
        }
        let wanted = chosen.iter().map(|(_, processes)| *processes as usize).sum();
        let room = self.processors.first_backgrounds(wanted);
        let mut room = room.as_slice();
        for (id, processes) in chosen {
            let (on, rest) = room.split_at(processes as usize);
            room = rest;
            let Some(known) = self.jobs.get_mut(id) else { continue };
            let on = Cpus::from(on);
            self.processors.sit_background(id, &known.job.usage, &on);
            known.state = State::Background { on: on.clone(), since: now };
            self.background.0 += 1;
            if let Ok(at) = self.queue.binary_search_by_key(&id, |c| c.id) {
                self.shortest.remove(&self.queue[at]);
            }
            let on = Seats { vm, tier: Tier::Background, cpus: on };
            let (mode, reason) = (Mode::Burst, StartReason::ShortestWaiting);
            out.push(Decision::Start { task: id, on, mode, reason });
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

impl BatchPolicy for BatchScheduler {
    fn watch(&mut self, job: TaskId) {
        self.watch = Some(Watch::new(job));
    }

    fn notes(&self) -> &[Note] {
        self.watch.as_ref().map_or(&[], Watch::notes)
    }
}

impl Policy for BatchScheduler {
    fn given_up(&self) -> Option<GivenUp> {
        self.has_given_up.then_some(GivenUp::Work)
    }

    fn hearing(&self) -> Hearing {
        Hearing::Instants
    }

    /// Ends of jobs are handled first, whatever the order of the notices.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            if let Notice::TaskFinished { task, .. } = *notice {
                self.leaves(task);
            }
        }
        for notice in heard {
            self.hear(now, notice, out);
        }
        if let Machine::Ready(vm) = self.machine {
            self.pass(now, vm, out);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use std::collections::BTreeSet;

    use dormouse_units::{Ppm, Stream, Usage};

    use super::*;
    use crate::batch::Algorithm;

    /// A job for one to all of eight processors.
    fn job(id: u32, stream: &mut Stream) -> Job {
        let processes = 1 + stream.below(8) as u32;
        let share = Ppm::new(400_000 + stream.below(600_001) as u32);
        let usage = if processes == 1 { Usage::FULL } else { Usage::Uniform(share) };
        let estimate = Span::from_secs(1 + stream.below(300) as u64);
        Job { id: TaskId::new(id), number: id.into(), processes, estimate, usage }
    }

    /// A scheduler whose machine of eight processors is there.
    fn scheduler(algorithm: Algorithm) -> BatchScheduler {
        let mut made = BatchScheduler::new(Config::new(algorithm, 8), TypeName::from("machine"));
        let mut out = Vec::new();
        made.handle(Time::ZERO, &[Notice::Begin], &mut out);
        let [Decision::Launch { vm, .. }] = out[..] else { panic!("{out:?}") };
        made.handle(Time::ZERO, &[Notice::VmReady { vm }], &mut Vec::new());
        made
    }

    /// The findings kept from the last pass save work and change no decision, whatever happens to
    /// jobs.
    #[test]
    fn a_pass_decides_as_one_that_remembers_nothing() {
        for (algorithm, seed) in
            Algorithm::ALL.into_iter().flat_map(|a| (0..40).map(move |s| (a, s)))
        {
            let mut stream = Stream::new(seed, "scheduler test", 0);
            let mut scheduler = scheduler(algorithm);
            let (mut forgetful, vm) = (scheduler.clone(), VmId::new(0));
            let (mut next, mut running) = (0, BTreeSet::new());
            for at in 0..400 {
                let notice = if running.is_empty() || stream.below(5) < 3 {
                    next += 1;
                    Notice::Submitted { job: job(next, &mut stream) }
                } else {
                    let chosen = stream.below(running.len());
                    let task = *running.iter().nth(chosen).unwrap();
                    running.remove(&task);
                    match stream.below(6) {
                        0 => Notice::TaskFailed { task, vm, why: String::new() },
                        _ => Notice::TaskFinished { task, vm },
                    }
                };
                let now = Time::from_secs(at * 7);
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                scheduler.handle(now, std::slice::from_ref(&notice), &mut ours);
                forgetful.scanned = None;
                forgetful.handle(now, &[notice], &mut theirs);
                assert_eq!(ours, theirs, "{algorithm}, seed {seed}, at {now}");
                running.extend(ours.iter().filter_map(Decision::task));
            }
        }
    }

    #[test]
    fn a_job_that_always_fails_is_given_up_and_that_is_said() {
        let mut scheduler = scheduler(Algorithm::Fcfs);
        let job = job(1, &mut Stream::new(1, "scheduler test", 0));
        let (task, vm, mut out) = (job.id, VmId::new(0), Vec::new());
        scheduler.handle(Time::ZERO, &[Notice::Submitted { job }], &mut out);
        for starts in 1..=MOST_STARTS {
            let is_started =
                |it: &Decision| matches!(it, Decision::Start { task: t, .. } if *t == task);
            assert_eq!(out.iter().filter(|it| is_started(it)).count(), starts as usize);
            assert_eq!(scheduler.given_up(), None);
            let failed = Notice::TaskFailed { task, vm, why: String::new() };
            scheduler.handle(Time::from_secs(starts.into()), &[failed], &mut out);
        }
        assert_eq!(scheduler.given_up(), Some(GivenUp::Work));
    }

    #[test]
    fn a_lost_machine_is_launched_again_and_its_jobs_start_on_it() {
        for algorithm in Algorithm::ALL {
            let mut scheduler = scheduler(algorithm);
            let mut stream = Stream::new(1, "scheduler test", 0);
            let submitted: Vec<_> =
                (1..12).map(|n| Notice::Submitted { job: job(n, &mut stream) }).collect();
            let mut first = Vec::new();
            scheduler.handle(Time::ZERO, &submitted, &mut first);
            let mut out = Vec::new();
            scheduler.handle(Time::from_secs(5), &[Notice::VmLost { vm: VmId::new(0) }], &mut out);
            let [Decision::Launch { vm, .. }] = out[..] else { panic!("{out:?}") };
            assert_eq!(vm, VmId::new(1));
            scheduler.handle(
                Time::from_secs(6),
                &[Notice::LaunchRefused { vm, why: String::new(), unavailable: false }],
                &mut out,
            );
            assert!(matches!(out.last(), Some(Decision::Wake { .. })), "{out:?}");
            scheduler.handle(Time::from_secs(66), &[Notice::Wake { token: 0 }], &mut out);
            let vm = VmId::new(2);
            assert!(matches!(out.last(), Some(Decision::Launch { vm: new, .. }) if *new == vm));
            let mut again = Vec::new();
            scheduler.handle(Time::ZERO, &[Notice::VmReady { vm }], &mut again);
            for decision in &mut again {
                if let Decision::Start { on, .. } = decision {
                    on.vm = VmId::new(0);
                }
            }
            assert_eq!(first, again, "{algorithm}");
        }
    }
}
