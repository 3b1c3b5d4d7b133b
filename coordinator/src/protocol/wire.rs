//! Converts commands and reports between the engine's types and the wire format.

use std::sync::Arc;

use dormouse_cloud::{BurstableTerms, Market};
use dormouse_ec2::{DeskPolicy, InstanceFacts};
use dormouse_model::{
    AttemptLedger, Command, FaultKind, FaultState, MetadataSettings, MetadataTimes, MetadataTokens,
    ProgramEnd, ProviderAnnouncement, Report, TaskStart,
};
use dormouse_proto::v1;
use dormouse_tasks::answer;
use dormouse_tasks::own::TaskProgram;
use dormouse_units::{
    Attempt, Bytes, CheckpointSeq, Credits, FaultId, Mode, Ppm, Seats, Span, Speedup, TaskId, Tier,
    Time, VmId,
};

use crate::protocol::handed::HandedOutputs;
use crate::protocol::instance::{cell_to_wire, network_to_wire, role_to_wire};
use crate::protocol::own_program::{own_end, own_to_wire};
use crate::protocol::parallel::{self, ParallelPrograms};
use crate::system::world::WallClock;
use crate::time::outage::to_micros;

/// Encodes commands for the wire. It has each task's program and CPU time.
#[derive(Clone, Debug)]
pub(crate) struct WireEncoder {
    pub(crate) programs: Vec<TaskProgram>,
    /// Files that tasks hand to programs of users.
    pub(crate) handed: Arc<HandedOutputs>,
    pub(crate) cpu_us: Vec<u64>,
    /// How parallel jobs are run; `None`: there are none.
    pub(crate) parallel: Option<ParallelPrograms>,
    /// Ratio of emulated to real time.
    pub(crate) speedup: Speedup,
    /// Secret number from which the nonce of each task is derived.
    pub(crate) answer_seed: u64,
    /// Settings of the VMs' metadata endpoints; `None`: they have none.
    pub(crate) metadata: Option<MetadataSettings>,
    /// The desk that knows which instances run on the VMs; `None`: VMs have no cells.
    pub(crate) desk: Option<DeskPolicy>,
    /// Share of a host's core for each vCPU of a cell.
    pub(crate) share: Ppm,
    pub(crate) wall: WallClock,
}

