//! Algorithms 1 to 3 of the MEASY paper, followed literally: no state is kept from one pass to the next.

use super::machine::{Machine, Place, Scheduler};

/// CPU usage of a process in the foreground, in parts per million, from which on its processor's background is not
/// used.
const THRESHOLD: u64 = 960_000;

impl Machine<'_> {
    /// Runs the three steps of Algorithm 1 of the paper.
    pub(crate) fn pass(&mut self) {
        for at in self.queue() {
            if self.needs(at) > self.idle() || !self.deploy(at, None) {
                break;
            }
        }
        if self.scheduler != Scheduler::Fcfs {
            self.backfill();
        }
        if !matches!(self.scheduler, Scheduler::Fcfs | Scheduler::Easy) {
            self.fill_the_background();
        }
    }

    /// Jobs without a foreground, in order of submission.
    fn queue(&self) -> Vec<usize> {
        let is_queued = |at: &usize| !matches!(self.present[*at].place, Place::Foreground(_));
        (0..self.present.len()).filter(is_queued).collect()
    }

    fn needs(&self, at: usize) -> usize {
        self.jobs[self.present[at].id].processes
    }

    fn idle(&self) -> usize {
        self.usages(true).iter().filter(|usage| usage.is_none()).count()
    }

    /// Step 2 of a pass: makes a reservation for the first job in the queue, and starts the jobs that do not delay it.
    fn backfill(&mut self) {
        let queue = self.queue();
        let Some((&head, rest)) = queue.split_first() else { return };
        let (shadow, mut extra, pinned) = self.reservation(head);
        for &at in rest {
            if self.needs(at) > self.idle() {
                continue;
            }
            if self.now + self.jobs[self.present[at].id].estimate <= shadow {
                self.deploy(at, None);
            } else if self.needs(at) <= extra && self.deploy(at, pinned) {
                extra -= self.needs(at);
            }
        }
    }

    /// Reservation of the first job in the queue: its start (the shadow time), the number of processors that are left
    /// over then, and, under REASY, the job itself if it can run only on its present processors (Algorithm 3).
    fn reservation(&self, head: usize) -> (u64, usize, Option<usize>) {
        let foreground = self.seats(true);
        if let (Scheduler::Reasy, Place::Background(on)) =
            (self.scheduler, &self.present[head].place)
        {
            let above = || on.iter().filter_map(|&processor| foreground[processor]);
            let ends = above().map(|(at, _)| self.present[at].expected_end);
            let idle_there = on.len() - above().count();
            return (ends.fold(self.now, u64::max), self.idle() - idle_there, Some(head));
        }
        // The end by which each busy processor is free: enough of them at the k-th smallest.
        let ends = foreground.iter().flatten();
        let ends: Vec<u64> =
            ends.map(|&(at, _)| self.present[at].expected_end.max(self.now)).collect();
        let free_by = |t: u64| self.idle() + ends.iter().filter(|end| **end <= t).count();
        let shadows = std::iter::once(self.now).chain(ends.iter().copied());
        let shadow = shadows.filter(|&t| free_by(t) >= self.needs(head)).min();
        let shadow = shadow.expect("the head fits the empty machine");
        (shadow, free_by(shadow) - self.needs(head), None)
    }

    /// Deploys a job to the foreground (Algorithm 2), not on the processors of job `avoid`; true if there was room.
    fn deploy(&mut self, at: usize, avoid: Option<usize>) -> bool {
        let above = self.usages(true);
        let on = match &self.present[at].place {
            Place::Background(on) if on.iter().all(|&p| above[p].is_none()) => Some(on.clone()),
            Place::Background(_) if self.scheduler == Scheduler::Reasy => None,
            _ => self.dispatch(at, avoid),
        };
        let Some(on) = on else { return false };
        match self.present[at].place {
            Place::Background(_) => self.promote(at, on),
            _ => self.present[at].place = Place::Foreground(on),
        }
        self.present[at].expected_end = self.now + self.jobs[self.present[at].id].estimate;
        true
    }

    /// Chooses idle processors for a job's foreground, those with the least used background first. The job's own
    /// background does not count, as the job leaves it. `None` if there are too few.
    fn dispatch(&self, at: usize, avoid: Option<usize>) -> Option<Vec<usize>> {
        let (above, seats, below) = (self.usages(true), self.seats(false), self.usages(false));
        let mut idle: Vec<(u64, usize)> = (0..self.processors)
            .filter(|&p| above[p].is_none())
            .filter_map(|p| match seats[p] {
                Some((other, _)) if Some(other) == avoid => None,
                Some((other, _)) if other != at => Some((below[p].unwrap_or(0), p)),
                _ => Some((0, p)),
            })
            .collect();
        idle.sort_unstable();
        let chosen: Vec<usize> = idle.iter().take(self.needs(at)).map(|(_, p)| *p).collect();
        (chosen.len() == self.needs(at)).then_some(chosen)
    }

    /// Step 3 of a pass: puts waiting jobs in the background, the shortest first, with their busiest processes on the
    /// processors with the least used foregrounds.
    fn fill_the_background(&mut self) {
        let mut waiting: Vec<usize> = self.queue();
        waiting.retain(|&at| self.present[at].place == Place::Waiting);
        waiting.sort_by_key(|&at| (self.jobs[self.present[at].id].estimate, at));
        for at in waiting {
            let (above, below) = (self.usages(true), self.usages(false));
            let mut room: Vec<(u64, usize)> = (0..self.processors)
                .filter(|&p| below[p].is_none())
                .map(|p| (above[p].unwrap_or(0), p))
                .filter(|(used, _)| *used < THRESHOLD)
                .collect();
            room.sort_unstable();
            if self.needs(at) <= room.len() {
                let on = room.iter().take(self.needs(at)).map(|(_, p)| *p).collect();
                self.present[at].place = Place::Background(on);
            }
        }
    }
}
