//! The speed at which the tasks of a VM go on, by who sits beside whom.

use dormouse_units::{Mode, Ppm, RandomStream, Tier};

use super::Model;
use crate::running::Running;
use crate::sharing::{background_rate, background_share, paced, times};

/// What is left of this much of a vCPU once so much of it is used.
fn left_of(whole: Ppm, used: Ppm) -> Ppm {
    Ppm::new(whole.get().saturating_sub(used.get()))
}

impl Model {
    /// What the task in `slot` loses to its neighbours, which is drawn once.
    pub(super) fn draw_loss(&mut self, slot: u32) -> Option<Ppm> {
        let loss = self.loss(self.slots[slot as usize].as_ref()?)?;
        self.slots[slot as usize].as_mut()?.loss = Some(loss);
        Some(loss)
    }

    /// What a foreground task loses to its neighbours, if it has any.
    fn loss(&self, running: &Running) -> Option<Ppm> {
        let (sharing, seed) = self.sharing.as_ref()?;
        if running.tier == Tier::Background || !self.processors.have_background(&running.on) {
            return None;
        }
        let job = u64::from(running.task.get());
        let draw = || sharing.draw_loss(&mut RandomStream::new(*seed, "loss", job));
        Some(running.loss.unwrap_or_else(draw))
    }

    /// The speed at which a task goes on if nothing holds it: as its slowest process does.
    pub(super) fn rate(&self, running: &Running) -> Ppm {
        self.rate_at(running, self.loss(running))
    }

    /// The same of one that loses this to its neighbours.
    pub(super) fn rate_at(&self, running: &Running, loss: Option<Ppm>) -> Ppm {
        let Running { on, usage, utilisation, tier, mode, .. } = running;
        let most = times(self.unhindered(running, *mode), self.processors.supply(on));
        if *tier == Tier::Foreground {
            return loss.map_or(most, |loss| times(most, loss.rest_of_whole()));
        }
        // The least of what processes get, as a fraction: one division for all of them.
        // Where nobody says more, one in nothing: any is less.
        let (mut least, mut of) = (1, 0);
        let (whole, has_credits) = (self.machine.ceiling(Mode::Burst), self.machine.is_burstable());
        for (n, &cpu) in on.iter().enumerate() {
            let processor = self.processors.at(cpu);
            let Some(before) = processor.user(Tier::Foreground) else { continue };
            let used = match has_credits {
                true => times(before.usage, self.pace_of(before.slot)),
                false => before.usage,
            };
            let utilisation = utilisation.as_ref().map_or(Ppm::ONE, |x| x.of_process(n));
            let gets = background_share(utilisation, left_of(whole, used), processor.supply);
            let wants = u64::from(usage.of_process(n).get());
            if gets * of < least * wants {
                (least, of) = (gets, wants);
                if gets == 0 {
                    break;
                }
            }
        }
        background_rate(most, least, of)
    }

    /// The speed at which the credits let a task go on, of which some process or other computes for as much of
    /// its time as their usage is together, at most all of it.
    fn unhindered(&self, running: &Running, mode: Mode) -> Ppm {
        match self.machine.ceiling(mode) {
            Ppm::ONE => Ppm::ONE,
            most => {
                let each =
                    (0..running.on.len()).map(|n| u64::from(running.usage.of_process(n).get()));
                let usage = each.sum::<u64>().min(Ppm::ONE.get().into());
                paced(most, Ppm::new(u32::try_from(usage).unwrap_or(u32::MAX)))
            }
        }
    }

    /// The same of the task in `slot`.
    fn pace_of(&self, slot: u32) -> Ppm {
        let running = self.slots[slot as usize].as_ref();
        running.map_or(Ppm::ONE, |running| self.unhindered(running, running.mode))
    }
}
