//! A scheduler of bags: one on-demand VM of the cheapest type, and the tasks in their order.

use std::collections::VecDeque;

use dormouse::schedulers::{
    Decision, Hello, Market, Mode, Notice, Policy, Seats, StartReason, TaskId, Time, TypeName, VmId,
};

#[derive(Debug)]
pub(crate) struct OneVm {
    kind: TypeName,
    vcpus: usize,
    waiting: VecDeque<TaskId>,
    vm: VmId,
    free: usize,
}

impl OneVm {
    pub(crate) fn new(hello: &Hello) -> Self {
        let tasks = hello.bag.as_ref().map_or(0, |bag| bag.tasks.len());
        let sold = hello.catalogue.types.values().filter(|kind| kind.on_demand.is_some());
        let cheapest = sold.min_by_key(|kind| kind.on_demand).expect("something is sold on demand");
        Self {
            kind: cheapest.name.clone(),
            vcpus: cheapest.vcpus as usize,
            waiting: (0..tasks as u32).map(TaskId::new).collect(),
            vm: VmId::new(0),
            free: 0,
        }
    }
}

impl Policy for OneVm {
    fn handle(&mut self, _: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            match notice {
                Notice::Begin => out.push(Decision::Launch {
                    vm: self.vm,
                    kind: self.kind.clone(),
                    market: Market::OnDemand,
                    bid: None,
                }),
                Notice::VmReady { .. } => self.free = self.vcpus,
                Notice::TaskFinished { .. } => self.free += 1,
                _ => {}
            }
        }
        while self.free > 0
            && let Some(task) = self.waiting.pop_front()
        {
            self.free -= 1;
            let on = Seats::first_free(self.vm);
            out.push(Decision::Start { task, on, mode: Mode::Burst, reason: StartReason::Chosen });
        }
    }
}
