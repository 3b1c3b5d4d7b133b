//! Handles each kind of message to the conductor.

use ractor::ActorRef;

use super::{ConductorState, SAY_CLOCK_EVERY, SHOW_EVERY, send_later};
use crate::messages::message::ConductorMsg;

impl ConductorState {
    /// Handles a message to the conductor.
    pub(super) async fn handle_message(
        &mut self,
        myself: &ActorRef<ConductorMsg>,
        message: ConductorMsg,
    ) {
        match message {
            ConductorMsg::Hello { hello, ack, connection, reply } => {
                let answer = self.worker_connected(myself, hello, ack, connection).await;
                let _ = reply.send(answer);
            }
            ConductorMsg::Heard { host, through, heard } => self.take_reports(host, through, heard),
            ConductorMsg::Attached { host } => self.is_back(host),
            ConductorMsg::Lost { host, why } => self.lose_host(host, why),
            ConductorMsg::LogWentBack { host, ack, said } => self.log_went_back(host, ack, said),
            ConductorMsg::Tick => self.alarm_rang(),
            ConductorMsg::StillStuck { since } => self.still_stuck(since),
            ConductorMsg::Submit { asked, reply } => self.take_job(&asked, reply),
            ConductorMsg::Shut(reply) => self.close_intake(reply),
            ConductorMsg::Caller(request) => self.serve_caller(request),
            ConductorMsg::Interrupt { wanted, reply } => self.inject_interruption(wanted, reply),
            ConductorMsg::Cancel { why } => self.cancel_run(|_| why),
            ConductorMsg::Pause { why } => self.pause_run(why).await,
            ConductorMsg::Close => {
                let vms = self.outstanding.vms();
                tracing::warn!(vms, "the workers did not report all VMs gone in time");
                self.outstanding.give_up_vms();
                // They would not answer, either.
                self.checks.skip_checks();
            }
            ConductorMsg::ChecksLate => self.checks_are_late(),
            ConductorMsg::Show => {
                self.show_progress();
                send_later(SHOW_EVERY, myself, ConductorMsg::Show);
            }
            ConductorMsg::SayClock => {
                if self.returning.is_none() {
                    self.say_clock();
                    self.look_for_answers();
                }
                send_later(SAY_CLOCK_EVERY, myself, ConductorMsg::SayClock);
            }
            ConductorMsg::Status(reply) => {
                let _ = reply.send(self.current_progress());
            }
        }
    }
}