impl WireEncoder {
    /// Encodes a command; `at` is the time of its decision on the run's clock, if that is known.
    pub(crate) fn encode_command(&self, command: Command, at: Option<Time>) -> v1::Command {
        use v1::command::Command as Wire;
        let vm_ref = |vm: VmId| v1::VmRef { vm: vm.get() };
        let wire = match command {
            Command::CreateVm { vm, kind, market, vcpus, memory, burstable, two_tier, .. } => {
                let of =
                    self.desk.as_ref().and_then(|desk| desk.with_desk(|desk| desk.cell_of(vm)));
                let core = self.parallel.filter(|_| two_tier).map(|programs| programs.core.get());
                Wire::CreateVm(v1::CreateVm {
                    vm: vm.get(),
                    kind: kind.as_str().to_owned(),
                    vcpus,
                    memory_bytes: (memory > Bytes::ZERO).then_some(memory.get()),
                    burstable: burstable.map(burstable_to_wire),
                    two_tier,
                    core_ppm: core,
                    metadata: self
                        .metadata
                        .as_ref()
                        .filter(|_| of.as_ref().is_none_or(|of| of.has_endpoint))
                        .map(|settings| self.encode_metadata(settings, of.as_ref(), market, at)),
                    cell: of.as_ref().map(|of| cell_to_wire(of, self.share)),
                })
            }
            Command::Announce { vm, what: ProviderAnnouncement::Rewired, .. } => {
                let network =
                    self.desk.as_ref().and_then(|desk| desk.with_desk(|desk| desk.network_of(vm)));
                let network = network.as_ref().map(network_to_wire);
                Wire::SetNetwork(v1::SetNetwork { vm: vm.get(), network })
            }
            Command::Announce { vm, what, .. } => Wire::Announce(announce_to_wire(vm, what)),
            Command::FreezeVm { vm, .. } => Wire::FreezeVm(vm_ref(vm)),
            Command::ThawVm { vm, .. } => Wire::ThawVm(vm_ref(vm)),
            Command::DestroyVm { vm, .. } => Wire::DestroyVm(vm_ref(vm)),
            Command::StartTask(start) => Wire::StartTask(self.encode_start(start)),
            Command::StopTask { vm, task, attempt, keep, .. } => {
                Wire::StopTask(v1::StopTask { task: task_ref(vm, task, attempt), keep })
            }
            Command::PromoteTask { vm, task, attempt, .. } => Wire::PromoteTask(v1::TaskRef {
                vm: vm.get(),
                task: task.get(),
                attempt: attempt.get(),
            }),
            Command::MoveTask { vm, task, attempt, on, .. } => Wire::MoveTask(v1::MoveTask {
                task: task_ref(vm, task, attempt),
                vcpus: on.to_vec(),
            }),
            Command::CheckpointNow { vm, task, attempt, .. } => Wire::CheckpointNow(v1::TaskRef {
                vm: vm.get(),
                task: task.get(),
                attempt: attempt.get(),
            }),
            Command::SetSupply { vm, vcpu, share, .. } => {
                Wire::SetSupply(v1::SetSupply { vm: vm.get(), vcpu, share_ppm: share.get() })
            }
            Command::Fault { fault, lasts, kind, .. } => Wire::Fault(v1::Fault {
                fault: fault.get(),
                real_lasts_us: to_micros(self.speedup.to_real(lasts)),
                kind: Some(fault_to_wire(kind)),
            }),
            Command::SetMode { vm, task, attempt, mode, .. } => Wire::SetMode(v1::SetMode {
                task: task_ref(vm, task, attempt),
                mode: mode_to_wire(mode).into(),
            }),
        };
        let emulated_at_us = at.map(Time::as_micros);
        v1::Command { command: Some(wire), emulated_at_us, real_late_us: 0 }
    }

    /// Encodes the metadata of a VM by the run's settings, and by what the VM's instance itself has (`cell`).
    fn encode_metadata(
        &self,
        of: &MetadataSettings,
        cell: Option<&InstanceFacts>,
        market: Market,
        at: Option<Time>,
    ) -> v1::Metadata {
        let since = at.filter(|_| of.times == MetadataTimes::Emulated);
        let since = since.map(|at| to_micros(self.speedup.to_real(at.since(Time::ZERO))));
        v1::Metadata {
            spot: market == Market::Spot,
            zone: String::new(),
            tokens_required: of.tokens == MetadataTokens::Required
                || cell.is_some_and(|cell| cell.tokens_required),
            hop_limit: cell.and_then(|cell| cell.hop_limit).or(of.hop_limit).map_or(0, u32::from),
            tags: cell.map_or(&of.tags, |cell| &cell.tags).iter().map(tag_to_wire).collect(),
            user_data: cell.map_or(&of.user_data, |cell| &cell.user_data).clone(),
            instance_id: cell.map(|cell| cell.instance.clone()),
            image_id: cell.map(|cell| cell.image.clone()),
            address: cell.and_then(|cell| cell.address).map(|address| address.to_string()),
            public_address: cell.and_then(|cell| Some(cell.public_address?.to_string())),
            public_key: cell.and_then(|cell| {
                let (name, text) = cell.login_key.clone()?;
                Some(v1::LoginKey { text: format!("{text} {name}"), name })
            }),
            role: cell.and_then(|cell| cell.role.as_ref()).map(role_to_wire),
            security_groups: cell
                .and_then(|cell| cell.network.as_ref())
                .map_or_else(Vec::new, |of| {
                    of.groups.iter().map(|(_, name)| name.clone()).collect()
                }),
            zero_unix_us: since.map(|since| self.wall.unix_us().saturating_sub(since)),
        }
    }

