//! A modelled VM of two-tier vCPUs that runs parallel jobs: how fast every job advances.
//!
//! Rates are constant between placements and ends of jobs and are made anew only for
//! the jobs that one of those touches (MEASY, section 3.2, without its time slices):
//!
//! - a process alone on its processor: 1, in either tier;
//! - a foreground job with a neighbour on any of its processors: 1 − loss;
//! - a background process below a foreground of usage u_fg: min(1, x · (1 − u_fg) / u_bg);
//! - a job: the rate of its slowest process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_units::{Attempt, Cpus, Ppm, Span, Stream, TaskId, Tier, Time, Usage};

use crate::sharing::Sharing;

/// Work that is left, in microseconds of a processor of its own × parts per million.
type Left = u128;

/// A parallel job on a modelled VM.
#[derive(Clone, Debug)]
pub struct GangWork {
    /// The job.
    pub task: TaskId,
    /// The number of this start of the job.
    pub attempt: Attempt,
    /// How long it runs on vCPUs of its own.
    pub runtime: Span,
    /// CPU usage of its processes.
    pub usage: Usage,
    /// In which slot of its vCPUs.
    pub tier: Tier,
    /// The vCPU of each process.
    pub on: Cpus,
}

#[derive(Clone, Debug)]
struct Running {
    work: GangWork,
    left: Left,
    rate: Ppm,
    /// Up to when progress is accounted for; in the future while the job migrates.
    since: Time,
    /// Loss of its foreground placement; drawn when it first has a neighbour.
    loss: Option<Ppm>,
    /// Of idle cycles in the background: one for all its processes, or one each.
    utilisation: Vec<Ppm>,
    /// Entries of the agenda with another turn are out of date.
    turn: u64,
    /// Whether the agenda's entry of this turn is right, or right not to be there.
    is_planned: bool,
    touched: bool,
}

impl Running {
    fn settle(&mut self, now: Time) {
        let elapsed = now.since(self.since).as_micros();
        if elapsed > 0 {
            let done = u128::from(elapsed) * u128::from(self.rate.get());
            self.left = self.left.saturating_sub(done);
            self.since = now;
        }
    }

    /// When it ends at this rate; `None` if it stands still or would outlast time.
    fn ends(&self) -> Option<Time> {
        let us = if self.left == 0 {
            0
        } else {
            self.left.div_ceil(match self.rate.get() {
                0 => return None,
                rate => u128::from(rate),
            })
        };
        u64::try_from(us).ok().map(|us| self.since + Span::from_micros(us))
    }
}

/// A process of the job in this slot, in a VM.
#[derive(Clone, Copy, Debug)]
struct Seat {
    slot: usize,
    usage: Ppm,
}

#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    foreground: Option<Seat>,
    background: Option<Seat>,
}

/// All vCPUs of a VM, what runs on them and how fast.
#[derive(Clone, Debug)]
pub struct TwoTierModel {
    now: Time,
    sharing: Sharing,
    seed: u64,
    processors: Vec<Processor>,
    slots: Vec<Option<Running>>,
    free_slots: Vec<usize>,
    /// (end, job, slot, turn), soonest first.
    agenda: BinaryHeap<Reverse<(Time, TaskId, usize, u64)>>,
    touched: Vec<usize>,
    /// How often a job's end was worked out: no two of them have the same number.
    turns: u64,
}

