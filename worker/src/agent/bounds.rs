//! Limits on what a coordinator can demand of a worker: whoever the coordinator is, a worker does nothing that no run
//! needs. `docs/bounds.md` lists the limits.

use dormouse_proto::v1::{
    CreateVm, Metadata, MoveTask, OwnProgram, Program, Report, SetNetwork, StartTask,
    command::Command,
};
use dormouse_tasks::{
    cli::check_remote,
    limits::{ProgramWords, WHY_BYTES, largest_checkpoint},
};
use dormouse_units::Bytes;

use super::cell::{CellNetwork, check_cell};

/// Largest number of VMs of a worker at the same time.
pub(crate) const VMS: usize = 512;
/// Most file descriptors of a VM: 64 connections to its metadata endpoint, the endpoint, handles of its processes,
/// and files of a checkpoint.
const DESCRIPTORS_PER_VM: u64 = 80;
/// File descriptors that a worker needs beside its VMs: connections, and files of programs and transfers.
const OWN_DESCRIPTORS: u64 = 1024;
/// Most vCPUs of all VMs for each core that the worker offers, a part of a core counted as one: with more, a vCPU
/// would get less than the kernel's smallest quota in its longest period.
pub(crate) const VCPUS_PER_CORE: u32 = 1024;
/// Greatest sum of the core shares promised to VMs of parallel jobs, as a multiple of the cores that the worker offers.
pub(crate) const SHARES_PER_OFFER: u64 = 2;
/// Most vCPUs that a task or a plan may name.
const SEATS: usize = 1024;
/// Most checkpoint positions of a task.
const CHECKPOINTS: usize = 65_536;
/// Most arguments of a program.
const ARGUMENTS: usize = 64;
/// Most bytes of all arguments of a program.
const ARGUMENT_BYTES: usize = 16 << 10;
/// Most bytes of the name of a VM's type.
const NAME_BYTES: usize = 256;
/// Number of VMs for which a worker warns at its start if it lacks descriptors; few hosts get more.
const FEW_VMS: u64 = 64;
/// Most tags of a VM.
const TAGS: usize = 50;
/// Most security groups of a VM.
const GROUPS: usize = 64;
/// Most bytes of the name or the value of a tag: 256 characters.
const TAG_BYTES: usize = 1024;
/// Most bytes of a text about a VM's key pair or role.
const KEY_BYTES: usize = 16 << 10;
/// Most bytes of a VM's user data.
const USER_DATA_BYTES: usize = 16 << 10;
/// Most programs that are measured before a run.
pub(crate) const PROGRAMS: usize = 1024;

/// Returns the most bytes that a checkpoint of a task may have.
pub(crate) fn image_bytes(order: &StartTask) -> u64 {
    let processes = order.seats.as_ref().map_or(1, |seats| seats.vcpus.len());
    let directory = order.own.as_ref().map_or(0, |own| own.directory_bytes);
    let processes = u64::try_from(processes).unwrap_or(u64::MAX);
    largest_checkpoint(Bytes::new(order.memory_bytes), processes, Bytes::new(directory)).get()
}

/// Checks that a limit of `limit` file descriptors is enough for [`FEW_VMS`], whatever their programs do.
///
/// # Errors
///
/// In words, the number of VMs for which the limit is enough, and the remedy.
pub(crate) fn check_descriptors(limit: u64) -> Result<(), String> {
    let vms = limit.saturating_sub(OWN_DESCRIPTORS) / DESCRIPTORS_PER_VM;
    if vms >= FEW_VMS {
        return Ok(());
    }
    let enough = VMS as u64 * DESCRIPTORS_PER_VM + OWN_DESCRIPTORS;
    Err(format!(
        "this worker may open {limit} files, enough for {vms} VMs, but it accepts up to {VMS}: \
         raise the hard limit to {enough} with `ulimit -Hn` or LimitNOFILE= of its unit"
    ))
}

