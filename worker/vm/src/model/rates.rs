//! Speeds of a VM's tasks, which depend on the tasks beside them on their vCPUs.

use dormouse_units::{Mode, Ppm, RandomStream, Tier};

use super::VmModel;
use crate::running::SeatedTask;
use crate::sharing::{background_rate, background_share, paced_speed, times_share};

/// Returns what is left of the share `whole` of a vCPU after the part `used` of it is used.
fn left_of(whole: Ppm, used: Ppm) -> Ppm {
    Ppm::new(whole.get().saturating_sub(used.get()))
}

impl VmModel {
    /// Returns the part of its speed that the task in `slot` loses to background neighbours, drawn at random once; `None`: it loses
    /// nothing.
    pub(super) fn draw_loss(&mut self, slot: u32) -> Option<Ppm> {
        let loss = self.neighbour_loss(self.slots[slot as usize].as_ref()?)?;
        self.slots[slot as usize].as_mut()?.loss = Some(loss);
        Some(loss)
    }

    /// Returns the part of its speed that a foreground task loses to its background neighbours; `None`: it has no loss.
    fn neighbour_loss(&self, running: &SeatedTask) -> Option<Ppm> {
        let (sharing, seed) = self.sharing.as_ref()?;
        if running.tier == Tier::Background || !self.processors.have_background(&running.on) {
            return None;
        }
        let job = u64::from(running.task.get());
        let draw = || sharing.draw_loss(&mut RandomStream::new(*seed, "loss", job));
        Some(running.loss.unwrap_or_else(draw))
    }

    /// Returns the speed of a task, as if it weren't stopped, which is the speed of its slowest process.
    pub(super) fn task_rate(&self, running: &SeatedTask) -> Ppm {
        self.rate_at(running, self.neighbour_loss(running))
    }

    /// Returns the speed of a task, as if it weren't stopped, if it loses the part `loss` of its speed to neighbours.
    pub(super) fn rate_at(&self, running: &SeatedTask, loss: Option<Ppm>) -> Ppm {
        let SeatedTask { on, usage, utilisation, tier, mode, .. } = running;
        let most =
            times_share(self.unhindered_rate(running, *mode), self.processors.least_supply(on));
        if *tier == Tier::Foreground {
            return loss.map_or(most, |loss| times_share(most, loss.rest_of_whole()));
        }
        // The least of what processes get, as a fraction: one division for all of them.
        // Where nobody says more, one in nothing: any is less.
        let (mut least, mut of) = (1, 0);
        let (whole, has_credits) =
            (self.machine.speed_ceiling(Mode::Burst), self.machine.is_burstable());
        for (n, &cpu) in on.iter().enumerate() {
            let processor = self.processors.processor_at(cpu);
            let Some(before) = processor.seat_user(Tier::Foreground) else { continue };
            let used = match has_credits {
                true => times_share(before.usage, self.pace_of(before.slot)),
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

    /// Returns the speed that credits allow a task that has its vCPUs alone, in the CPU mode `mode`.
    fn unhindered_rate(&self, running: &SeatedTask, mode: Mode) -> Ppm {
        match self.machine.speed_ceiling(mode) {
            Ppm::ONE => Ppm::ONE,
            most => {
                let each =
                    (0..running.on.len()).map(|n| u64::from(running.usage.of_process(n).get()));
                let usage = each.sum::<u64>().min(Ppm::ONE.get().into());
                paced_speed(most, Ppm::new(u32::try_from(usage).unwrap_or(u32::MAX)))
            }
        }
    }

    /// Returns the speed that the VM's credits allow the task in `slot`.
    fn pace_of(&self, slot: u32) -> Ppm {
        let running = self.slots[slot as usize].as_ref();
        running.map_or(Ppm::ONE, |running| self.unhindered_rate(running, running.mode))
    }
}