impl TwoTierModel {
    /// An idle VM of so many vCPUs, whose two tiers share them as `sharing` says.
    #[must_use]
    pub fn new(processors: u32, sharing: Sharing, seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            sharing,
            seed,
            processors: vec![Processor::default(); processors as usize],
            slots: Vec::new(),
            free_slots: Vec::new(),
            agenda: BinaryHeap::new(),
            touched: Vec::new(),
            turns: 0,
        }
    }

    fn is_current(&self, job: TaskId, slot: usize, turn: u64) -> bool {
        self.slots[slot].as_ref().is_some_and(|r| r.work.task == job && r.turn == turn)
    }

    fn drop_stale_entries(&mut self) {
        let running = self.slots.len() - self.free_slots.len();
        if self.agenda.len() > 64 + 4 * running {
            let agenda = std::mem::take(&mut self.agenda);
            self.agenda =
                agenda.into_iter().filter(|e| self.is_current(e.0.1, e.0.2, e.0.3)).collect();
        }
    }

    /// Seats the processes of the job in `slot` and draws what sharing does to them.
    fn sit(&mut self, now: Time, slot: usize, tier: Tier) {
        let Some(running) = self.slots[slot].as_mut() else { return };
        // What came before counts at the rate of before.
        running.settle(now);
        running.work.tier = tier;
        running.is_planned = false;
        running.loss = None;
        if tier == Tier::Background {
            let job = u64::from(running.work.task.get());
            let stream = &mut Stream::new(self.seed, "utilisation", job);
            running.utilisation = self.sharing.draw_utilisations(running.work.on.len(), stream);
        }
        let (on, usage) = (running.work.on.clone(), running.work.usage.clone());
        for (n, &p) in on.iter().enumerate() {
            let seat = Seat { slot, usage: usage.of(n) };
            let processor = &mut self.processors[p as usize];
            let neighbour = match tier {
                Tier::Foreground => {
                    processor.foreground = Some(seat);
                    processor.background
                }
                Tier::Background => {
                    processor.background = Some(seat);
                    processor.foreground
                }
            };
            if let Some(neighbour) = neighbour {
                self.touch(neighbour.slot);
            }
        }
        self.touch(slot);
    }

    /// Takes the processes of the job in `slot` off their seats.
    fn stand(&mut self, now: Time, slot: usize) {
        let Some(Some(running)) = self.slots.get_mut(slot) else { return };
        running.settle(now);
        let (on, tier) = (running.work.on.clone(), running.work.tier);
        for &p in on.iter() {
            let processor = &mut self.processors[p as usize];
            let neighbour = match tier {
                Tier::Foreground => {
                    processor.foreground = None;
                    processor.background
                }
                Tier::Background => {
                    processor.background = None;
                    processor.foreground
                }
            };
            if let Some(neighbour) = neighbour {
                self.touch(neighbour.slot);
            }
        }
    }

    fn touch(&mut self, slot: usize) {
        if let Some(running) = self.slots[slot].as_mut()
            && !running.touched
        {
            running.touched = true;
            self.touched.push(slot);
        }
    }
}

impl TwoTierModel {
    /// A job starts, from the beginning of its work.
    pub fn start(&mut self, now: Time, work: GangWork) {
        self.now = now;
        let (tier, left) = (work.tier, whole(&work));
        let running = Running {
            work,
            left,
            rate: Ppm::ONE,
            since: now,
            loss: None,
            utilisation: Vec::new(),
            turn: 0,
            is_planned: false,
            touched: false,
        };
        let slot = self.free_slots.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(running);
        self.sit(now, slot, tier);
    }

    /// A job is taken off; whether it was there.
    pub fn stop(&mut self, now: Time, task: TaskId, attempt: Attempt) -> bool {
        self.now = now;
        let Some(slot) = self.slot(task, attempt) else { return false };
        self.stand(now, slot);
        self.slots[slot] = None;
        self.free_slots.push(slot);
        true
    }

    /// The tiers of a background job's vCPUs swap; whether it was there.
    pub fn swap(&mut self, now: Time, task: TaskId, attempt: Attempt) -> bool {
        self.now = now;
        let Some(slot) = self.slot(task, attempt) else { return false };
        self.stand(now, slot);
        self.sit(now, slot, Tier::Foreground);
        true
    }

    /// A job goes on in the foreground of these vCPUs, which it holds without progress for as
    /// long as the move takes; whether it was there.
    pub fn migrate(
        &mut self,
        now: Time,
        task: TaskId,
        attempt: Attempt,
        on: Cpus,
        takes: Span,
    ) -> bool {
        self.now = now;
        let Some(slot) = self.slot(task, attempt) else { return false };
        self.stand(now, slot);
        if let Some(running) = self.slots[slot].as_mut() {
            running.work.on = on;
            running.since = now + takes;
        }
        self.sit(now, slot, Tier::Foreground);
        true
    }

