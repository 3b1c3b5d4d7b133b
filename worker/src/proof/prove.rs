//! The proof from its beginning to its end.

use std::time::Duration;

use dormouse_tasks::result::TaskResult;

use super::{
    Proof, What, habits,
    subject::{Room, Subject},
};
use crate::{
    agent::{Config, Prepared, explain, limit, prepare_process},
    cgroup::Vm,
};

/// The number of the only VM.
const VM: u64 = 1;
/// What a vCPU of the VM has of a core, in millionths, until its task has been restored: the task must
/// not come to its end before CRIU comes to it, however busy the host is.
const QUOTA_PPM: u32 = 100_000;
/// A real task, whose answer is checked: .5 s of CPU time.
const TASK: [&str; 6] = ["vector", "--memory", "4MiB", "--cpu-time", "500ms", "--progress"];
/// The time that it may take for that, beside others.
const TASK_TAKES: Duration = Duration::from_secs(10);

/// Makes this process a worker of this configuration, whose coordinator is not asked, and proves with
/// real tasks that it can do what runs ask for. Where it has no CRIU, checkpoints are left out.
///
/// To be called before any thread is started, in a process that does nothing else.
#[must_use]
pub fn prove(config: &Config) -> Proof {
    let mut proof = Proof::default();
    let made = proof.step(What::Groups, || {
        let prepared = prepare_process(config).map_err(|e| explain(&e))?;
        let vm = prepared.tree.create_vm(VM, 1, None).map_err(|e| explain(&e))?;
        vm.set_quota(0, Some(QUOTA_PPM)).map_err(|e| explain(&e))?;
        Ok(((prepared, vm), "a VM of a tenth of a core".to_owned()))
    });
    let Some((prepared, vm)) = made else { return proof };
    let room = Room { prepared: &prepared, vm: &vm };
    if task(&mut proof, room).is_some()
        && let Some(checkpointer) = prepared.checkpointer(&prepared.store)
    {
        habits::prove(&mut proof, room, &checkpointer);
    }
    proof.step(What::CleanUp, || {
        clean_up(&prepared, &vm).map(|()| ((), "nothing is left".to_owned()))
    });
    proof
}

/// A task from its launch to its answer; `None` where a step fails.
fn task(proof: &mut Proof, room: Room<'_>) -> Option<()> {
    let checkpointer = room.prepared.checkpointer(&room.prepared.store);
    let subject = proof.step(What::Launch, || {
        let result = ["--result", crate::agent::RESULT];
        let subject = Subject::launch(room, "task", (&TASK, &result))?;
        Ok((subject, "a task runs in its groups".to_owned()))
    })?;
    proof.step(What::Jail, || subject.confinement().map(|said| ((), said)))?;
    let frozen = proof.step(What::Freeze, || {
        let took = room.vm.freeze(limit::FREEZE).map_err(|e| explain(&e))?;
        let beat = subject.page()?.heartbeat;
        Ok((beat, format!("stood still after {} us", took.latency().as_micros())))
    })?;
    proof.step(What::Thaw, || {
        room.vm.thaw(limit::FREEZE).map_err(|e| explain(&e))?;
        subject.await_beat(frozen)?;
        Ok(((), "it goes on".to_owned()))
    })?;
    let Some(checkpointer) = checkpointer else { return Some(()) };
    let dumped = proof.step(What::Dump, || {
        let page = subject.dump(&checkpointer)?;
        Ok((page, "a checkpoint is complete".to_owned()))
    })?;
    let subject = proof.step(What::Restore, || {
        let (subject, _) = subject.restore(&checkpointer, dumped)?;
        subject.confinement()?;
        let said =
            format!("it goes on from its checkpoint, in the same jail; {}", subject.changes());
        Ok((subject, said))
    })?;
    proof.step(What::Answer, || {
        room.vm.set_quota(0, None).map_err(|e| explain(&e))?;
        let result = TaskResult::read(&subject.end(TASK_TAKES)?).map_err(|e| explain(&e))?;
        match result.verified {
            Some(true) => {
                Ok(((), format!("right, after {:.0} ms of CPU time", result.cpu_seconds * 1e3)))
            }
            _ => Err("the answer of a restored task is wrong".to_owned()),
        }
    })
}

fn clean_up(prepared: &Prepared, vm: &Vm) -> Result<(), String> {
    vm.kill_all(limit::KILL).map_err(|e| explain(&e))?;
    vm.remove(limit::KILL).map_err(|e| explain(&e))?;
    prepared.tree.remove(limit::KILL).map_err(|e| explain(&e))
}
