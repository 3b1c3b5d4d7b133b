//! The VMs of one session: passes commands to the VMs' owners, and removes the remains of a VM whose owner fails.

use std::{collections::BTreeMap, sync::Arc};

use dormouse_proto::v1::{
    Announce, CheckpointFailed, CreateVm, Report, TaskStopped, announce::What, report,
};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use super::{
    bounds::OfferOccupancy,
    cell::folder_name,
    life::refuse_start,
    machine::LifeContext,
    report::{make_report, vm_destroyed, vm_failed},
    vm::{self, CommandStamp, VmActor, VmArgs, VmCommand, VmResources},
};

/// Actor that supervises the owners of all VMs. An owner that fails ends its VM, and nothing else.
#[derive(Debug)]
pub(crate) struct VmSupervisor;

/// Messages to the supervisor of all VMs.
#[derive(Debug)]
pub(crate) enum VmsMsg {
    /// Create a VM.
    Create(Box<CreateVm>, CommandStamp),
    /// Pass a command to the VM with this number.
    Ask(u32, VmCommand, CommandStamp),
    /// Everything on a VM was killed because the VM's actor failed; number of the VM, and the reason.
    Killed(u32, String),
    /// The VM with the given number has been removed completely.
    Cleared(u32),
    /// Destroy all VMs. Answered once nothing is left of them.
    DestroyAll(RpcReplyPort<()>),
}

#[derive(Debug)]
pub(crate) struct VmsState {
    context: Arc<LifeContext>,
    vms: BTreeMap<u32, SupervisedVm>,
    /// Reply port of a caller that waits for the end of all VMs; `None`: no caller waits.
    waiting: Option<RpcReplyPort<()>>,
}

/// One VM: its actor with the actor's state, its resources, and its part of the worker's offer.
#[derive(Debug)]
struct SupervisedVm {
    owner: ActorRef<vm::OwnerMessage>,
    remains: Arc<VmResources>,
    taken: OfferOccupancy,
    standing: OwnerStanding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerStanding {
    /// The VM's owner (its actor) accepts commands.
    Up,
    /// The VM's owner is destroying the VM.
    Ending,
    /// The VM's owner has failed, and the rest of the VM is being removed.
    Failed {
        /// True if the coordinator has asked for the VM's destruction, so that it is to be reported as destroyed and not as failed.
        is_asked: bool,
    },
}

/// Makes the report that answers a command to a VM that doesn't exist; `None`: the command needs no answer.
fn without_vm(id: u32, asked: VmCommand) -> Option<Report> {
    let why = format!("there is no VM {id} on this worker");
    Some(match asked {
        VmCommand::Start(start) => refuse_start(&start, why),
        VmCommand::Stop(stop) => make_report(report::Report::TaskStopped(TaskStopped {
            task: stop.task,
            ..TaskStopped::default()
        })),
        // The answer to which nothing follows.
        VmCommand::SetMode(_)
        | VmCommand::SetSupply(_)
        | VmCommand::Announce(_)
        | VmCommand::SetNetwork(_) => return None,
        VmCommand::CheckpointNow(of) => {
            let failed = CheckpointFailed { task: Some(of), why };
            make_report(report::Report::CheckpointFailed(failed))
        }
        VmCommand::Freeze | VmCommand::Thaw | VmCommand::Promote(_) | VmCommand::Move(_) => {
            vm_failed(id, why)
        }
        VmCommand::Destroy => vm_destroyed(id),
    })
}

impl VmsState {
    async fn create_vm(
        &mut self,
        myself: &ActorRef<VmsMsg>,
        create: Box<CreateVm>,
        asked: CommandStamp,
    ) {
        let id = create.vm;
        if self.vms.contains_key(&id) {
            let why = "there is a VM of that number already";
            return self.context.send_report(vm_failed(id, why));
        }
        let taken = OfferOccupancy::taken_by(&create);
        let all = self.vms.values().fold(taken, |all, place| all.plus_other(place.taken));
        if let Err(why) = all.check_fits(self.context.millicores) {
            tracing::warn!(vm = id, why, "a VM is refused");
            return self.context.send_report(vm_failed(id, why));
        }
        let remains = VmResources::new(id);
        let args = VmArgs { context: Arc::clone(&self.context), id, remains: Arc::clone(&remains) };
        match Actor::spawn_linked(None, VmActor, args, myself.get_cell()).await {
            Ok((owner, _)) => {
                let _ = owner.cast(vm::OwnerMessage::Create(create, asked));
                self.vms.insert(
                    id,
                    SupervisedVm { owner, remains, taken, standing: OwnerStanding::Up },
                );
            }
            Err(error) => {
                let why = format!("it has no owner: {error}");
                self.context.send_report(vm_failed(id, why));
            }
        }
    }

    fn ask_vm(&mut self, id: u32, ask: VmCommand, asked: CommandStamp) {
        match &ask {
            // Whatever the owner does, or if it is gone.
            VmCommand::Announce(Announce { what: Some(What::KeepFiles(_)), .. }) => {
                return self
                    .vms
                    .get(&id)
                    .into_iter()
                    .for_each(|it| it.remains.set_keeps_folder(true));
            }
            VmCommand::Announce(Announce { what: Some(What::ForgetFiles(_)), .. }) => {
                return self.forget_folder(id);
            }
            _ => {}
        }
        let unasked = match self.vms.get_mut(&id) {
            Some(place) => match place.ask_owner(ask, asked) {
                None => return,
                Some(ask) => ask,
            },
            None => ask,
        };
        if let Some(said) = without_vm(id, unasked) {
            self.context.send_report(said);
        }
    }

