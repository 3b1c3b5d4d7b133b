//! The system calls of tasks: those that they may make, and those that are refused by name.
//!
//! A call that is in neither list is answered as if the kernel lacked it ("Function not implemented"), as are calls
//! that came after these lists, and those that nobody makes any more. The C library and most programs then do without.
//!
//! The lists have the calls of sixty everyday programs (`worker/tests/linux/everyday.calls`), and other calls that
//! containers' engines allow, without those that are refused here.

/// A system call by its name, as libc has it, and its number on this kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SystemCall {
    pub(super) name: &'static str,
    pub(super) number: libc::c_long,
}

/// Numbers of system calls, including those that some C libraries do not name.
#[expect(non_upper_case_globals, reason = "named as libc names them")]
mod numbers {
    pub(super) use libc::*;

    /// Number of `fchmodat2`, which is the same on all processors.
    pub(super) const SYS_fchmodat2: c_long = 452;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_renameat: c_long = 38;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_sync_file_range: c_long = 84;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_getrlimit: c_long = 163;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_setrlimit: c_long = 164;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SYS_kexec_file_load: c_long = 294;
}

macro_rules! calls {
    ($($number:ident)*) => {
        &[$(SystemCall { name: stringify!($number), number: numbers::$number }),*]
    };
}

/// System calls that tasks may make with any arguments, by purpose.
pub(super) const ALLOWED: &[&[SystemCall]] = &[
    // Files by their names, and what is in folders.
    calls! {
        SYS_openat SYS_openat2 SYS_faccessat SYS_faccessat2 SYS_newfstatat SYS_statx SYS_statfs SYS_readlinkat SYS_chdir SYS_getcwd
        SYS_mkdirat SYS_mknodat SYS_renameat SYS_renameat2 SYS_linkat SYS_symlinkat SYS_unlinkat SYS_truncate SYS_fchmodat
        SYS_fchmodat2 SYS_fchownat SYS_utimensat SYS_umask SYS_getdents64 SYS_inotify_init1 SYS_inotify_add_watch
        SYS_inotify_rm_watch
    },
    // Files that are open.
    calls! {
        SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev SYS_preadv2 SYS_pwritev2 SYS_lseek
        SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl SYS_flock SYS_fstat SYS_fstatfs SYS_fchdir SYS_fchmod SYS_fchown
        SYS_ftruncate SYS_fallocate SYS_fsync SYS_fdatasync SYS_sync_file_range SYS_fadvise64 SYS_readahead SYS_sendfile
        SYS_copy_file_range SYS_splice SYS_tee
    },
    // Attributes of files beside the usual.
    calls! {
        SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_listxattr SYS_llistxattr SYS_flistxattr
        SYS_removexattr SYS_lremovexattr SYS_fremovexattr
    },
    // Pipes, events, and waiting for many at once.
    calls! {
        SYS_pipe2 SYS_eventfd2 SYS_signalfd4 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_ppoll SYS_pselect6
    },
    // Memory.
    calls! {
        SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_msync SYS_mincore SYS_mlock SYS_mlock2 SYS_mlockall
        SYS_munlock SYS_munlockall SYS_remap_file_pages SYS_memfd_create SYS_membarrier SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect
    },
    // Processes and threads of its own, and how they end. Namespaces are another matter: `clone` is looked at.
    calls! {
        SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_set_tid_address SYS_set_robust_list
        SYS_get_robust_list SYS_futex SYS_futex_waitv SYS_rseq SYS_restart_syscall SYS_prctl SYS_pidfd_open SYS_pidfd_send_signal
        SYS_getpid SYS_gettid SYS_getppid SYS_getpgid SYS_setpgid SYS_getsid SYS_setsid
    },
    // Signals.
    calls! {
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigpending SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait
        SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_sigaltstack SYS_kill SYS_tkill SYS_tgkill
    },
    // Users: its own, and none of the others', for which it has no capability; further filters, by which it binds itself.
    calls! {
        SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups SYS_setuid SYS_setgid SYS_setreuid
        SYS_setregid SYS_setresuid SYS_setresgid SYS_setgroups SYS_setfsuid SYS_setfsgid SYS_capget SYS_capset SYS_seccomp
    },
    // Limits, processors, priorities.
    calls! {
        SYS_prlimit64 SYS_getrlimit SYS_setrlimit SYS_getrusage SYS_times SYS_getcpu SYS_sched_yield SYS_sched_getaffinity
        SYS_sched_setaffinity SYS_sched_getattr SYS_sched_setattr SYS_sched_getparam SYS_sched_setparam SYS_sched_getscheduler
        SYS_sched_setscheduler SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_rr_get_interval SYS_getpriority
        SYS_setpriority SYS_ioprio_get SYS_ioprio_set
    },
    // What time it is, and timers.
    calls! {
        SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday SYS_getitimer SYS_setitimer
        SYS_timer_create SYS_timer_settime SYS_timer_gettime SYS_timer_getoverrun SYS_timer_delete SYS_timerfd_create
        SYS_timerfd_settime SYS_timerfd_gettime
    },
    // Sockets, once they are there: `socket` and `socketpair` are looked at.
    calls! {
        SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_getsockname SYS_getpeername SYS_getsockopt SYS_setsockopt
        SYS_shutdown SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvfrom SYS_recvmsg SYS_recvmmsg
    },
    // System V's memory, semaphores and messages, of its VM's namespace.
    calls! {
        SYS_shmget SYS_shmat SYS_shmctl SYS_shmdt SYS_semget SYS_semop SYS_semtimedop SYS_semctl SYS_msgget SYS_msgsnd SYS_msgrcv
        SYS_msgctl
    },
    // What machine it is, and chance.
    calls! { SYS_uname SYS_sysinfo SYS_getrandom },
    // What only this kind of processor has: older forms of the above, and its registers.
    #[cfg(target_arch = "x86_64")]
    calls! {
        SYS_open SYS_creat SYS_access SYS_stat SYS_lstat SYS_readlink SYS_mkdir SYS_rmdir SYS_mknod SYS_rename SYS_link SYS_symlink
        SYS_unlink SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat SYS_getdents SYS_inotify_init SYS_dup2 SYS_pipe
        SYS_eventfd SYS_signalfd SYS_epoll_create SYS_epoll_wait SYS_poll SYS_select SYS_fork SYS_vfork SYS_getpgrp SYS_pause
        SYS_alarm SYS_time SYS_arch_prctl
    },
];