    fn encode_start(&self, start: TaskStart) -> v1::StartTask {
        let Seats { vm, tier, cpus } = start.seats;
        let index = start.task.get() as usize;
        let (mut args, plan) = match (&start.job, &self.parallel) {
            (Some(job), Some(programs)) => {
                (programs.job_arguments(job), Some(programs.job_plan(job)))
            }
            _ => (self.programs.get(index).map_or(&[][..], TaskProgram::kernel).to_vec(), None),
        };
        let own = self.programs.get(index).and_then(TaskProgram::own);
        let own = own.filter(|_| start.job.is_none()).map(|own| self.handed.complete(own));
        if let Some(whole) = own.as_ref().filter(|own| !own.missing.is_empty()) {
            let missing = whole.missing.join("; ");
            tracing::warn!(task = %start.task, missing, "a task begins without files of the tasks that it follows");
        }
        if !args.is_empty() {
            let nonce = answer::nonce(self.answer_seed, start.task);
            args.extend(["--nonce".to_owned(), nonce.to_string()]);
        }
        v1::StartTask {
            task: task_ref(vm, start.task, start.attempt),
            program: Some(v1::Program { args }),
            seats: Some(v1::Seats { tier: tier_to_wire(tier).into(), vcpus: cpus.to_vec() }),
            memory_bytes: start.memory.get(),
            emulated_runtime_us: start.runtime.as_micros(),
            real_cpu_us: self.cpu_us.get(index).copied().unwrap_or_default(),
            from: start.from.map(|(checkpoint, done)| v1::Kept {
                checkpoint: checkpoint.get(),
                attempt: start.from_attempt.get(),
                done_ppm: done.get(),
            }),
            checkpoints_ppm: start.checkpoints.iter().map(|due| due.get()).collect(),
            emulated_checkpoint_cost_us: start.checkpoint_cost.as_micros(),
            mode: mode_to_wire(start.mode).into(),
            plan,
            own: own.map(|own| own_to_wire(&own.program)),
        }
    }
}

fn tag_to_wire((name, value): (&String, &String)) -> v1::Tag {
    v1::Tag { name: name.clone(), value: value.clone() }
}

const fn announce_to_wire(vm: VmId, what: ProviderAnnouncement) -> v1::Announce {
    use v1::announce::What;
    let what = match what {
        ProviderAnnouncement::Terminate(at) => What::TerminateAtUs(at.as_micros()),
        ProviderAnnouncement::Hibernate(at) => What::HibernateAtUs(at.as_micros()),
        // An announcement of its own says what is allowed now.
        ProviderAnnouncement::Booted | ProviderAnnouncement::Rewired => {
            What::Booted(v1::Nothing {})
        }
        ProviderAnnouncement::FilesKept => What::KeepFiles(v1::Nothing {}),
        ProviderAnnouncement::FilesForgotten => What::ForgetFiles(v1::Nothing {}),
        ProviderAnnouncement::Rebalance => What::Rebalance(v1::Nothing {}),
    };
    v1::Announce { vm: vm.get(), what: Some(what) }
}

