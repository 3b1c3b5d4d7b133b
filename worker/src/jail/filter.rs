//! The list of system calls that tasks are refused.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// The newest system call that this list was made with (linux 6.12): those after it are unknown to a
/// task's program, too, and so are those of the x32 ABI, whose numbers lie far above.
const NEWEST: u32 = 466;

/// What is refused with "Operation not permitted": other processes, namespaces and mounts, keys, the
/// kernel's own programs and modules, clocks, and doors by which kernels were entered before.
const REFUSED: [libc::c_long; 70] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_get_mempolicy,
    libc::SYS_init_module,
    libc::SYS_io_destroy,
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mq_open,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_set_mempolicy,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    libc::SYS_vmsplice,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_memfd_secret,
];

/// Such as only this kind of processor has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [libc::c_long; 5] =
    [libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_ustat];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [libc::c_long; 0] = [];

/// The namespaces that a clone may make, none of which a task may.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The families of sockets that a task may open: its own machine's and the internet's, of which its
/// namespace has nothing but a loopback.
const FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// The program of the kernel's that refuses all this.
pub(super) fn program() -> io::Result<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(&REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    let when = |argument, width, op, value| {
        let condition = SeccompCondition::new(argument, width, op, value);
        condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(io::Error::other)
    };
    let makes = |flag: i32| {
        let flag = u64::from(flag.unsigned_abs());
        when(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)
    };
    rules.insert(
        libc::SYS_clone,
        NAMESPACES.iter().map(|flag| makes(*flag)).collect::<io::Result<_>>()?,
    );
    let is_other = FAMILIES.iter().map(|family| {
        let family = u64::from(family.unsigned_abs());
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
    });
    let is_other = is_other.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let is_other = SeccompRule::new(is_other).map_err(io::Error::other)?;
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        rules.insert(call, vec![is_other.clone()]);
    }
    // The terminal that it has not got, and those of others: putting characters into their input.
    let pushes = when(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::TIOCSTI)?;
    rules.insert(libc::SYS_ioctl, vec![pushes]);
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch);
    let filter: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    Ok(unknown_first(filter))
}

/// The filter behind what answers "there is no such call": of those that are too new to be known, and
/// of clone3, whose flags a filter can't read, so that the C library calls clone instead.
fn unknown_first(filter: BpfProgram) -> BpfProgram {
    let statement =
        |code: u32, k| sock_filter { code: code.try_into().unwrap_or(0), jt: 0, jf: 0, k };
    let jump = |op: u32, k, jt, jf| sock_filter {
        jt,
        jf,
        ..statement(libc::BPF_JMP | op | libc::BPF_K, k)
    };
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or(0);
    let no_call = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut program = vec![
        // The number of the call is the first word of what a filter sees.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        jump(libc::BPF_JGT, NEWEST, 1, 0),
        jump(libc::BPF_JEQ, clone3, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, no_call),
    ];
    program.extend(filter);
    program
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_a_program_that_the_kernel_takes() {
        let program = program().unwrap();
        assert!((REFUSED.len()..4096).contains(&program.len()), "{}", program.len());
        // Its jumps lead to what they lead to without what comes before.
        assert_eq!((program[1].jt, program[2].jf), (1, 1));
    }
}
