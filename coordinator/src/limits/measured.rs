//! Bounds of workers' measurements: no more than the time for which the host has been connected, by the coordinator's
//! own clock, on all its cores. The time of a host's load has no such bound: its worker counts from its first welcome, which may have
//! come from a coordinator whose log a power cut took.

use std::time::Duration;

use dormouse_model::{AttemptLedger, JobStartLedger, LoadReport, Report};

/// Time by which a worker's clock may be ahead of the coordinator's: both count from the welcome, which one sends
/// before the other receives it.
const SLACK: Duration = Duration::from_secs(1);
/// More cores than any host has, in thousandths.
const MOST_MILLICORES: u32 = 4_096_000;
/// Longest time that a worker may have promised, in microseconds; promises aren't bounded by the time that has
/// passed.
const MOST_PROMISED: u64 = 1 << 40;

/// Bytes of memory per microsecond that no host can read and write: 100 GB/s.
const MOST_BYTES_PER_US: u64 = 100_000;

/// Checks that CRIU can have taken a checkpoint of this size in the reported time, while its task was stopped for the
/// reported time.
///
/// # Errors
///
/// What is impossible, and what would be possible.
pub(crate) fn check_dump(
    bytes: u64,
    real_dump_us: u64,
    real_held_us: u64,
    is_by_criu: bool,
) -> Result<(), String> {
    let least_us = bytes / MOST_BYTES_PER_US;
    if is_by_criu && real_dump_us < least_us {
        return Err(format!(
            "it claims that CRIU took {real_dump_us} us for {bytes} bytes, which takes at least \
             {least_us} us"
        ));
    }
    // A task stands still until its dump is over; where it is not known how long, that is nothing.
    if real_held_us > 0 && real_dump_us > real_held_us.saturating_add(to_us(SLACK)) {
        return Err(format!(
            "it claims that CRIU took {real_dump_us} us, while the task was stopped for {real_held_us} us"
        ));
    }
    Ok(())
}

/// Bounds of the CPU time that a VM can have used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VmRoom {
    /// Number of the VM's vCPUs, each of which uses at most a core.
    pub(crate) vcpus: u32,
    /// Time for which the VM's host has been connected.
    pub(crate) there: Duration,
}

impl VmRoom {
    /// Returns the most CPU time that the VM can have used, in microseconds.
    fn cpu_us(self) -> u64 {
        self.wall_us().saturating_mul(u64::from(self.vcpus.max(1)))
    }

    fn wall_us(self) -> u64 {
        to_us(self.there + SLACK)
    }
}

fn to_us(of: Duration) -> u64 {
    u64::try_from(of.as_micros()).unwrap_or(u64::MAX)
}

fn check_most(what: &str, is: u64, most: u64) -> Result<(), String> {
    match is > most {
        true => Err(format!("{what} of {is} us is impossible: at most {most} us were available")),
        false => Ok(()),
    }
}

/// Checks that a host's reported load is possible after the one `before`.
///
/// # Errors
///
/// What is impossible, and what would be possible.
pub(crate) fn check_load(load: &LoadReport, before: Option<&LoadReport>) -> Result<(), String> {
    let LoadReport { elapsed_us, millicores, busy_us, ours_us, machine } = load;
    if *millicores > MOST_MILLICORES {
        return Err(format!(
            "it offers {millicores} thousandths of a core; the limit is {MOST_MILLICORES}"
        ));
    }
    let slack = to_us(SLACK).saturating_mul(u64::from(*millicores).div_ceil(1000).max(1));
    let all = u128::from(*elapsed_us) * u128::from(*millicores) / 1000;
    let all = u64::try_from(all).unwrap_or(u64::MAX).saturating_add(slack);
    check_most("a busy time of the host's cores", *busy_us, all)?;
    check_most("a worker's part in that", *ours_us, all)?;
    match before.is_some_and(|before| *machine != before.machine) {
        true => Err("its load is of another machine than in the report before".to_owned()),
        false => Ok(()),
    }
}