const fn fault_to_wire(kind: FaultKind) -> v1::fault::Kind {
    use v1::fault::Kind;
    match kind {
        FaultKind::Partition => Kind::Partition(v1::Nothing {}),
        FaultKind::Delay { real_us } => Kind::DelayRealUs(real_us),
        FaultKind::Loss { part } => Kind::LossPpm(part.get()),
        FaultKind::Rate { bytes_per_second } => Kind::BytesPerRealSecond(bytes_per_second.get()),
        FaultKind::Kill => Kind::Kill(v1::Nothing {}),
        FaultKind::Pause => Kind::Pause(v1::Nothing {}),
        FaultKind::DiskFull => Kind::DiskFull(v1::Nothing {}),
        FaultKind::SlowCriu { real_us } => Kind::CriuRealUs(real_us),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as the wire has it")]
fn task_ref(vm: VmId, task: TaskId, attempt: Attempt) -> Option<v1::TaskRef> {
    Some(v1::TaskRef { vm: vm.get(), task: task.get(), attempt: attempt.get() })
}

const fn tier_to_wire(tier: Tier) -> v1::Tier {
    match tier {
        Tier::Foreground => v1::Tier::Foreground,
        Tier::Background => v1::Tier::Background,
    }
}

const fn mode_to_wire(mode: Mode) -> v1::Mode {
    match mode {
        Mode::Burst => v1::Mode::Burst,
        Mode::Baseline => v1::Mode::Baseline,
    }
}

fn burstable_to_wire(b: BurstableTerms) -> v1::Burstable {
    v1::Burstable {
        baseline_ppm: b.baseline.get(),
        emulated_earned_us_per_hour: b.earned_per_hour.as_vcpu_micros(),
        emulated_initial_us: b.initial.as_vcpu_micros(),
        emulated_cap_us: b.cap.as_vcpu_micros(),
    }
}

/// Most bytes of one report of a console: 16 KiB, of which each byte that is no text has become three.
const CONSOLE_PART: usize = 48 << 10;

/// Longest answer of a task that is accepted and logged, in bytes.
const MOST_RESULT: usize = 16 << 10;

/// Time of a reported event on the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportTime {
    /// The event happened this long after the decision to start the attempt.
    After(Span),
    /// The event happened at this instant.
    At(Time),
    /// The event happens at this instant, which may be in the future: a worker reports the end of a job a little early,
    /// so that the report arrives in time.
    Ahead(Time),
}

/// A report decoded from the wire.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DecodedReport {
    /// The worker has measured the programs.
    Ready { repetition_us: Vec<u64> },
    /// A report to the engine, with the account of an attempt that has ended, the time of the event, and the seats of
    /// an attempt that begins.
    Report { report: Report, ledger: Option<Report>, due: Option<ReportTime>, began: Option<Seats> },
    /// Load of the worker's host.
    Load(v1::HostLoad),
    /// Console output of a VM: what the programs of its cell, the jail of an instance, have printed.
    Console { vm: VmId, text: String },
    /// The processes of the cell of a VM have shut the VM down.
    PoweredOff { vm: VmId },
    /// State of a fault at the worker, and how late it was reached.
    Fault { fault: FaultId, felt: FaultState, real_took_us: u64 },
    /// The worker doesn't know the command of this number.
    Unsupported { command: u64, what: String },
}

