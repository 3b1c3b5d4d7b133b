//! The actor that owns a VM, of whatever kind.

use std::sync::Arc;

use dormouse_proto::v1::{CreateVm, VmRef, report};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{
    clock::CommandStamp,
    message::{Ask, Message},
    owner::Owner,
    resources::VmResources,
};
use crate::agent::{
    life::refused,
    machine::LifeContext,
    report::{report, vm_destroyed, vm_failed},
    test_fault,
};

/// Owns one VM from [`Message::Create`] until nothing is left of it, and ends then. Nothing waits
/// for its `post_stop`: what there is of a VM is in its [`VmResources`].
#[derive(Debug)]
pub(crate) struct Vm;

#[derive(Debug)]
pub(crate) struct VmArgs {
    pub(crate) context: Arc<LifeContext>,
    pub(crate) id: u32,
    pub(crate) remains: Arc<VmResources>,
}

#[derive(Debug)]
pub(crate) struct VmState {
    args: VmArgs,
    /// There is none until the VM is made, nor where it could not be made.
    owner: Option<Box<Owner>>,
    alarm: Alarm,
}

impl Actor for Vm {
    type Msg = Message;
    type State = VmState;
    type Arguments = VmArgs;

    async fn pre_start(
        &self,
        _: ActorRef<Message>,
        args: VmArgs,
    ) -> Result<VmState, ActorProcessingErr> {
        Ok(VmState { args, owner: None, alarm: Alarm::default() })
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        state: &mut VmState,
    ) -> Result<(), ActorProcessingErr> {
        state.args.context.machine.running().await;
        let Some(owner) = &mut state.owner else {
            state.without_owner(&myself, message).await;
            return Ok(());
        };
        match message {
            // Behind what has come by now: what should be is not to go on past a command.
            Message::Due => {
                let _ = myself.cast(Message::Wake);
            }
            // It has been set to another time since.
            Message::Wake if !state.alarm.has_rung() => {}
            message => {
                if matches!(message, Message::Ask(Ask::Freeze, _)) {
                    test_fault::panics_at_freeze();
                }
                owner.hear(message).await;
                if owner.is_over() {
                    myself.stop(None);
                } else {
                    state.alarm.set(owner.next_wake(), &myself);
                }
            }
        }
        Ok(())
    }
}

impl VmState {
    async fn without_owner(&mut self, myself: &ActorRef<Message>, message: Message) {
        let VmArgs { context, id, remains } = &self.args;
        match message {
            Message::Create(create, asked) => self.create(myself, &create, &asked).await,
            Message::Ask(Ask::Destroy, _) => {
                context.report(vm_destroyed(*id));
                remains.remove(context).await;
                myself.stop(None);
            }
            Message::Ask(Ask::Start(start), _) => {
                context.report(refused(&start, "the VM could not be created".to_owned()));
            }
            // Until it is destroyed there is nobody to do anything.
            _ => {}
        }
    }

    async fn create(
        &mut self,
        myself: &ActorRef<Message>,
        create: &CreateVm,
        asked: &CommandStamp,
    ) {
        let VmArgs { context, id, remains } = &self.args;
        match Owner::create(context, create, asked, remains, myself).await {
            Ok(owner) => {
                context.report(report(report::Report::VmCreated(VmRef { vm: *id })));
                let owner = self.owner.insert(Box::new(owner));
                self.alarm.set(owner.next_wake(), myself);
            }
            Err(why) => context.report(vm_failed(*id, why)),
        }
    }
}

/// Wakes the owner of a VM when something is due by itself.
#[derive(Debug, Default)]
struct Alarm(Option<(Instant, AbortHandle)>);

impl Alarm {
    /// The alarm is to ring then, and at no other time.
    fn set(&mut self, at: Option<Instant>, whom: &ActorRef<Message>) {
        if self.0.as_ref().map(|(at, _)| *at) == at {
            return;
        }
        self.stop();
        self.0 = at.map(|at| {
            let whom = whom.clone();
            let ringing = tokio::spawn(async move {
                tokio::time::sleep_until(at).await;
                let _ = whom.cast(Message::Due);
            });
            (at, ringing.abort_handle())
        });
    }

    /// Whether its time has come. It is not set any more then.
    fn has_rung(&mut self) -> bool {
        let now = Instant::now();
        self.0.take_if(|(at, _)| *at <= now).is_some()
    }

    fn stop(&mut self) {
        if let Some((_, ringing)) = self.0.take() {
            ringing.abort();
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.stop();
    }
}