/// Checks that a report doesn't claim more than a VM can have used.
///
/// # Errors
///
/// The impossible claim, and the bound.
pub(crate) fn check_report(report: &Report, room: VmRoom) -> Result<(), String> {
    match report {
        &Report::Share { real_promised_us, real_received_us, .. } => {
            check_most("a promise of CPU time", real_promised_us, room.cpu_us())?;
            check_most("CPU time received", real_received_us, room.cpu_us())
        }
        Report::Ledger { ledger, .. } => check_ledger(ledger, room),
        Report::JobAccount { account, .. } => match &account.ledger {
            Some(ledger) => check_job(ledger, room),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_ledger(of: &AttemptLedger, room: VmRoom) -> Result<(), String> {
    let (wall, cpu) = (room.wall_us(), room.cpu_us());
    check_most("a time that a task took", of.real_took_us, wall)?;
    check_most("a time for which a task was stopped", of.real_stood_us, wall)?;
    for (what, is) in [
        ("work", of.real_worked_us),
        ("CPU time on its account", of.real_charged_us),
        ("CPU time of a birth", of.real_birth_us),
        ("CPU time of CRIU", of.real_criu_us),
    ] {
        check_most(what, is, cpu)?;
    }
    check_most("a promised time", of.real_promised_us, MOST_PROMISED)
}

fn check_job(of: &JobStartLedger, room: VmRoom) -> Result<(), String> {
    let cpu = room.cpu_us();
    check_most("CPU time received", of.received_us, cpu)?;
    check_most("CPU time used beside", of.beside_us, cpu)?;
    check_most("CPU time due", of.due_us, MOST_PROMISED)
}

#[cfg(test)]
mod tests {
    use dormouse_units::{Attempt, TaskId, VmId};

    use super::*;

    const S: u64 = 1_000_000;

    fn load(elapsed_us: u64, busy_us: u64, ours_us: u64) -> LoadReport {
        let machine = "m".to_owned();
        LoadReport { elapsed_us, millicores: 2_000, busy_us, ours_us, machine }
    }

    /// The attack: a padded checkpoint of nothing, dumped in no time; or a whole delay that is reported as CRIU's.
    #[test]
    fn criu_takes_time_for_what_was_stored_and_no_more_than_the_task_stood_still() {
        let hundred_mb = 100_000_000;
        assert_eq!(check_dump(hundred_mb, 30_000, 31_000, true), Ok(()));
        assert_eq!(check_dump(hundred_mb, 0, 0, false), Ok(()), "CRIU had no part in it");
        assert_eq!(check_dump(50_000, 0, 0, true), Ok(()), "of so little nothing is known");
        let no = check_dump(hundred_mb, 10, 31_000, true).expect_err("too little");
        assert!(
            no.contains("took 10 us for 100000000 bytes, which takes at least 1000 us"),
            "{no}"
        );
        let no = check_dump(1, 5 * S, 3 * S, true).expect_err("too much");
        assert!(no.contains("5000000 us, while the task was stopped for 3000000 us"), "{no}");
    }

    #[test]
    fn no_host_is_busy_for_longer_than_it_is_there() {
        let check = |of: &LoadReport| check_load(of, None);
        assert_eq!(check(&load(10 * S, 20 * S, 5 * S)), Ok(()));
        for wrong in [
            load(10 * S, 1 << 47, 5 * S),
            load(10 * S, 20 * S, 1 << 47),
            load(10 * S, 23 * S, 5 * S),
            LoadReport { millicores: u32::MAX, ..load(10 * S, 20 * S, 5 * S) },
        ] {
            let no = check(&wrong);
            assert!(
                no.as_ref()
                    .is_err_and(|no| no.contains("impossible") || no.contains("the limit is")),
                "{wrong:?}: {no:?}"
            );
        }
        let before = load(9 * S, 2 * S, S);
        assert_eq!(check_load(&load(10 * S, 2 * S, S), Some(&before)), Ok(()));
        let elsewhere = LoadReport { machine: "another".to_owned(), ..before.clone() };
        assert!(check_load(&elsewhere, Some(&before)).is_err());
    }

    #[test]
    fn no_vm_has_more_than_its_vcpus_and_the_time_that_passed() {
        let room = VmRoom { vcpus: 2, there: Duration::from_secs(10) };
        let share = |real_received_us: u64| {
            let (vm, real_promised_us) = (VmId::new(1), S);
            check_report(&Report::Share { vm, real_promised_us, real_received_us }, room)
        };
        assert_eq!(share(20 * S), Ok(()));
        assert!(share(23 * S).is_err() && share(1 << 47).is_err());
        let ledger = |ledger: AttemptLedger| {
            let (vm, task, attempt) = (VmId::new(1), TaskId::new(0), Attempt::new(1));
            check_report(
                &Report::Ledger { vm, task, attempt, ledger: Box::new(ledger), own: None },
                room,
            )
        };
        let right = AttemptLedger {
            real_took_us: 10 * S,
            real_charged_us: 9 * S,
            ..AttemptLedger::default()
        };
        assert_eq!(ledger(right), Ok(()));
        assert!(ledger(AttemptLedger { real_took_us: 12 * S, ..right }).is_err());
        assert!(ledger(AttemptLedger { real_charged_us: 1 << 47, ..right }).is_err());
    }
}