/// Decodes a report.
///
/// # Errors
///
/// What is wrong with the report.
pub(crate) fn decode_report(report: v1::Report) -> Result<DecodedReport, String> {
    use v1::report::Report as Wire;
    let wire = report.report.ok_or(
        "it is empty, or of a kind that this version does not know: use \
             the same version of worker and coordinator",
    )?;
    let (mut ledger, mut due, mut began) = (None, None, None);
    let report = match wire {
        Wire::Ready(ready) => {
            return Ok(DecodedReport::Ready { repetition_us: ready.real_repetition_us });
        }
        Wire::HostLoad(load) => return Ok(DecodedReport::Load(load)),
        Wire::VmConsole(v1::VmConsole { vm, text }) => {
            if text.len() > CONSOLE_PART {
                return Err(format!("{} bytes of a console at once are too many", text.len()));
            }
            return Ok(DecodedReport::Console { vm: VmId::new(vm), text });
        }
        Wire::VmPoweredOff(it) => return Ok(DecodedReport::PoweredOff { vm: VmId::new(it.vm) }),
        Wire::FaultFelt(v1::FaultFelt { fault, felt, real_took_us }) => {
            use v1::fault_felt::Felt as Said;
            let felt = match felt.ok_or("it does not say whether the fault has begun or ended")? {
                Said::Begun(_) => FaultState::Begun,
                Said::Over(_) => FaultState::Over,
                Said::Refused(why) => FaultState::Refused { why },
            };
            return Ok(DecodedReport::Fault { fault: FaultId::new(fault), felt, real_took_us });
        }
        Wire::Unsupported(v1::Unsupported { command, what }) => {
            return Ok(DecodedReport::Unsupported { command, what });
        }
        Wire::VmCreated(it) => Report::VmCreated { vm: VmId::new(it.vm) },
        Wire::VmFrozen(v1::VmTook { vm, real_took_us }) => {
            Report::VmFrozen { vm: VmId::new(vm), real_took_us }
        }
        Wire::VmThawed(v1::VmTook { vm, real_took_us }) => {
            Report::VmThawed { vm: VmId::new(vm), real_took_us }
        }
        Wire::VmDestroyed(it) => Report::VmDestroyed { vm: VmId::new(it.vm) },
        Wire::VmFailed(it) => Report::VmFailed { vm: VmId::new(it.vm), why: it.why },
        Wire::TaskStarted(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            let done = decode_part(it.done_ppm)?;
            began = it.seats.map(|seats| seats_of(vm, &seats));
            let (real_took_us, real_inputs_us) = (it.real_took_us, it.real_inputs_us);
            // What is no part of the whole is none.
            let real_inputs_us = real_inputs_us.min(real_took_us);
            Report::TaskStarted { vm, task, attempt, done, real_took_us, real_inputs_us }
        }
        Wire::TaskPromoted(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            Report::TaskPromoted { vm, task, attempt, real_took_us: it.real_took_us }
        }
        Wire::TaskMoved(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            Report::TaskMoved {
                vm,
                task,
                attempt,
                done: decode_part(it.done_ppm)?,
                lost: it.lost.unwrap_or_default(),
                real_took_us: it.real_took_us,
                real_dump_us: it.real_dump_us,
                real_restore_us: it.real_restore_us,
                bytes: Bytes::new(it.bytes),
            }
        }
        Wire::TaskFinished(it) => {
            let of @ (vm, task, attempt) = of_task(it.task)?;
            let result = it.result.filter(|text| text.len() <= MOST_RESULT).map(Arc::from);
            let own = it.own.map(own_end).transpose()?;
            ledger = decode_account(of, (it.ledger, own), it.job.map(|job| (Ppm::ONE, job)));
            due = it.due.map(|due| match due {
                v1::task_finished::Due::EmulatedAfterUs(us) => {
                    ReportTime::After(Span::from_micros(us))
                }
                v1::task_finished::Due::EmulatedAtUs(us) => {
                    ReportTime::Ahead(Time::from_micros(us))
                }
            });
            let (verified, real_cpu_us) = (it.verified, it.real_cpu_us);
            // By its worker's word, until the conductor has looked at the answer.
            let reported = true;
            let program_failed = false;
            Report::TaskFinished {
                vm,
                task,
                attempt,
                verified,
                reported,
                program_failed,
                result,
                real_cpu_us,
            }
        }
        Wire::TaskFailed(it) => {
            let of @ (vm, task, attempt) = of_task(it.task)?;
            let done = decode_part(it.done_ppm)?;
            let own = it.own.map(own_end).transpose()?;
            ledger = decode_account(of, (it.ledger, own), it.job.map(|job| (done, job)));
            let v1::TaskFailed { why, real_cpu_us, could_not_restore, .. } = it;
            Report::TaskFailed { vm, task, attempt, why, real_cpu_us, could_not_restore }
        }
        Wire::TaskStopped(it) => {
            let of @ (vm, task, attempt) = of_task(it.task)?;
            let done = decode_part(it.done_ppm)?;
            ledger = decode_account(of, (it.ledger, None), it.job.map(|job| (done, job)));
            let kept = it.checkpoint.map(decode_number).transpose()?.map(|number| (number, done));
            Report::TaskStopped { vm, task, attempt, kept, real_cpu_us: it.real_cpu_us }
        }
        Wire::CheckpointTaken(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            Report::CheckpointTaken {
                vm,
                task,
                attempt,
                checkpoint: decode_number(it.checkpoint)?,
                done: decode_part(it.done_ppm)?,
                bytes: Bytes::new(it.bytes),
                real_held_us: it.real_held_us,
                real_dump_us: it.real_dump_us,
                real_owed_us: it.real_owed_us,
                real_criu_us: it.real_criu_us,
                held_at: it.emulated_held_at_us.map(Time::from_micros),
            }
        }
        Wire::CheckpointFailed(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            Report::CheckpointFailed { vm, task, attempt, why: it.why }
        }
        Wire::TaskIdle(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            Report::TaskIdle { vm, task, attempt, real_for_us: it.real_for_us }
        }
        Wire::TaskCompared(it) => {
            let (vm, task, attempt) = of_task(it.task)?;
            Report::TaskCompared { vm, task, attempt, changes: it.changes.into() }
        }
        Wire::Credits(it) => {
            due = it.emulated_at_us.map(|us| ReportTime::At(Time::from_micros(us)));
            let balance = Credits::from_vcpu_micros(it.emulated_us);
            Report::Credits { vm: VmId::new(it.vm), balance, as_of: None }
        }
        Wire::VmShare(it) => Report::Share {
            vm: VmId::new(it.vm),
            real_promised_us: it.real_promised_us,
            real_received_us: it.real_received_us,
        },
    };
    Ok(DecodedReport::Report { report, ledger, due, began })
}

