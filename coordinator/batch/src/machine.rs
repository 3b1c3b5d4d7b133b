//! A modelled machine of two-tier processors: how fast every job advances.
//!
//! Rates are constant between placements and ends of jobs and are made anew only for
//! the jobs that one of those touches (section 3.2, without its time slices):
//!
//! - a process alone on its processor: 1, in either tier;
//! - a foreground job with a neighbour on any of its processors: 1 − loss;
//! - a background process below a foreground of usage u_fg: min(1, x · (1 − u_fg) / u_bg);
//! - a job: the rate of its slowest process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_cloud::Stream;
use dormouse_units::{Attempt, Ppm, Span, Time};

use crate::chance::Sharing;
use crate::decision::{Move, Tier};
use crate::executor::{Executor, Work};
use crate::job::{JobId, Placement};

/// Work that is left, in microseconds of a processor of its own × parts per million.
type Left = u128;

#[derive(Clone, Debug)]
struct Running {
    work: Work,
    attempt: Attempt,
    tier: Tier,
    on: Placement,
    left: Left,
    rate: Ppm,
    /// Up to when progress is accounted for; in the future while the job migrates.
    since: Time,
    /// Loss of its foreground placement; drawn when it first has a neighbour.
    loss: Option<Ppm>,
    /// Of idle cycles in the background: one for all its processes, or one each.
    utilisation: Vec<Ppm>,
    /// Entries of the agenda with another turn are out of date.
    turn: u32,
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

/// All processors, what runs on them and how fast.
#[derive(Clone, Debug)]
pub struct Machine {
    sharing: Sharing,
    seed: u64,
    processors: Vec<Processor>,
    slots: Vec<Option<Running>>,
    free_slots: Vec<usize>,
    /// (end, job, slot, turn), soonest first.
    agenda: BinaryHeap<Reverse<(Time, JobId, usize, u32)>>,
    touched: Vec<usize>,
}

impl Machine {
    /// An idle machine of `processors` processors that share as `sharing` says.
    #[must_use]
    pub fn new(processors: u32, sharing: Sharing, seed: u64) -> Self {
        Self {
            sharing,
            seed,
            processors: vec![Processor::default(); processors as usize],
            slots: Vec::new(),
            free_slots: Vec::new(),
            agenda: BinaryHeap::new(),
            touched: Vec::new(),
        }
    }

    fn is_current(&self, job: JobId, slot: usize, turn: u32) -> bool {
        self.slots[slot].as_ref().is_some_and(|r| r.work.job == job && r.turn == turn)
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
        running.tier = tier;
        running.is_planned = false;
        running.loss = None;
        if tier == Tier::Background {
            let job = u64::from(running.work.job.get());
            let stream = &mut Stream::new(self.seed, "utilisation", job);
            running.utilisation = self.sharing.draw_utilisations(running.on.len(), stream);
        }
        let (on, usage) = (running.on.clone(), running.work.usage.clone());
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
        let (on, tier) = (running.on.clone(), running.tier);
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

impl Executor for Machine {
    fn start(
        &mut self,
        now: Time,
        work: Work,
        attempt: Attempt,
        tier: Tier,
        on: Placement,
    ) -> usize {
        let left = whole(&work);
        let running = Running {
            work,
            attempt,
            tier,
            on,
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
        slot
    }

    fn promote(&mut self, now: Time, slot: usize, attempt: Attempt, by: &Move, cost: Span) {
        self.stand(now, slot);
        let Some(Some(running)) = self.slots.get_mut(slot) else { return };
        running.attempt = attempt;
        match by {
            Move::Swap => {}
            Move::Kill { on } => {
                running.on = on.clone();
                running.left = whole(&running.work);
            }
            Move::Migrate { on } => {
                running.on = on.clone();
                running.since = now + cost;
            }
        }
        self.sit(now, slot, Tier::Foreground);
    }

    fn settle(&mut self, now: Time) {
        while let Some(slot) = self.touched.pop() {
            let Some(running) = self.slots[slot].as_mut() else { continue };
            running.touched = false;
            running.settle(now);
            let rate = match running.tier {
                Tier::Background => background_job_rate(&self.processors, running),
                Tier::Foreground if has_neighbour(&self.processors, running) => {
                    let job = u64::from(running.work.job.get());
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
            running.turn += 1;
            if let Some(at) = running.ends() {
                self.agenda.push(Reverse((at, running.work.job, slot, running.turn)));
            }
        }
        self.drop_stale_entries();
    }

    fn next_end(&mut self) -> Option<Time> {
        loop {
            let &Reverse((at, job, slot, turn)) = self.agenda.peek()?;
            if self.is_current(job, slot, turn) {
                return Some(at);
            }
            self.agenda.pop();
        }
    }

    fn take_ended(&mut self, now: Time) -> Option<(JobId, Attempt)> {
        if self.next_end()? > now {
            return None;
        }
        let Reverse((_, job, slot, _)) = self.agenda.pop()?;
        self.stand(now, slot);
        let running = self.slots[slot].take()?;
        self.free_slots.push(slot);
        Some((job, running.attempt))
    }
}

fn whole(work: &Work) -> Left {
    u128::from(work.runtime.as_micros()) * u128::from(Ppm::ONE.get())
}

fn has_neighbour(processors: &[Processor], running: &Running) -> bool {
    running.on.iter().any(|&p| processors[p as usize].background.is_some())
}

/// The rate of the slowest process.
fn background_job_rate(processors: &[Processor], running: &Running) -> Ppm {
    let each = &running.utilisation;
    let rates = running.on.iter().enumerate().map(|(n, &p)| match processors[p as usize] {
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
