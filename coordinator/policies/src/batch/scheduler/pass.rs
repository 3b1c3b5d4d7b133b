//! The pass over the queue: from the head, by backfilling, and into the background.

use dormouse_model::{Decision, PromotionMethod, StartReason};
use dormouse_units::{Cpus, Mode, Seats, TaskId, Tier, Time, VmId};

use super::super::config::BackgroundFill;
use super::super::explain::Noted;
use super::super::queue::{ExpectedEnding, QueuedJob, ShortestFirst};
use super::super::reservation::{HeadReservation, reservation_by_count};
use super::super::schedulers::OnPromotion;
use super::{BatchScheduler, JobPlacement, KnownJob, ScanResult};

impl BatchScheduler {
    /// Runs one pass over the queue: the three steps of Algorithm 1.
    pub(super) fn run_pass(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let before = self.scanned.take().filter(|scanned| scanned.left.shadow > now);
        if before.is_none() {
            self.run_from_the_head(now, vm, out);
        }
        if self.config.algorithm.backfills() && !self.queue.is_empty() {
            self.scanned = Some(self.backfill_jobs(now, vm, before, out));
        }
        if self.promotion.is_some() {
            match (self.config.fill, self.background) {
                (BackgroundFill::EveryPass, _) => self.fill_background((now, vm), before, out),
                // The last pass did not look at the jobs that it left waiting.
                (BackgroundFill::AfterDeparture, (0, _) | (_, true)) => {
                    self.fill_background((now, vm), None, out);
                }
                (BackgroundFill::AfterDeparture, (_, false)) => {}
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
                || !self.deploy_job((now, vm), &first, None, StartReason::FirstInLine, out)
            {
                break;
            }
            started += 1;
        }
        self.queue.drain(..started);
    }

    /// Step 2: a reservation for the head, then the jobs that do not delay it. After submissions
    /// alone, the reservation and the rest of the queue are as the pass `before` left them.
    fn backfill_jobs(
        &mut self,
        now: Time,
        vm: VmId,
        before: Option<ScanResult>,
        out: &mut Vec<Decision>,
    ) -> ScanResult {
        let head = self.queue[0];
        let mut scanned = before.unwrap_or_else(|| {
            let (left, pinned) = self.reserve_for_head(now, &head);
            ScanResult { upto: 1, left, pinned }
        });
        let from = scanned.upto;
        let (mut at, mut kept) = (from, from);
        while self.processors.idle_foregrounds() > 0 {
            let idle = self.processors.idle_foregrounds();
            let fits = |c: &QueuedJob| c.processes <= idle;
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

    /// Starts a candidate of the queue in the foreground if it fits now and does not delay the
    /// head.
    fn try_backfill(
        &mut self,
        (now, vm): (Time, VmId),
        head: TaskId,
        candidate: &QueuedJob,
        scanned: &mut ScanResult,
        out: &mut Vec<Decision>,
    ) -> bool {
        let HeadReservation { shadow, extra } = scanned.left;
        if now + candidate.estimate <= shadow {
            let why = StartReason::EndsBeforeShadow { head, shadow };
            return self.deploy_job((now, vm), candidate, None, why, out);
        }
        let starts = candidate.processes <= extra && {
            let why = StartReason::OnExtra { head, shadow, extra };
            self.deploy_job((now, vm), candidate, scanned.pinned, why, out)
        };
        if starts {
            scanned.left.extra -= candidate.processes;
        }
        starts
    }

    /// Makes EASY's reservation for `head`, the head of the queue; returns it, and `head`'s id if it may run only on its own processors (REASY).
    fn reserve_for_head(&self, now: Time, head: &QueuedJob) -> (HeadReservation, Option<TaskId>) {
        let idle = self.processors.idle_foregrounds();
        if self.promotion == Some(OnPromotion::Wait)
            && let Some(KnownJob { state: JobPlacement::Background { on, .. }, .. }) =
                self.jobs.get(head.id)
        {
            let shadow = self
                .processors
                .foreground_jobs(on)
                .filter_map(|job| match self.jobs.get(job)?.state {
                    JobPlacement::Foreground { expected_end, .. } => Some(expected_end),
                    JobPlacement::Waiting | JobPlacement::Background { .. } => None,
                })
                .fold(now, Time::max);
            let extra = idle - self.processors.idle_among(on);
            return (HeadReservation { shadow, extra }, Some(head.id));
        }
        (reservation_by_count(now, head.processes, idle, self.endings.in_order()), None)
    }

    /// Deploy (Algorithm 2): brings a job to the foreground, off the processors of `avoid`. Returns
    /// whether it could; the caller takes the job from the queue.
    fn deploy_job(
        &mut self,
        (now, vm): (Time, VmId),
        candidate: &QueuedJob,
        avoid: Option<TaskId>,
        reason: StartReason,
        out: &mut Vec<Decision>,
    ) -> bool {
        let id = candidate.id;
        let config = self.config;
        let Some(known) = self.jobs.get_mut(id) else { return false };
        let whole = now + known.job.estimate;
        let (on, expected_end, decision) = match &known.state {
            JobPlacement::Foreground { .. } => return false,
            JobPlacement::Waiting => {
                let chosen = self.processors.choose_foreground(candidate.processes, avoid);
                let Some(on) = chosen else { return false };
                if self.promotion.is_some() {
                    self.shortest.remove(candidate);
                }
                let seats = Seats { vm, tier: Tier::Foreground, cpus: on.clone() };
                let mode = Mode::Burst;
                (on, whole, Decision::Start { task: id, on: seats, mode, reason })
            }
            JobPlacement::Background { on, since } => {
                let (old, since) = (on.clone(), *since);
                let (on, by) = if self.processors.are_idle(&old) {
                    self.processors.leave_background(&old);
                    (old, PromotionMethod::Swap)
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
                        PromotionMethod::Kill { on: on.clone() }
                    } else {
                        PromotionMethod::Migrate { on: on.clone() }
                    };
                    (on, by)
                };
                let expected_end = config.end_expected_of(&by, (since, now), known.job.estimate);
                (on, expected_end, Decision::Promote { task: id, vm, by, reason })
            }
        };
        self.processors.sit_foreground(id, &known.job.usage, &on);
        if matches!(known.state, JobPlacement::Background { .. }) {
            self.background = (self.background.0 - 1, true);
        }
        self.endings.add(ExpectedEnding { at: expected_end, id, processes: candidate.processes });
        known.state = JobPlacement::Foreground { on, expected_end };
        out.push(decision);
        true
    }

    /// Step 3: puts waiting jobs into the background, shortest first. After submissions alone only
    /// the new jobs are looked at, since the others did not fit and the room has not grown.
    fn fill_background(
        &mut self,
        (now, vm): (Time, VmId),
        before: Option<ScanResult>,
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
            (_, Some(_)) => fresh.iter().collect::<ShortestFirst>().jobs_that_fit(room),
            (_, None) => self.shortest.jobs_that_fit(room),
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
            known.state = JobPlacement::Background { on: on.clone(), since: now };
            self.background.0 += 1;
            if let Ok(at) = self.queue.binary_search_by_key(&known.rank, QueuedJob::rank) {
                self.shortest.remove(&self.queue[at]);
            }
            let on = Seats { vm, tier: Tier::Background, cpus: on };
            let (mode, reason) = (Mode::Burst, StartReason::ShortestWaiting);
            out.push(Decision::Start { task: id, on, mode, reason });
        }
    }

    fn note_watched(&mut self, now: Time, reservation: Option<HeadReservation>) {
        let Some(watch) = &mut self.watch else { return };
        let Some(rank) = self.jobs.get(watch.job).map(|known| known.rank) else { return };
        let Ok(ahead) = self.queue.binary_search_by_key(&rank, QueuedJob::rank) else { return };
        let candidate = &self.queue[ahead];
        let idle = self.processors.idle_foregrounds();
        let what = match reservation {
            None => Noted::NotYet { ahead },
            Some(HeadReservation { shadow, .. }) if ahead == 0 => Noted::Head { idle, shadow },
            Some(_) if candidate.processes > idle => Noted::TooFewIdle { ahead, idle },
            Some(HeadReservation { shadow, extra })
                if now + candidate.estimate > shadow && candidate.processes > extra =>
            {
                Noted::WouldDelay { ahead, head: self.queue[0].id, shadow, extra }
            }
            Some(_) => Noted::Pinned { ahead },
        };
        watch.add_note(now, what);
    }
}