/// Checks that a command is one that a run can need.
///
/// # Errors
///
/// In words, the part of the command that no run needs.
pub(crate) fn check_command(command: &Command) -> Result<(), String> {
    match command {
        Command::CreateVm(CreateVm { kind, metadata, cell, .. }) => {
            let zone = metadata.as_ref().map_or(0, |of| of.zone.len());
            check_most("bytes of a name", kind.len().max(zone), NAME_BYTES)?;
            metadata.as_ref().map_or(Ok(()), check_metadata)?;
            cell.as_ref().map_or(Ok(()), check_cell)
        }
        Command::StartTask(start) => check_start(start),
        Command::SetNetwork(SetNetwork { network, .. }) => {
            network.as_ref().map_or(Ok(()), |network| CellNetwork::read(network).map(drop))
        }
        Command::MoveTask(MoveTask { vcpus, .. }) => {
            check_most("vCPUs of a task", vcpus.len(), SEATS)
        }
        _ => Ok(()),
    }
}

fn check_metadata(of: &Metadata) -> Result<(), String> {
    let names = [&of.instance_id, &of.image_id, &of.address, &of.public_address];
    let of_key = of.public_key.iter().flat_map(|key| [&key.name, &key.text]);
    let of_role = of
        .role
        .iter()
        .flat_map(|role| [&role.name, &role.profile, &role.access_key, &role.secret, &role.token]);
    let longest = of_key.chain(of_role).map(String::len).max().unwrap_or(0);
    check_most("bytes of a key or a role", longest, KEY_BYTES)?;
    let names = names.into_iter().flatten().map(String::len);
    check_most("bytes of a name", names.max().unwrap_or(0), NAME_BYTES)?;
    check_most("tags of a VM", of.tags.len(), TAGS)?;
    check_most("security groups of a VM", of.security_groups.len(), GROUPS)?;
    let groups = of.security_groups.iter().map(String::len);
    check_most("bytes of a name", groups.max().unwrap_or(0), NAME_BYTES)?;
    let tags = of.tags.iter().map(|tag| tag.name.len().max(tag.value.len()));
    check_most("bytes of a tag", tags.max().unwrap_or(0), TAG_BYTES)?;
    let user_data = of.user_data.as_ref().map_or(0, String::len);
    check_most("bytes of user data", user_data, USER_DATA_BYTES)
}

fn check_start(start: &StartTask) -> Result<(), String> {
    let seats = start.seats.as_ref().map_or(0, |seats| seats.vcpus.len());
    check_most("vCPUs of a task", seats, SEATS)?;
    check_most("checkpoints of a task", start.checkpoints_ppm.len(), CHECKPOINTS)?;
    let plan = start.plan.as_ref().map_or(0, |plan| plan.usage_ppm.len());
    check_most("processes of a plan", plan, SEATS)?;
    match (&start.own, &start.program) {
        (Some(own), _) => check_own(own),
        (None, Some(program)) => check_program(program),
        (None, None) => Err("it names no program".to_owned()),
    }
}

/// Checks that a user's own program keeps a worker's limits on its words, variables and inputs.
fn check_own(own: &OwnProgram) -> Result<(), String> {
    if own.argv.is_empty() {
        return Err("it names no program".to_owned());
    }
    let words = ProgramWords {
        argv: &own.argv,
        verify: &own.verify,
        outputs: &own.outputs,
        variables: own.env.len(),
        variables_bytes: own.env.iter().map(|(name, value)| name.len() + value.len()).sum(),
        inputs: own.inputs.len(),
        longest_path: own.inputs.iter().map(|input| input.path.len()).max().unwrap_or(0),
    };
    words.check()
}