    /// Removes the kept files of the instance whose first VM had this number.
    fn forget_folder(&self, first_vm: u32) {
        match folder_name(&self.context.run, first_vm) {
            Ok(name) => self.context.machine.forget_folder(&name),
            Err(error) => tracing::warn!(%error, first_vm, "files can't be forgotten"),
        }
    }

    fn id_of(&self, owner: &ActorCell) -> Option<u32> {
        let mut vms = self.vms.iter();
        vms.find(|(_, place)| place.owner.get_id() == owner.get_id()).map(|(id, _)| *id)
    }

    /// Handles the end of a VM's owner: nothing is left of the VM, unless the owner ended before it was to destroy the VM.
    fn owner_ended(&mut self, myself: &ActorRef<VmsMsg>, owner: &ActorCell) {
        let Some(id) = self.id_of(owner) else { return };
        match self.vms.get(&id).map(|place| place.standing) {
            Some(OwnerStanding::Up) => self.owner_failed(myself, owner, "it ended".to_owned()),
            _ => self.vm_cleared(id),
        }
    }

    /// Handles the failure of a VM's owner: removes the rest of the VM. `why` is the reason.
    fn owner_failed(&mut self, myself: &ActorRef<VmsMsg>, owner: &ActorCell, why: String) {
        let Some(id) = self.id_of(owner) else { return };
        let Some(place) = self.vms.get_mut(&id) else { return };
        tracing::error!(vm = id, why, "the owner of a VM has failed");
        place.standing =
            OwnerStanding::Failed { is_asked: place.standing == OwnerStanding::Ending };
        let (context, remains) = (Arc::clone(&self.context), Arc::clone(&place.remains));
        let myself = myself.clone();
        tokio::spawn(async move {
            remains.kill_all().await;
            let _ = myself.cast(VmsMsg::Killed(id, why));
            remains.remove(&context).await;
            let _ = myself.cast(VmsMsg::Cleared(id));
        });
    }

    fn vm_killed(&mut self, id: u32, why: &str) {
        let Some(place) = self.vms.get_mut(&id) else { return };
        let OwnerStanding::Failed { is_asked } = &mut place.standing else { return };
        self.context.send_report(match std::mem::take(is_asked) {
            true => vm_destroyed(id),
            false => vm_failed(id, format!("its owner in the worker has failed: {why}")),
        });
    }

    fn vm_cleared(&mut self, id: u32) {
        let Some(place) = self.vms.remove(&id) else { return };
        if place.standing == (OwnerStanding::Failed { is_asked: true }) {
            self.context.send_report(vm_destroyed(id));
        }
        self.perhaps_answer();
    }

    fn destroy_all(&mut self, reply: RpcReplyPort<()>) {
        self.waiting = Some(reply);
        for place in self.vms.values_mut() {
            // One that is gone, or going, needs nothing.
            let _ = place.ask_owner(VmCommand::Destroy, CommandStamp::stamp_now());
        }
        self.perhaps_answer();
    }

    fn perhaps_answer(&mut self) {
        if self.vms.is_empty()
            && let Some(waiting) = self.waiting.take()
        {
            let _ = waiting.send(());
        }
    }
}

impl SupervisedVm {
    /// Passes a command to the actor of its VM; returns the command if there is no actor to receive it.
    fn ask_owner(&mut self, ask: VmCommand, asked: CommandStamp) -> Option<VmCommand> {
        match (&mut self.standing, ask) {
            (OwnerStanding::Up, ask) => {
                if matches!(ask, VmCommand::Destroy) {
                    self.standing = OwnerStanding::Ending;
                }
                // Where it has just failed, of which is heard next, it was asked before that.
                let _ = self.owner.cast(vm::OwnerMessage::Ask(ask, asked));
                None
            }
            (OwnerStanding::Failed { is_asked }, VmCommand::Destroy) => {
                *is_asked = true;
                None
            }
            (OwnerStanding::Ending, VmCommand::Destroy) => None,
            (OwnerStanding::Ending | OwnerStanding::Failed { .. }, ask) => Some(ask),
        }
    }
}

impl Actor for VmSupervisor {
    type Msg = VmsMsg;
    type State = VmsState;
    type Arguments = Arc<LifeContext>;

    async fn pre_start(
        &self,
        _: ActorRef<VmsMsg>,
        context: Arc<LifeContext>,
    ) -> Result<VmsState, ActorProcessingErr> {
        Ok(VmsState { context, vms: BTreeMap::new(), waiting: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<VmsMsg>,
        message: VmsMsg,
        state: &mut VmsState,
    ) -> Result<(), ActorProcessingErr> {
        state.context.machine.running().await;
        match message {
            VmsMsg::Create(create, asked) => state.create_vm(&myself, create, asked).await,
            VmsMsg::Ask(vm, ask, asked) => state.ask_vm(vm, ask, asked),
            VmsMsg::Killed(vm, why) => state.vm_killed(vm, &why),
            VmsMsg::Cleared(vm) => state.vm_cleared(vm),
            VmsMsg::DestroyAll(reply) => state.destroy_all(reply),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<VmsMsg>,
        event: SupervisionEvent,
        state: &mut VmsState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(owner, why) => {
                state.owner_failed(&myself, &owner, why.to_string());
            }
            SupervisionEvent::ActorTerminated(owner, ..) => state.owner_ended(&myself, &owner),
            _ => {}
        }
        Ok(())
    }
}