/// Decodes the account of an attempt that has ended; for a parallel job with the part of its work that was done.
fn decode_account(
    of: (VmId, TaskId, Attempt),
    (ledger, own): (Option<v1::Ledger>, Option<ProgramEnd>),
    job: Option<(Ppm, v1::JobAccount)>,
) -> Option<Report> {
    match job {
        Some((done, job)) => Some(parallel::read_account(of, done, &job)),
        None => ledger.map(|ledger| of_ledger(of, &ledger, own)),
    }
}

fn of_ledger(
    (vm, task, attempt): (VmId, TaskId, Attempt),
    of: &v1::Ledger,
    own: Option<ProgramEnd>,
) -> Report {
    let ledger = AttemptLedger {
        real_promised_us: of.real_promised_us,
        real_took_us: of.real_took_us,
        real_promised_work_us: of.real_promised_work_us,
        real_worked_us: of.real_worked_us,
        real_charged_us: of.real_charged_us,
        real_birth_us: of.real_birth_us,
        real_criu_us: of.real_criu_us,
        real_ahead_us: of.real_ahead_us,
        real_behind_us: of.real_behind_us,
        real_stood_us: of.real_stood_us,
        missed_checkpoints: of.missed_checkpoints,
        real_whole_work_us: of.real_whole_work_us,
        real_slice_us: of.real_slice_us,
    };
    Report::Ledger { vm, task, attempt, ledger: Box::new(ledger), own: own.map(Arc::new) }
}

fn seats_of(vm: VmId, of: &v1::Seats) -> Seats {
    let tier = match of.tier() {
        v1::Tier::Foreground => Tier::Foreground,
        v1::Tier::Background => Tier::Background,
    };
    Seats { vm, tier, cpus: of.vcpus.iter().copied().collect() }
}

fn of_task(of: Option<v1::TaskRef>) -> Result<(VmId, TaskId, Attempt), String> {
    let of = of.ok_or("it does not name its task")?;
    Ok((VmId::new(of.vm), TaskId::new(of.task), Attempt::new(of.attempt)))
}

/// Decodes the number of a checkpoint.
fn decode_number(checkpoint: u32) -> Result<CheckpointSeq, String> {
    match checkpoint {
        0 => Err("it names checkpoint 0, but checkpoints are numbered from 1".to_owned()),
        number => Ok(CheckpointSeq::new(number)),
    }
}