/// Checks that a measured program keeps a worker's limits on its arguments, and is a program that a coordinator may
/// request.
///
/// # Errors
///
/// In words, what is wrong with the program.
pub(crate) fn check_program(program: &Program) -> Result<(), String> {
    check_most("arguments of a program", program.args.len(), ARGUMENTS)?;
    let bytes = program.args.iter().map(String::len).fold(0, usize::saturating_add);
    check_most("bytes of a program's arguments", bytes, ARGUMENT_BYTES)?;
    check_remote(program.args.iter().map(String::as_str))
        .map_err(|error| super::explain_error(&error))
}

fn check_most(what: &str, found: usize, most: usize) -> Result<(), String> {
    match found <= most {
        true => Ok(()),
        false => Err(format!("{found} {what}; a worker accepts at most {most}")),
    }
}

/// Part of a worker's offered cores that its VMs occupy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferOccupancy {
    /// Number of VMs that occupy the worker's offered cores.
    pub vms: usize,
    /// Number of vCPUs of all VMs.
    pub vcpus: u64,
    /// Shares of a core that all vCPUs are promised in total, in millionths.
    pub core_ppm: u64,
}

impl OfferOccupancy {
    /// Returns the part of the worker's offered cores that a VM occupies.
    #[must_use]
    pub(crate) fn taken_by(create: &CreateVm) -> Self {
        let vcpus = u64::from(create.vcpus);
        let of_cell = || create.cell.as_ref().map(|cell| cell.core_ppm);
        let core_ppm = vcpus.saturating_mul(create.core_ppm.or_else(of_cell).map_or(0, u64::from));
        Self { vms: 1, vcpus, core_ppm }
    }

    /// Returns what the VMs of `self` and those of `other` together occupy of the worker's offered cores.
    #[must_use]
    pub(crate) fn plus_other(self, other: Self) -> Self {
        Self {
            vms: self.vms.saturating_add(other.vms),
            vcpus: self.vcpus.saturating_add(other.vcpus),
            core_ppm: self.core_ppm.saturating_add(other.core_ppm),
        }
    }

    /// Checks that a worker that offers `millicores` thousandths of a core has room for all VMs.
    ///
    /// # Errors
    ///
    /// In words, what the VMs take too much of.
    pub(crate) fn check_fits(self, millicores: u32) -> Result<(), String> {
        let vcpus = u64::from(millicores.div_ceil(1000)) * u64::from(VCPUS_PER_CORE);
        let shares = u64::from(millicores) * 1000 * SHARES_PER_OFFER;
        let Self { vms, vcpus: asked, core_ppm } = self;
        match self {
            _ if vms > VMS => {
                Err(format!("it would be VM {vms} of this worker, which accepts at most {VMS}"))
            }
            _ if asked > vcpus => Err(format!(
                "the worker's VMs would have {asked} vCPUs, but it offers {millicores} thousandths \
                 of a core, enough for {vcpus}"
            )),
            _ if core_ppm > shares => Err(format!(
                "the vCPUs of the worker's VMs would take {core_ppm} millionths of a core, but it \
                 offers {millicores} thousandths"
            )),
            _ => Ok(()),
        }
    }
}

/// Shortens the text in a report that says why a VM, task or checkpoint failed to the length that receivers accept.
#[must_use]
pub(crate) fn shorten_report(mut report: Report) -> Report {
    use dormouse_proto::v1::report::Report as Body;
    let why = match &mut report.report {
        Some(Body::VmFailed(failed)) => Some(&mut failed.why),
        Some(Body::TaskFailed(failed)) => Some(&mut failed.why),
        Some(Body::CheckpointFailed(failed)) => Some(&mut failed.why),
        Some(Body::Unsupported(unsupported)) => Some(&mut unsupported.what),
        _ => None,
    };
    if let Some(why) = why {
        *why = shortened_reason(std::mem::take(why));
    }
    report
}

