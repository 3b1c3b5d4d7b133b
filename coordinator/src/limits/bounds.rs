//! Bounds of the numbers in workers' reports: impossible numbers are refused before anything is computed with them.

use dormouse_proto::v1;
use v1::report::Report as R;
use v1::task_finished::Due;

/// Largest reported amount of microseconds, bytes or thousandths: nine years, 256 TiB. Sums of tens of thousands of
/// these don't overflow.
const MAX_NUMBER: u64 = 1 << 48;
/// Largest emulated time in a report: it may pass a million times as fast as real time, but isn't summed.
const MOST_EMULATED: u64 = 1 << 62;

/// Checks that no number in a report is too large.
///
/// # Errors
///
/// The number, and its bound.
pub(crate) fn check_numbers(report: &v1::Report) -> Result<(), String> {
    let Some(report) = &report.report else { return Ok(()) };
    let most = |most: u64, numbers: &[u64]| match numbers.iter().find(|n| **n > most) {
        Some(n) => Err(format!("it has the number {n}, and no more than {most} is possible there")),
        None => Ok(()),
    };
    match report {
        R::TaskFinished(v1::TaskFinished { due: Some(due), .. }) => {
            let (Due::EmulatedAfterUs(us) | Due::EmulatedAtUs(us)) = due;
            most(MOST_EMULATED, &[*us])?;
        }
        R::Credits(it) => most(MOST_EMULATED, &[it.emulated_at_us.unwrap_or_default()])?,
        R::CheckpointTaken(it) => {
            most(MOST_EMULATED, &[it.emulated_held_at_us.unwrap_or_default()])?;
        }
        _ => {}
    }
    most(MAX_NUMBER, &report_numbers(report))
}

/// Returns the numbers in a report that `MAX_NUMBER` bounds: durations in real time, sizes in bytes, and amounts that
/// are summed.
fn report_numbers(report: &R) -> Vec<u64> {
    match report {
        R::Ready(it) => it.real_repetition_us.clone(),
        R::VmFrozen(it) | R::VmThawed(it) => vec![it.real_took_us],
        R::FaultFelt(it) => vec![it.real_took_us],
        R::TaskStarted(it) => vec![it.real_took_us, it.real_inputs_us],
        R::TaskPromoted(it) => vec![it.real_took_us],
        R::TaskIdle(it) => vec![it.real_for_us],
        R::TaskMoved(it) => {
            vec![it.real_took_us, it.real_dump_us, it.real_restore_us, it.bytes]
        }
        R::TaskFinished(it) => of_end(it.real_cpu_us, it.ledger.as_ref(), it.job.as_ref()),
        R::TaskFailed(it) => of_end(it.real_cpu_us, it.ledger.as_ref(), it.job.as_ref()),
        R::TaskStopped(it) => of_end(it.real_cpu_us, it.ledger.as_ref(), it.job.as_ref()),
        R::CheckpointTaken(it) => {
            let of_criu = [it.real_dump_us, it.real_criu_us];
            [&[it.bytes, it.real_held_us, it.real_owed_us][..], &of_criu].concat()
        }
        R::Credits(it) => vec![it.emulated_us],
        R::VmShare(it) => vec![it.real_promised_us, it.real_received_us],
        R::HostLoad(it) => vec![it.real_elapsed_us, it.real_busy_us, it.real_ours_us],
        R::Unsupported(_)
        | R::VmCreated(_)
        | R::VmDestroyed(_)
        | R::VmFailed(_)
        | R::TaskCompared(_)
        | R::VmConsole(_)
        | R::VmPoweredOff(_)
        | R::CheckpointFailed(_) => Vec::new(),
    }
}

fn of_end(cpu_us: u64, ledger: Option<&v1::Ledger>, job: Option<&v1::JobAccount>) -> Vec<u64> {
    let mut all = vec![cpu_us];
    if let Some(it) = ledger {
        all.extend([it.real_promised_us, it.real_took_us]);
        all.extend([it.real_promised_work_us, it.real_worked_us]);
        all.extend([it.real_charged_us, it.real_birth_us, it.real_criu_us]);
        all.extend([it.real_ahead_us, it.real_behind_us, it.real_stood_us]);
        all.extend([it.real_whole_work_us, it.real_slice_us]);
    }
    if let Some(job) = job {
        all.push(job.real_late_us.unsigned_abs());
        for it in &job.uses {
            all.extend([it.real_wall_us, it.real_wanted_us, it.real_promised_us]);
            all.extend([it.real_cpu_us, it.real_may_wait_us]);
        }
        if let Some(it) = &job.ledger {
            all.extend([it.real_due_us, it.real_received_us, it.real_beside_us]);
            all.extend([it.real_lifted_us, it.real_ahead_us, it.real_behind_us]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_real_can_be_is_refused() {
        let ledger = Some(v1::Ledger { real_criu_us: u64::MAX, ..v1::Ledger::default() });
        let uses = vec![v1::ProcessUse { real_cpu_us: 1 << 63, ..v1::ProcessUse::default() }];
        let used = Some(v1::JobAccount { uses, ..Default::default() });
        let early = Some(v1::JobAccount { real_late_us: i64::MIN, ..Default::default() });
        let after = Some(Due::EmulatedAfterUs(1 << 63));
        let at = Some(Due::EmulatedAtUs(1 << 63));
        for report in [
            R::VmFrozen(v1::VmTook { vm: 1, real_took_us: 1 << 63 }),
            R::TaskFinished(v1::TaskFinished { real_cpu_us: u64::MAX, ..Default::default() }),
            R::TaskFinished(v1::TaskFinished { due: after, ..Default::default() }),
            R::TaskFinished(v1::TaskFinished { due: at, ..Default::default() }),
            R::TaskFinished(v1::TaskFinished { job: early, ..Default::default() }),
            R::TaskFailed(v1::TaskFailed { ledger, ..Default::default() }),
            R::TaskStopped(v1::TaskStopped { job: used, ..Default::default() }),
            R::Credits(v1::CreditBalance { vm: 1, emulated_us: 0, emulated_at_us: Some(u64::MAX) }),
            R::Ready(v1::Ready { real_repetition_us: vec![1, MAX_NUMBER + 1] }),
        ] {
            let no =
                check_numbers(&v1::Report { report: Some(report.clone()) }).expect_err("too much");
            assert!(no.contains("is possible there"), "{report:?}: {no}");
        }
        let most = R::VmThawed(v1::VmTook { vm: u32::MAX, real_took_us: MAX_NUMBER });
        assert_eq!(check_numbers(&v1::Report { report: Some(most) }), Ok(()));
        assert_eq!(
            check_numbers(&v1::Report { report: None }),
            Ok(()),
            "that is another's to refuse"
        );
    }
}
