//! Calls of the provider's API, and what instances report: put into the order of the run's events, and answered once they are
//! in the log.

use dormouse_ec2::ApiDesk;
use dormouse_model::{Command, Event, ProviderAnnouncement, Step};
use dormouse_units::{HostId, VmId};
use tokio::sync::oneshot;

use super::ConductorState;
use crate::messages::api_calls::{
    ApiAnswer, ConsoleOutput, DeskRequest, DurableReply, RunDesk, interruption_of,
};

impl ConductorState {
    /// Handles a request of a caller of the provider's API.
    pub(super) fn serve_caller(&mut self, request: DeskRequest) {
        let Some(RunDesk { desk, .. }) = self.plan.api.clone() else { return };
        match request {
            DeskRequest::Call { event, reply } => self.take_call(event, reply),
            DeskRequest::Look(look) => {
                let now = self.clock.show_now();
                if self.begun && self.broken.is_none() {
                    self.hear_until(now, None);
                }
                look.look(&desk, self.last.max(now));
            }
            DeskRequest::Interrupt { instance, why, reply } => {
                let vm = desk.with_desk(|desk| desk.interruptible(&instance));
                match vm.map(|vm| self.try_interrupt(interruption_of(vm, why))) {
                    Some(Ok(_)) => {
                        self.batch.then.push(Box::new(DurableReply { answer: true, reply }));
                    }
                    None | Some(Err(_)) => drop(reply.send(false)),
                }
            }
            DeskRequest::End if self.begun && self.run.over_at().is_none() => {
                self.feed_now(Event::AllRequested);
            }
            DeskRequest::End => {}
        }
    }

    fn take_call(&mut self, event: Event, reply: oneshot::Sender<Result<ApiAnswer, String>>) {
        match self.try_call(event) {
            Ok(answer) => {
                self.batch.then.push(Box::new(DurableReply { answer: Ok(answer), reply }));
            }
            Err(why) => drop(reply.send(Err(why))),
        }
    }

    fn try_call(&mut self, event: Event) -> Result<ApiAnswer, String> {
        self.must_go_on()?;
        if !self.begun {
            return Err("the run has not begun: its workers are not all there".to_owned());
        }
        if self.run.over_at().is_some() {
            return Err("the run is over".to_owned());
        }
        self.feed_now(event);
        self.must_go_on()?;
        let answer =
            self.plan.api.as_ref().and_then(|api| api.desk.with_desk(ApiDesk::take_answer));
        answer.ok_or_else(|| "the run is over".to_owned())
    }

    /// Returns what the workers of instances have to know after a step, as commands before those of the step: whose files outlive
    /// a stop, whose kept files are not needed any more, and which instances may be reached by others than before.
    pub(super) fn instance_announcements(&self, step: &Step, commands: &[Command]) -> Vec<Command> {
        let Some(RunDesk { desk, exchange, .. }) = &self.plan.api else { return Vec::new() };
        let announce = |vm, host, what| Command::Announce { host, vm, what };
        let mut all = Vec::new();
        if let Event::HostLost { host, .. } = step.event {
            exchange.remove_host(host);
            desk.with_desk(|desk| desk.note_host_lost(host));
        }
        desk.with_desk(|desk| {
            let mut forgotten = Vec::new();
            for command in commands {
                match *command {
                    Command::DestroyVm { host, vm } => {
                        exchange.remove_instance(vm);
                        if desk.note_destroyed(vm, host) {
                            all.push(announce(vm, host, ProviderAnnouncement::FilesKept));
                        }
                    }
                    Command::CreateVm { host, vm, .. } => {
                        forgotten.extend(desk.note_created(vm, host));
                        if let Some(network) = desk.network_of(vm) {
                            exchange.place_instance(vm, host, network);
                        }
                    }
                    _ => {}
                }
            }
            forgotten.extend(desk.take_forgotten());
            let forgotten = forgotten.into_iter();
            all.extend(
                forgotten
                    .map(|(vm, host)| announce(vm, host, ProviderAnnouncement::FilesForgotten)),
            );
            if let Event::Called { call, .. } = &step.event {
                all.extend(desk.rewired_by(call).into_iter().filter_map(|vm| {
                    let host = self.run.provider().find_vm(vm)?.host;
                    exchange.place_instance(vm, host, desk.network_of(vm)?);
                    Some(announce(vm, host, ProviderAnnouncement::Rewired))
                }));
            }
        });
        all
    }

    /// Keeps what an instance has written to its console. It is not part of the run's log, as nothing is decided by it.
    pub(super) fn hear_console(&mut self, vm: VmId, text: String) {
        let Some(RunDesk { desk, consoles, .. }) = self.plan.api.clone() else { return };
        let now = self.clock.show_now();
        let instance = desk.with_desk(|desk| desk.add_console(now, vm, &text));
        if let Some(instance) = instance {
            let output = ConsoleOutput { folder: consoles, instance, text };
            self.batch.then.push(Box::new(output));
        }
    }

    /// Handles that the processes of an instance have shut it down: the instance calls the API itself.
    pub(super) fn hear_power_off(&mut self, host: HostId, vm: VmId) {
        let Some(RunDesk { desk, .. }) = self.plan.api.clone() else { return };
        match desk.with_desk(|desk| desk.shutdown_call(vm)) {
            Some(event) => {
                // Nobody waits for the answer.
                drop(self.try_call(event));
            }
            None => {
                tracing::debug!(%host, %vm, "a VM that is no instance's any more has shut itself down");
            }
        }
    }
}