/// System calls that the filter answers with "Operation not permitted", whatever the arguments.
pub(super) const REFUSED: &[&[SystemCall]] = &[
    // Other processes: their memory, their files, their registers.
    calls! {
        SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_process_mrelease SYS_pidfd_getfd SYS_kcmp
    },
    // Namespaces, roots and mounts, and files by numbers past all names.
    calls! {
        SYS_unshare SYS_setns SYS_chroot SYS_pivot_root SYS_mount SYS_umount2 SYS_mount_setattr SYS_move_mount SYS_open_tree
        SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_name_to_handle_at SYS_open_by_handle_at SYS_quotactl SYS_quotactl_fd
        SYS_swapon SYS_swapoff SYS_nfsservctl
    },
    // The kernel's own: modules, programs, another kernel, its log, its keys, its name, its end.
    calls! {
        SYS_init_module SYS_finit_module SYS_delete_module SYS_bpf SYS_kexec_load SYS_kexec_file_load SYS_syslog SYS_add_key
        SYS_keyctl SYS_request_key SYS_sethostname SYS_setdomainname SYS_reboot SYS_acct SYS_vhangup SYS_lookup_dcookie
        SYS_personality
    },
    // Clocks of all.
    calls! { SYS_settimeofday SYS_clock_settime SYS_clock_adjtime SYS_adjtimex },
    // Doors by which kernels were entered before, and what counts or watches the work of others.
    calls! {
        SYS_userfaultfd SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_io_setup SYS_io_submit SYS_io_destroy
        SYS_io_cancel SYS_io_getevents SYS_vmsplice SYS_perf_event_open SYS_fanotify_init SYS_fanotify_mark
    },
    // Memory of certain nodes, and of nobody.
    calls! { SYS_mbind SYS_get_mempolicy SYS_set_mempolicy SYS_move_pages SYS_migrate_pages SYS_memfd_secret },
    // All disks of the host at once.
    calls! { SYS_sync SYS_syncfs },
    // What CRIU does not carry: a restored task would be without it.
    calls! {
        SYS_mq_open SYS_mq_unlink SYS_mq_timedsend SYS_mq_timedreceive SYS_mq_notify SYS_mq_getsetattr SYS_landlock_create_ruleset
        SYS_landlock_add_rule SYS_landlock_restrict_self
    },
    #[cfg(target_arch = "x86_64")]
    calls! { SYS_ioperm SYS_iopl SYS_modify_ldt SYS_uselib SYS_ustat },
];

/// The system call `clone3`, which the filter answers as if the kernel lacked it: its flags are in memory, which a filter can't
/// read. The C library then calls `clone` instead.
#[cfg(test)]
pub(super) const UNKNOWN: &[SystemCall] = calls! { SYS_clone3 };
