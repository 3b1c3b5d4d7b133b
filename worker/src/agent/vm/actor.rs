//! The actor that owns a VM, of whatever kind.

use std::sync::Arc;

use dormouse_proto::v1::{CreateVm, VmRef, report};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{
    clock::CommandStamp,
    message::{OwnerMessage, VmCommand},
    owner::VmOwner,
    resources::VmResources,
};
use crate::agent::{
    life::refuse_start,
    machine::LifeContext,
    report::{make_report, vm_destroyed, vm_failed},
    test_fault,
};

/// Actor that manages one VM from [`OwnerMessage::Create`] until the VM is removed. Nothing waits for the actor's
/// `post_stop`: the VM's processes and groups are in its [`VmResources`].
#[derive(Debug)]
pub(crate) struct VmActor;

#[derive(Debug)]
pub(crate) struct VmArgs {
    pub(crate) context: Arc<LifeContext>,
    pub(crate) id: u32,
    pub(crate) remains: Arc<VmResources>,
}

#[derive(Debug)]
pub(crate) struct VmActorState {
    args: VmArgs,
    /// Owner of the VM; `None` before the VM is created, or if it couldn't be.
    owner: Option<Box<VmOwner>>,
    alarm: OwnerAlarm,
}

impl Actor for VmActor {
    type Msg = OwnerMessage;
    type State = VmActorState;
    type Arguments = VmArgs;

    async fn pre_start(
        &self,
        _: ActorRef<OwnerMessage>,
        args: VmArgs,
    ) -> Result<VmActorState, ActorProcessingErr> {
        Ok(VmActorState { args, owner: None, alarm: OwnerAlarm::default() })
    }

    async fn handle(
        &self,
        myself: ActorRef<OwnerMessage>,
        message: OwnerMessage,
        state: &mut VmActorState,
    ) -> Result<(), ActorProcessingErr> {
        state.args.context.machine.running().await;
        let Some(owner) = &mut state.owner else {
            state.without_owner(&myself, message).await;
            return Ok(());
        };
        match message {
            // Behind what has come by now: what should be is not to go on past a command.
            OwnerMessage::Due => {
                let _ = myself.cast(OwnerMessage::Wake);
            }
            // It has been set to another time since.
            OwnerMessage::Wake if !state.alarm.has_rung() => {}
            message => {
                if matches!(message, OwnerMessage::Ask(VmCommand::Freeze, _)) {
                    test_fault::panics_at_freeze();
                }
                owner.handle_message(message).await;
                if owner.is_over() {
                    myself.stop(None);
                } else {
                    state.alarm.set_alarm(owner.next_wake(), &myself);
                }
            }
        }
        Ok(())
    }
}

impl VmActorState {
    async fn without_owner(&mut self, myself: &ActorRef<OwnerMessage>, message: OwnerMessage) {
        let VmArgs { context, id, remains } = &self.args;
        match message {
            OwnerMessage::Create(create, asked) => self.create_vm(myself, &create, &asked).await,
            OwnerMessage::Ask(VmCommand::Destroy, _) => {
                context.send_report(vm_destroyed(*id));
                remains.remove(context).await;
                myself.stop(None);
            }
            OwnerMessage::Ask(VmCommand::Start(start), _) => {
                context.send_report(refuse_start(&start, "the VM could not be created".to_owned()));
            }
            // Until it is destroyed there is nobody to do anything.
            _ => {}
        }
    }

    async fn create_vm(
        &mut self,
        myself: &ActorRef<OwnerMessage>,
        create: &CreateVm,
        asked: &CommandStamp,
    ) {
        let VmArgs { context, id, remains } = &self.args;
        match VmOwner::create_vm(context, create, asked, remains, myself).await {
            Ok(owner) => {
                context.send_report(make_report(report::Report::VmCreated(VmRef { vm: *id })));
                let owner = self.owner.insert(Box::new(owner));
                self.alarm.set_alarm(owner.next_wake(), myself);
            }
            Err(why) => context.send_report(vm_failed(*id, why)),
        }
    }
}

/// Timer that wakes the owner of a VM at an instant; `None`: no timer is set.
#[derive(Debug, Default)]
struct OwnerAlarm(Option<(Instant, AbortHandle)>);

impl OwnerAlarm {
    /// Sets the alarm to the instant `at`, in place of any earlier one; `None` only cancels the earlier one.
    fn set_alarm(&mut self, at: Option<Instant>, whom: &ActorRef<OwnerMessage>) {
        if self.0.as_ref().map(|(at, _)| *at) == at {
            return;
        }
        self.stop_alarm();
        self.0 = at.map(|at| {
            let whom = whom.clone();
            let ringing = tokio::spawn(async move {
                tokio::time::sleep_until(at).await;
                let _ = whom.cast(OwnerMessage::Due);
            });
            (at, ringing.abort_handle())
        });
    }

    /// Returns whether the alarm's instant has passed, and if so clears the alarm.
    fn has_rung(&mut self) -> bool {
        let now = Instant::now();
        self.0.take_if(|(at, _)| *at <= now).is_some()
    }

    fn stop_alarm(&mut self) {
        if let Some((_, ringing)) = self.0.take() {
            ringing.abort();
        }
    }
}

impl Drop for OwnerAlarm {
    fn drop(&mut self) {
        self.stop_alarm();
    }
}
