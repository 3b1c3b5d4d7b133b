//! How fast the tasks of a VM go on, by who sits beside whom.

use dormouse_units::{Mode, Ppm, Stream, Tier};

use super::Model;
use crate::running::Running;
use crate::sharing::{background_rate, background_share, times};

impl Model {
    /// Draws the loss of the task in `slot`, if it has one and that has not been.
    pub(super) fn draw_loss(&mut self, slot: u32) {
        let Some(running) = &self.slots[slot as usize] else { return };
        if running.tier == Tier::Foreground && running.loss.is_none() {
            let loss = self.loss(running);
            if let Some(running) = self.slots[slot as usize].as_mut() {
                running.loss = loss;
            }
        }
    }

    /// What a foreground task loses to its neighbours, if it has any.
    fn loss(&self, running: &Running) -> Option<Ppm> {
        let (sharing, seed) = self.sharing.as_ref()?;
        if !self.processors.have_background(&running.on) {
            return None;
        }
        let job = u64::from(running.task.get());
        let draw = || sharing.draw_loss(&mut Stream::new(*seed, "loss", job));
        Some(running.loss.unwrap_or_else(draw))
    }

    /// How fast a task goes on if nothing holds it: as its slowest process does.
    pub(super) fn rate(&self, running: &Running) -> Ppm {
        let Running { on, usage, utilisation, tier, mode, .. } = running;
        let most = times(self.machine.ceiling(*mode), self.processors.supply(on));
        if *tier == Tier::Foreground {
            return self.loss(running).map_or(most, |loss| times(most, loss.rest()));
        }
        // The least of what processes get, as a fraction: one division for all of them.
        // Where nobody says more, one in nothing: any is less.
        let ((mut least, mut of), is_burstable) = ((1, 0), self.machine.is_burstable());
        for (n, &cpu) in on.iter().enumerate() {
            let processor = self.processors.at(cpu);
            let Some(before) = processor.user(Tier::Foreground) else { continue };
            let used = match is_burstable {
                true => times(before.usage, self.ceiling_of(before.slot)),
                false => before.usage,
            };
            let utilisation = utilisation.as_ref().map_or(Ppm::ONE, |x| x.of(n));
            let gets = background_share(utilisation, used, processor.supply);
            let wants = u64::from(usage.of(n).get());
            if gets * of < least * wants {
                (least, of) = (gets, wants);
            }
        }
        background_rate(most, least, of)
    }

    /// What the credits let the task in `slot` have of a burstable VM.
    fn ceiling_of(&self, slot: u32) -> Ppm {
        let mode = self.slots[slot as usize].as_ref().map_or(Mode::Burst, |r| r.mode);
        self.machine.ceiling(mode)
    }
}
