//! Programs that save their work at a notice: requests about a program are put off until its save is over.

use dormouse_proto::v1::{Announce, announce::What};
use dormouse_units::{Ppm, Span, Time};
use dormouse_vm::PART_TO_SAVE;

use tokio::time::Instant;

use super::{VmOwner, notices::at_notice};
use crate::agent::{
    report::Key,
    vm::{
        clock::CommandStamp,
        last_save::{DeferredRequest, NoticeSave},
    },
};

/// Returns the time until which programs may save their work, on the run's clock; `None`: the announcement doesn't say that the VM
/// will end. What programs have saved by then is kept; the rest of the notice time is for sending it.
pub(super) fn save_at(said: &Announce, asked: &CommandStamp) -> Option<Time> {
    let (Some(What::TerminateAtUs(end)), Some(decided)) = (said.what, asked.at) else {
        return None;
    };
    let notice = Time::from_micros(end).since(decided).as_micros();
    let part = u128::from(notice) * u128::from(PART_TO_SAVE.get()) / u128::from(Ppm::ONE.get());
    Some(decided + Span::from_micros(u64::try_from(part).unwrap_or(u64::MAX)))
}

impl VmOwner {
    /// Begins the saves of the VM's programs that save their work at a notice, if the announcement is such a notice.
    pub(super) fn await_saves(&mut self, said: &Announce, asked: &CommandStamp) {
        let (Some(save_at), Some(decided)) = (save_at(said, asked), asked.at) else { return };
        let until = asked.decided_at() + self.context.speedup.to_real(save_at.since(decided));
        let running = self.attempts.iter().filter(|it| self.lives.is_running(it.key));
        let savers = running.filter(|it| at_notice(&it.order).is_some());
        let savers: Vec<Key> = savers.map(|it| it.key).collect();
        for key in savers {
            self.meter_own(key);
            if let Some(attempt) = self.attempt_mut(key) {
                let done = Ppm::new(attempt.done_ppm());
                attempt.last_save = Some(NoticeSave::new(until, done));
            }
        }
    }

    /// Puts off a request to an attempt that is still saving its work; returns the request if the attempt isn't saving.
    pub(super) fn put_off(
        &mut self,
        key: Key,
        request: DeferredRequest,
    ) -> Option<DeferredRequest> {
        match self.attempt_mut(key).and_then(|attempt| attempt.last_save.as_mut()) {
            Some(save) => save.put_off(Instant::now(), request),
            None => Some(request),
        }
    }

    /// Returns the earliest time at which a put-off request is to be carried out; `None`: no request is put off.
    pub(super) fn put_off_until(&self) -> Option<Instant> {
        let saves = self.attempts.iter().filter_map(|it| it.last_save.as_ref());
        saves.filter_map(NoticeSave::put_off_until).min()
    }

    /// Carries out the requests that were put off because of saves that are over by `now`.
    pub(super) fn do_put_off(&mut self, now: Instant) {
        let saves = self.attempts.iter_mut().filter_map(|it| it.last_save.as_mut());
        let due: Vec<DeferredRequest> = saves.filter_map(|save| save.take_due(now)).collect();
        for request in due {
            match request {
                DeferredRequest::Checkpoint(of) => self.checkpoint_now(of),
                DeferredRequest::Stop(stop, asked) => self.obey_stop(stop, &asked),
            }
        }
    }
}