fn decode_part(ppm: u32) -> Result<Ppm, String> {
    if ppm > Ppm::ONE.get() {
        return Err(format!(
            "it reports {ppm} millionths of the work as done, which is more than all of it"
        ));
    }
    Ok(Ppm::new(ppm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_reports_are_refused_with_what_is_wrong() {
        use v1::report::Report as Wire;
        let no_task = Wire::TaskFinished(v1::TaskFinished::default());
        let task = Some(v1::TaskRef { vm: 1, task: 2, attempt: 3 });
        let too_much =
            Wire::TaskStarted(v1::TaskStarted { task, done_ppm: 1_000_001, ..Default::default() });
        let zeroth = Wire::CheckpointTaken(v1::CheckpointTaken { task, ..Default::default() });
        let moved_too_much =
            Wire::TaskMoved(v1::TaskMoved { task, done_ppm: 1_000_001, ..Default::default() });
        let kept_nowhere =
            Wire::TaskStopped(v1::TaskStopped { task, checkpoint: Some(0), ..Default::default() });
        for (report, word) in [
            (None, "empty"),
            (Some(no_task), "name its task"),
            (Some(too_much), "more than all of it"),
            (Some(zeroth), "from 1"),
            (Some(moved_too_much), "more than all of it"),
            (Some(kept_nowhere), "from 1"),
        ] {
            let no = decode_report(v1::Report { report }).expect_err("damaged");
            assert!(no.contains(word), "{no}");
        }
    }

    #[test]
    fn a_stop_without_checkpoint_keeps_nothing() {
        let task = Some(v1::TaskRef { vm: 1, task: 2, attempt: 3 });
        let stopped =
            v1::TaskStopped { task, done_ppm: 500_000, real_cpu_us: 7, ..Default::default() };
        let report = Some(v1::report::Report::TaskStopped(stopped));
        assert_eq!(
            decode_report(v1::Report { report }),
            Ok(DecodedReport::Report {
                report: Report::TaskStopped {
                    vm: VmId::new(1),
                    task: TaskId::new(2),
                    attempt: Attempt::new(3),
                    kept: None,
                    real_cpu_us: 7
                },
                ledger: None,
                due: None,
                began: None,
            })
        );
    }

    #[test]
    fn a_job_is_heard_of_with_its_account_when_it_is_due() {
        let task = Some(v1::TaskRef { vm: 4, task: 2, attempt: 3 });
        let job = Some(v1::JobAccount { real_late_us: -7, ..Default::default() });
        let due = Some(v1::task_finished::Due::EmulatedAtUs(0));
        let finished = v1::TaskFinished { task, verified: true, job, due, ..Default::default() };
        let report = Some(v1::report::Report::TaskFinished(finished));
        let Ok(DecodedReport::Report { ledger, due, .. }) = decode_report(v1::Report { report })
        else {
            panic!("it is sound");
        };
        assert_eq!(due, Some(ReportTime::Ahead(Time::ZERO)), "zero is a time, and not none");
        let Some(Report::JobAccount { account, .. }) = ledger else { panic!("no account") };
        assert_eq!((account.done, account.real_late_us), (Ppm::ONE, -7));
    }

    #[test]
    fn a_job_that_failed_has_an_account() {
        let task = Some(v1::TaskRef { vm: 4, task: 2, attempt: 3 });
        let job = Some(v1::JobAccount { real_late_us: 5, ..Default::default() });
        let failed = v1::TaskFailed { task, job, done_ppm: 250_000, ..Default::default() };
        let report = Some(v1::report::Report::TaskFailed(failed));
        let Ok(DecodedReport::Report { ledger, .. }) = decode_report(v1::Report { report }) else {
            panic!("it is sound");
        };
        let Some(Report::JobAccount { account, .. }) = ledger else { panic!("no account") };
        assert_eq!((account.done, account.real_late_us), (Ppm::new(250_000), 5));
    }
}
