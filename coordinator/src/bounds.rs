//! Numbers of a worker's reports that nothing real can be: they are refused before anything is
//! reckoned with them.

use dormouse_proto::v1;
use v1::report::Report as R;

/// The most of anything that is reported in microseconds, bytes or thousandths: nine years, 256 TiB.
/// Sums of tens of thousands of these fit into what they are kept in.
const MOST: u64 = 1 << 48;
/// The most emulated time: it may go a million times as fast, but is not summed up.
const MOST_EMULATED: u64 = 1 << 62;

/// Refuses a report with such a number.
///
/// # Errors
///
/// Which, and how much it may be.
pub(crate) fn check(report: &v1::Report) -> Result<(), String> {
    let Some(report) = &report.report else { return Ok(()) };
    let most = |most: u64, numbers: &[u64]| match numbers.iter().find(|n| **n > most) {
        Some(n) => Err(format!("{n} can't be: no such number is more than {most}")),
        None => Ok(()),
    };
    match report {
        R::TaskFinished(it) => most(MOST_EMULATED, &[it.after_us])?,
        R::Credits(it) => most(MOST_EMULATED, &[it.at_us.unwrap_or_default()])?,
        R::JobFinished(it) => {
            most(MOST_EMULATED, &[it.job.map_or(0, |job| job.at_us)])?;
        }
        _ => {}
    }
    most(MOST, &numbers(report))
}

/// The numbers of a report that are of the real world.
fn numbers(report: &R) -> Vec<u64> {
    match report {
        R::Ready(it) => it.repetition_us.clone(),
        R::VmFrozen(it) | R::VmThawed(it) => vec![it.took_us],
        R::TaskStarted(it) => vec![it.took_us],
        R::TaskFinished(it) => with_ledger(it.cpu_us, it.ledger.as_ref()),
        R::TaskFailed(it) => with_ledger(it.cpu_us, it.ledger.as_ref()),
        R::TaskStopped(it) => with_ledger(it.cpu_us, it.ledger.as_ref()),
        R::CheckpointTaken(it) => {
            vec![it.bytes, it.held_us, it.dump_us, it.owed_us, it.criu_us]
        }
        R::Credits(it) => vec![it.vcpu_us],
        R::VmShare(it) => vec![it.promised_us, it.received_us],
        R::HostLoad(it) => vec![it.elapsed_us, it.busy_us, it.ours_us],
        R::JobStarted(it) => vec![it.took_us],
        R::JobPromoted(it) => vec![it.took_us],
        R::JobMoved(it) => vec![it.took_us, it.dump_us, it.restore_us, it.bytes],
        R::JobKilled(it) => of_job(&it.uses, it.ledger.as_ref()),
        R::JobFinished(it) => {
            let mut all = of_job(&it.uses, it.ledger.as_ref());
            all.push(it.late_us.unsigned_abs());
            all
        }
        R::Unsupported(_)
        | R::VmCreated(_)
        | R::VmDestroyed(_)
        | R::VmFailed(_)
        | R::CheckpointFailed(_)
        | R::JobFailed(_) => Vec::new(),
    }
}

fn with_ledger(cpu_us: u64, ledger: Option<&v1::Ledger>) -> Vec<u64> {
    let mut all = vec![cpu_us];
    if let Some(it) = ledger {
        all.extend([it.promised_us, it.took_us, it.promised_work_us, it.worked_us]);
        all.extend([it.charged_us, it.birth_us, it.criu_us, it.ahead_us, it.behind_us]);
        all.extend([it.stood_us, it.whole_work_us, it.slice_us]);
    }
    all
}

fn of_job(uses: &[v1::ProcessUse], ledger: Option<&v1::JobLedger>) -> Vec<u64> {
    let of_use =
        |it: &v1::ProcessUse| [it.wall_us, it.wanted_us, it.promised_us, it.cpu_us, it.may_wait_us];
    let mut all: Vec<u64> = uses.iter().flat_map(of_use).collect();
    if let Some(it) = ledger {
        all.extend([it.due_us, it.received_us, it.beside_us]);
        all.extend([it.lifted_us, it.ahead_us, it.behind_us]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_real_can_be_is_refused() {
        let ledger = Some(v1::Ledger { criu_us: u64::MAX, ..v1::Ledger::default() });
        let uses = vec![v1::ProcessUse { cpu_us: 1 << 63, ..v1::ProcessUse::default() }];
        for report in [
            R::VmFrozen(v1::VmTook { vm: 1, took_us: 1 << 63 }),
            R::TaskFinished(v1::TaskFinished { cpu_us: u64::MAX, ..Default::default() }),
            R::TaskFinished(v1::TaskFinished { after_us: 1 << 63, ..Default::default() }),
            R::TaskFailed(v1::TaskFailed { ledger, ..Default::default() }),
            R::Credits(v1::CreditBalance { vm: 1, vcpu_us: 0, at_us: Some(u64::MAX) }),
            R::Ready(v1::Ready { repetition_us: vec![1, MOST + 1] }),
            R::JobKilled(v1::JobKilled { uses, ..Default::default() }),
            R::JobFinished(v1::JobFinished { late_us: i64::MIN, ..Default::default() }),
        ] {
            let no = check(&v1::Report { report: Some(report.clone()) }).expect_err("too much");
            assert!(no.contains("can't be"), "{report:?}: {no}");
        }
        let most = R::VmThawed(v1::VmTook { vm: u32::MAX, took_us: MOST });
        assert_eq!(check(&v1::Report { report: Some(most) }), Ok(()));
        assert_eq!(check(&v1::Report { report: None }), Ok(()), "that is another's to refuse");
    }
}