    /// Whether nobody is on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.len() == self.free_slots.len()
    }

    fn slot(&self, task: TaskId, attempt: Attempt) -> Option<usize> {
        let is_it = |r: &Running| (r.work.task, r.work.attempt) == (task, attempt);
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(is_it))
    }

    /// Works out what placements and ends of this instant have changed.
    fn settle(&mut self) {
        let now = self.now;
        while let Some(slot) = self.touched.pop() {
            let Some(running) = self.slots[slot].as_mut() else { continue };
            running.touched = false;
            running.settle(now);
            let rate = match running.work.tier {
                Tier::Background => background_job_rate(&self.processors, running),
                Tier::Foreground if has_neighbour(&self.processors, running) => {
                    let job = u64::from(running.work.task.get());
                    let loss = running.loss.get_or_insert_with(|| {
                        self.sharing.draw_loss(&mut Stream::new(self.seed, "loss", job))
                    });
                    loss.rest()
                }
                Tier::Foreground => Ppm::ONE,
            };
            if rate == running.rate && running.is_planned {
                continue;
            }
            running.rate = rate;
            running.is_planned = true;
            self.turns += 1;
            running.turn = self.turns;
            if let Some(at) = running.ends() {
                self.agenda.push(Reverse((at, running.work.task, slot, running.turn)));
            }
        }
        self.drop_stale_entries();
    }

    /// When the next job ends.
    pub fn next_end(&mut self) -> Option<Time> {
        if !self.touched.is_empty() {
            self.settle();
        }
        self.peek_end()
    }

    fn peek_end(&mut self) -> Option<Time> {
        loop {
            let &Reverse((at, job, slot, turn)) = self.agenda.peek()?;
            if self.is_current(job, slot, turn) {
                return Some(at);
            }
            self.agenda.pop();
        }
    }

    /// Takes the next job that ends by `now` off its vCPUs; what that changes for others is worked
    /// out after the last of an instant.
    pub fn take_ended(&mut self, now: Time) -> Option<(TaskId, Attempt)> {
        if self.peek_end()? > now {
            return None;
        }
        self.now = now;
        let Reverse((_, task, slot, _)) = self.agenda.pop()?;
        self.stand(now, slot);
        let running = self.slots[slot].take()?;
        self.free_slots.push(slot);
        Some((task, running.work.attempt))
    }
}

fn whole(work: &GangWork) -> Left {
    u128::from(work.runtime.as_micros()) * u128::from(Ppm::ONE.get())
}

fn has_neighbour(processors: &[Processor], running: &Running) -> bool {
    running.work.on.iter().any(|&p| processors[p as usize].background.is_some())
}

/// The rate of the slowest process.
fn background_job_rate(processors: &[Processor], running: &Running) -> Ppm {
    let each = &running.utilisation;
    let rates = running.work.on.iter().enumerate().map(|(n, &p)| match processors[p as usize] {
        Processor { foreground: Some(fg), background: Some(bg) } => {
            let utilisation = each.get(n).or(each.first()).copied().unwrap_or(Ppm::ONE);
            background_rate(utilisation, fg.usage, bg.usage)
        }
        _ => Ppm::ONE,
    });
    rates.min().unwrap_or(Ppm::ONE)
}

/// min(1, x · (1 − u_fg) / u_bg)
fn background_rate(utilisation: Ppm, fg: Ppm, bg: Ppm) -> Ppm {
    let gets = u64::from(utilisation.get()) * u64::from(fg.rest().get());
    match u64::from(bg.get()) {
        0 => Ppm::ONE,
        wants => u32::try_from(gets / wants).map_or(Ppm::ONE, |ppm| Ppm::new(ppm).min(Ppm::ONE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_gets_what_the_foreground_leaves() {
        let rate = |x, fg, bg| background_rate(Ppm::new(x), Ppm::new(fg), Ppm::new(bg)).get();
        assert_eq!(rate(860_000, 400_000, 1_000_000), 516_000);
        assert_eq!(rate(430_000, 400_000, 500_000), 516_000);
        assert_eq!(rate(1_000_000, 100_000, 500_000), 1_000_000);
        assert_eq!(rate(860_000, 1_000_000, 500_000), 0);
    }
}
