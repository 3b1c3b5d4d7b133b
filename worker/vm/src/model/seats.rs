//! Seats of a VM's tasks: tasks take seats, leave them, or move to others.

use dormouse_units::{Attempt, Cpus, RandomStream, Span, TaskId, Tier, Time};

use super::{VmModel, bring_up_to};
use crate::processors::ProcessSeat;

impl VmModel {
    /// Moves a task to the foreground of other vCPUs, where the task is stopped for as long as the move takes.
    pub(super) fn reseat_task(
        &mut self,
        now: Time,
        task: TaskId,
        attempt: Attempt,
        on: Cpus,
        stands: Span,
    ) -> bool {
        self.pass_until(now);
        let Some(slot) = self.slot_of(task, attempt) else { return false };
        let Some(running) = &self.slots[slot as usize] else { return false };
        let is_free = self.processors.check_free(&on, Tier::Foreground, Some(slot)).is_ok();
        if on.len() != running.on.len() || !is_free {
            return false;
        }
        self.leave_seats(slot);
        let (frozen, now) = (self.machine.is_frozen(), self.now);
        if let Some(running) = self.slots[slot as usize].as_mut() {
            bring_up_to(running, now, frozen);
            (running.on, running.tier) = (on, Tier::Foreground);
            if stands > Span::ZERO && !running.is_finished() {
                running.stand_still(stands, false);
            }
        }
        self.note_use(slot);
        self.changed = true;
        true
    }

    /// Updates how the task in `slot` uses its seats, and marks the task and its neighbours, so that their rates are recomputed.
    pub(super) fn note_use(&mut self, slot: u32) {
        let Some(running) = self.slots[slot as usize].as_mut() else { return };
        if running.tier == Tier::Background
            && running.utilisation.is_none()
            && let Some((sharing, seed)) = &self.sharing
        {
            let stream =
                &mut RandomStream::new(*seed, "utilisation", u64::from(running.task.get()));
            running.utilisation = Some(sharing.draw_utilisations(running.on.len(), stream));
        }
        let is_idle = running.is_finished();
        let seat = |usage| Some(ProcessSeat { slot, usage, is_idle });
        let (on, tier, touched) = (&running.on, running.tier, &mut self.touched);
        match running.uniform_now().map(seat) {
            Some(all) => {
                self.processors.put_task(on, tier, |_| all, |other| touched.add_slot(other));
            }
            None => {
                let seat = |n| seat(running.usage_now(n));
                self.processors.put_task(on, tier, seat, |other| touched.add_slot(other));
            }
        }
        touched.add_slot(slot);
    }

    /// Removes the task in `slot` from its seats, and marks the neighbours in these seats, so that their rates are
    /// computed again.
    pub(super) fn leave_seats(&mut self, slot: u32) {
        let Some(running) = &self.slots[slot as usize] else { return };
        let touched = &mut self.touched;
        self.processors.put_task(
            &running.on,
            running.tier,
            |_| None,
            |other| touched.add_slot(other),
        );
    }
}
