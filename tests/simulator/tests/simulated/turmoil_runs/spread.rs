//! A scheduler that launches one VM for each worker, and another one for each that is lost.

use std::collections::{BTreeMap, VecDeque};

use dormouse_cloud::Market;
use dormouse_model::{Decision, Notice, StartReason};
use dormouse_policies::Policy;
use dormouse_units::{Mode, Seats, TaskId, Time, VmId};

pub(crate) const KIND: &str = "only";

#[derive(Debug)]
pub(crate) struct Spread {
    waiting: VecDeque<TaskId>,
    /// The task of each VM that has booted; `None`: the VM is idle.
    vms: BTreeMap<VmId, Option<TaskId>>,
    next: VmId,
    count: usize,
    /// Number of VMs for which no host had room.
    missing: usize,
}

impl Spread {
    pub(crate) fn new(tasks: usize, vms: usize) -> Self {
        let tasks = 0..u32::try_from(tasks).unwrap();
        let (waiting, next) = (tasks.map(TaskId::new).collect(), VmId::new(0));
        Self { waiting, vms: BTreeMap::new(), next, count: vms, missing: 0 }
    }

    fn launch(&mut self, out: &mut Vec<Decision>) {
        let vm = self.next;
        self.next = self.next.next();
        let (kind, market) = (KIND.into(), Market::OnDemand);
        out.push(Decision::Launch { vm, kind, market, bid: None });
    }

    fn hear(&mut self, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin => (0..self.count).for_each(|_| self.launch(out)),
            Notice::VmReady { vm } => {
                self.vms.insert(vm, None);
            }
            Notice::VmLost { vm } => {
                let had = self.vms.remove(&vm).flatten();
                had.into_iter().for_each(|task| self.waiting.push_front(task));
                self.launch(out);
            }
            Notice::TaskFinished { vm, .. } => {
                self.vms.insert(vm, None);
            }
            Notice::TaskFailed { vm, task, .. } => {
                self.vms.insert(vm, None);
                self.waiting.push_front(task);
            }
            // There was no room: its host is lost, and comes back.
            Notice::LaunchRefused { .. } => self.missing += 1,
            Notice::HostJoined => {
                let missing = std::mem::take(&mut self.missing);
                (0..missing).for_each(|_| self.launch(out));
            }
            _ => {}
        }
    }
}

impl Policy for Spread {
    fn handle(&mut self, _: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        heard.iter().for_each(|notice| self.hear(notice, out));
        for (vm, on) in self.vms.iter_mut().filter(|(_, on)| on.is_none()) {
            let Some(task) = self.waiting.pop_front() else { return };
            *on = Some(task);
            let (on, mode, reason) = (Seats::first_free(*vm), Mode::Burst, StartReason::Planned);
            out.push(Decision::Start { task, on, mode, reason });
        }
    }
}
