//! Running the proof from its beginning to its end.

use std::time::Duration;

use dormouse_tasks::result::TaskResult;

use super::{
    ProofStepKind, WorkerProof, habits,
    subject::{ProofRoom, ProofSubject},
};
use crate::{
    agent::{AgentConfig, PreparedWorker, explain_error, limit, prepare_process},
    cgroup::VmGroups,
};

/// The number of the only VM in `dormouse doctor`'s live test of this host.
const VM: u64 = 1;
/// Part of a core that a vCPU of the VM has, in millionths, until its task has been restored. It is so small that the
/// task can't end before CRIU has dumped it, however busy the host is.
const QUOTA_PPM: u32 = 100_000;
/// Arguments of the task that `dormouse doctor`'s live test runs and whose answer it checks; the task takes .5 s of CPU time.
const TASK: [&str; 6] = ["vector", "--memory", "4MiB", "--cpu-time", "500ms", "--progress"];
/// Real time within which the task has to end, beside other processes.
const TASK_TAKES: Duration = Duration::from_secs(10);

/// Makes this process a worker with the configuration `config` but without a coordinator, and proves with real tasks that it can do
/// what runs need. Without CRIU, steps for checkpoints are left out.
///
/// Must be called before any thread is started, in a process that does nothing else.
#[must_use]
pub fn prove_worker(config: &AgentConfig) -> WorkerProof {
    let mut proof = WorkerProof::default();
    let made = proof.take_step(ProofStepKind::Groups, || {
        let prepared = prepare_process(config).map_err(|e| explain_error(&e))?;
        let vm = prepared.tree.create_vm(VM, 1, None).map_err(|e| explain_error(&e))?;
        vm.set_quota(0, Some(QUOTA_PPM)).map_err(|e| explain_error(&e))?;
        Ok(((prepared, vm), "a VM of a tenth of a core".to_owned()))
    });
    let Some((prepared, vm)) = made else { return proof };
    let room = ProofRoom { prepared: &prepared, vm: &vm };
    if prove_task(&mut proof, room).is_some()
        && let Some(checkpointer) = prepared.make_checkpointer(&prepared.store)
    {
        habits::prove_habits(&mut proof, room, &checkpointer);
    }
    proof.take_step(ProofStepKind::CleanUp, || {
        clean_up(&prepared, &vm).map(|()| ((), "nothing is left".to_owned()))
    });
    proof
}

/// Proves the steps of one task, from its launch to its answer; `None` if a step fails.
fn prove_task(proof: &mut WorkerProof, room: ProofRoom<'_>) -> Option<()> {
    let checkpointer = room.prepared.make_checkpointer(&room.prepared.store);
    let subject = proof.take_step(ProofStepKind::Launch, || {
        let result = ["--result", crate::agent::RESULT];
        let subject = ProofSubject::launch_task(room, "task", (&TASK, &result))?;
        Ok((subject, "a task runs in its groups".to_owned()))
    })?;
    proof.take_step(ProofStepKind::Jail, || subject.check_confinement().map(|said| ((), said)))?;
    let frozen = proof.take_step(ProofStepKind::Freeze, || {
        let took = room.vm.freeze_vm(limit::FREEZE).map_err(|e| explain_error(&e))?;
        let beat = subject.read_page()?.heartbeat;
        Ok((beat, format!("stood still after {} us", took.latency().as_micros())))
    })?;
    proof.take_step(ProofStepKind::Thaw, || {
        room.vm.thaw_vm(limit::FREEZE).map_err(|e| explain_error(&e))?;
        subject.await_beat(frozen)?;
        Ok(((), "it goes on".to_owned()))
    })?;
    let Some(checkpointer) = checkpointer else { return Some(()) };
    let dumped = proof.take_step(ProofStepKind::Dump, || {
        let page = subject.dump_task(&checkpointer)?;
        Ok((page, "a checkpoint is complete".to_owned()))
    })?;
    let subject = proof.take_step(ProofStepKind::Restore, || {
        let (subject, _) = subject.restore_task(&checkpointer, dumped)?;
        subject.check_confinement()?;
        let said = format!(
            "it continues from its checkpoint, in the same jail; {}",
            subject.describe_changes()
        );
        Ok((subject, said))
    })?;
    proof.take_step(ProofStepKind::Answer, || {
        room.vm.set_quota(0, None).map_err(|e| explain_error(&e))?;
        let result =
            TaskResult::read(&subject.wait_end(TASK_TAKES)?).map_err(|e| explain_error(&e))?;
        match result.verified {
            Some(true) => {
                Ok(((), format!("right, after {:.0} ms of CPU time", result.cpu_seconds * 1e3)))
            }
            _ => Err("the answer of a restored task is wrong".to_owned()),
        }
    })
}

fn clean_up(prepared: &PreparedWorker, vm: &VmGroups) -> Result<(), String> {
    vm.kill_all(limit::KILL).map_err(|e| explain_error(&e))?;
    vm.remove(limit::KILL).map_err(|e| explain_error(&e))?;
    prepared.tree.remove(limit::KILL).map_err(|e| explain_error(&e))
}