/// Shortens a text that says why something failed to the length in bytes that receivers accept.
fn shortened_reason(mut why: String) -> String {
    const MORE: &str = " [...]";
    if why.len() > WHY_BYTES {
        let end = (0..=WHY_BYTES - MORE.len()).rev().find(|at| why.is_char_boundary(*at));
        why.truncate(end.unwrap_or(0));
        why.push_str(MORE);
    }
    why
}

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::{Seats, Tag};

    use super::*;

    fn create(vcpus: u32, core_ppm: Option<u32>) -> OfferOccupancy {
        OfferOccupancy::taken_by(&CreateVm { vcpus, core_ppm, ..CreateVm::default() })
    }

    #[test]
    fn a_worker_has_room_for_what_it_offers_and_not_for_any_number() {
        assert_eq!(create(64, None).check_fits(2000), Ok(()));
        assert_eq!(create(64, Some(15_000)).check_fits(1000), Ok(()));
        assert!(
            create(64, Some(100_000)).check_fits(1000).is_err_and(|why| why.contains("millionths"))
        );
        for vcpus in [100_000, 4_000_000_000] {
            assert!(create(vcpus, None).check_fits(2000).is_err_and(|why| why.contains("vCPUs")));
        }
        let many =
            (0..=VMS).fold(OfferOccupancy::default(), |all, _| all.plus_other(create(1, None)));
        assert!(many.check_fits(64_000).is_err_and(|why| why.contains("VM 513")));
    }

    #[test]
    fn the_metadata_of_a_vm_are_bounded() {
        let refused = |tags, user_data: Option<usize>| {
            let tag = |n: usize| Tag { name: n.to_string(), value: String::new() };
            let tags = (0..tags).map(tag).collect();
            let user_data = user_data.map(|bytes| "x".repeat(bytes));
            let metadata = Some(Metadata { tags, user_data, ..Metadata::default() });
            check_command(&Command::CreateVm(CreateVm { metadata, ..CreateVm::default() })).is_err()
        };
        assert!(!refused(TAGS, Some(USER_DATA_BYTES)));
        assert!(refused(TAGS + 1, None) && refused(0, Some(USER_DATA_BYTES + 1)));
    }

    #[test]
    fn a_worker_knows_for_how_many_vms_it_has_descriptors() {
        assert_eq!(check_descriptors(65_536), Ok(()));
        for (limit, vms) in [(0, 0), (1_024, 0), (4_096, 38)] {
            let no = check_descriptors(limit).expect_err("it is too little");
            assert!(no.contains(&format!("enough for {vms} VMs")) && no.contains("41984"), "{no}");
        }
        assert_eq!(
            check_descriptors(20_000),
            Ok(()),
            "most hosts have no more, and few run so many VMs"
        );
    }

    #[test]
    fn lists_and_texts_of_commands_are_bounded() {
        let program = |args: &[&str]| {
            Some(Program { args: args.iter().map(|arg| (*arg).to_owned()).collect() })
        };
        let start = StartTask { program: program(&["vector"]), ..StartTask::default() };
        let refused = |start: StartTask| check_command(&Command::StartTask(start)).is_err();
        assert!(!refused(start.clone()));
        let seats = Some(Seats { vcpus: vec![0; SEATS + 1], ..Seats::default() });
        assert!(refused(StartTask { seats, ..start.clone() }));
        let checkpoints_ppm = vec![0; CHECKPOINTS + 1];
        assert!(refused(StartTask { checkpoints_ppm, ..start.clone() }));
        assert!(refused(StartTask { program: program(&["vector", "--progress", "/x"]), ..start }));
        assert!(refused(StartTask::default()));
        assert!(check_program(&Program { args: vec!["x".repeat(ARGUMENT_BYTES + 1)] }).is_err());
        let kind = "k".repeat(NAME_BYTES + 1);
        assert!(
            check_command(&Command::CreateVm(CreateVm { kind, ..CreateVm::default() })).is_err()
        );
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        assert_eq!(shortened_reason("short".to_owned()), "short");
        let cut = shortened_reason("\u{e4}".repeat(WHY_BYTES));
        assert!(cut.len() <= WHY_BYTES && cut.ends_with("[...]"), "{}", cut.len());
    }
}
