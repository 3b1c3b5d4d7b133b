#![expect(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeSet, io, ptr};

use super::*;
use crate::jail::calls::{SystemCall, UNKNOWN};

/// The calls of sixty programs of every day, as `scripts/record-calls` lists them.
const EVERYDAY: &str = include_str!("../../../tests/linux/everyday.calls");
/// Calls of everyday programs that are refused; the programs work without them.
const DONE_WITHOUT: [(&str, &str); 3] = [
    ("SYS_clone3", "the C library calls clone instead"),
    ("SYS_get_mempolicy", "free(1) asks where memory is, and takes it that there is one node"),
    ("SYS_set_mempolicy", "the same"),
];
/// Calls that the kernel lets through every filter: its own probes return by them, and it kills any other caller.
const PAST_FILTERS: [usize; 2] = [335, 336];
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | 38;

/// Returns the answer of a filter program to a call, computed as the kernel does.
fn reckon(program: &[sock_filter], arch: u32, number: u32, arguments: [u32; 2]) -> u32 {
    let (mut at, mut loaded) = (0, 0);
    loop {
        let it = program[at];
        at += 1;
        let (code, value) = (u32::from(it.code), it.k);
        let is_so = match code {
            _ if code == libc::BPF_RET | libc::BPF_K => return value,
            _ if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                loaded = match value {
                    NUMBER => number,
                    ARCH => arch,
                    FIRST => arguments[0],
                    SECOND => arguments[1],
                    other => panic!("nothing is at {other}"),
                };
                continue;
            }
            _ if code == libc::BPF_JMP | libc::BPF_JA => {
                at += usize::try_from(value).unwrap();
                continue;
            }
            _ if code == libc::BPF_JMP | libc::BPF_JEQ => loaded == value,
            _ if code == libc::BPF_JMP | libc::BPF_JGE => loaded >= value,
            _ if code == libc::BPF_JMP | libc::BPF_JSET => loaded & value != 0,
            other => panic!("no such instruction: {other:#x}"),
        };
        at += usize::from(if is_so { it.jt } else { it.jf });
    }
}

fn numbers(lists: &[&[SystemCall]]) -> BTreeSet<u32> {
    lists.iter().copied().flatten().map(|call| u32::try_from(call.number).unwrap()).collect()
}

/// Returns the numbers of calls whose arguments a filter checks.
fn inspected() -> BTreeSet<u32> {
    INSPECTED.iter().map(|(number, _)| u32::try_from(*number).unwrap()).collect()
}

/// Returns the error with which a call is answered that never reaches the kernel; `None` if the call may reach it.
fn refusal(number: u32) -> Option<i32> {
    match number {
        _ if numbers(ALLOWED).contains(&number) || inspected().contains(&number) => None,
        _ if numbers(REFUSED).contains(&number) => Some(libc::EPERM),
        _ => Some(libc::ENOSYS),
    }
}

#[test]
fn every_number_has_its_answer() {
    let (program, arch) = (filter_program().unwrap(), ARCHITECTURE.unwrap());
    assert!((100..1024).contains(&program.len()), "{}", program.len());
    // Those of the x32 ABI lie above the last.
    for number in (0..2048).chain(0x4000_0000..0x4000_0400).chain([u32::MAX - 1, u32::MAX]) {
        let answer = reckon(&program, arch, number, [0, 0]);
        match refusal(number) {
            Some(errno) => {
                assert_eq!(answer, libc::SECCOMP_RET_ERRNO | errno.unsigned_abs(), "{number}");
            }
            None if inspected().contains(&number) => {}
            None => assert_eq!(answer, libc::SECCOMP_RET_ALLOW, "{number}"),
        }
    }
    let unknown = u32::try_from(UNKNOWN[0].number).unwrap();
    assert_eq!(reckon(&program, arch, unknown, [0, 0]), ENOSYS);
    // A program of 32 bits on this processor.
    for other in [0x4000_0003, 0x4000_0028, 0, arch ^ 1] {
        assert_eq!(reckon(&program, other, 1, [0, 0]), libc::SECCOMP_RET_KILL_PROCESS);
    }
}

#[test]
fn what_a_call_is_for_is_looked_at() {
    let (program, arch) = (filter_program().unwrap(), ARCHITECTURE.unwrap());
    let answer = |call: libc::c_long, arguments| {
        reckon(&program, arch, u32::try_from(call).unwrap(), arguments)
    };
    let allow = libc::SECCOMP_RET_ALLOW;
    for family in 0..64 {
        let is_usual = [1, 2, 10].contains(&family);
        let right = if is_usual { allow } else { EPERM };
        assert_eq!(answer(libc::SYS_socket, [family, 0]), right, "{family}");
        assert_eq!(answer(libc::SYS_socketpair, [family, 0]), right, "{family}");
    }
    let thread = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
    for usual in [0, libc::SIGCHLD, thread, libc::CLONE_VFORK | libc::CLONE_VM | libc::SIGCHLD] {
        assert_eq!(answer(libc::SYS_clone, [usual.cast_unsigned(), 0]), allow);
        for flag in NAMESPACES {
            let flags = (usual | flag).cast_unsigned();
            assert_eq!(answer(libc::SYS_clone, [flags, 0]), EPERM, "{flags:#x}");
        }
    }
    for (request, right) in [(0x5412, EPERM), (0x541c, EPERM), (0x5401, allow), (0x5413, allow)] {
        assert_eq!(answer(libc::SYS_ioctl, [0, request]), right, "{request:#x}");
    }
}

#[test]
fn what_programs_of_every_day_call_is_allowed() {
    if !cfg!(target_arch = "x86_64") {
        // The list was made there, and has the older forms of calls that others have not.
        return;
    }
    let lists = |lists: &'static [&'static [SystemCall]]| {
        lists.iter().copied().flatten().map(|call| call.name).collect::<BTreeSet<_>>()
    };
    let inspected = ["SYS_clone", "SYS_socket", "SYS_socketpair", "SYS_ioctl"];
    let (allowed, mut seen) = (lists(ALLOWED), 0);
    let lines = EVERYDAY.lines().filter(|line| !line.starts_with('#'));
    for (call, by) in lines.map(|line| line.split_once(' ').unwrap()) {
        let name = format!("SYS_{call}");
        seen += 1;
        assert!(
            allowed.contains(name.as_str())
                || inspected.contains(&name.as_str())
                || DONE_WITHOUT.iter().any(|(call, _)| *call == name),
            "{call} is called by {by}"
        );
    }
    assert!(seen > 150, "{seen}");
}

/// Checks the kernel's answers to a process under the filter: to every refused number, and to refused families and
/// flags.
#[test]
#[expect(unsafe_code, reason = "a process that binds itself")]
fn the_kernel_takes_it_and_answers_so() {
    const NUMBERS: usize = 600;
    let program = filter_program().unwrap();
    let compiled = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_ptr().cast_mut(),
    };
    let mut refused: Vec<_> = (0..600).map(|number| refusal(number).is_some()).collect();
    if cfg!(target_arch = "x86_64") {
        PAST_FILTERS.iter().for_each(|number| refused[*number] = false);
    }
    // SAFETY: memory of this test's, shared with a child that makes bare system calls alone and ends by one.
    let said = unsafe {
        let (read, shared) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let bytes = (NUMBERS + 3) * size_of::<i32>();
        let said = libc::mmap(ptr::null_mut(), bytes, read, shared, -1, 0).cast::<i32>();
        assert_ne!(said.cast(), libc::MAP_FAILED);
        let said = std::slice::from_raw_parts_mut(said, NUMBERS + 3);
        let errno = |came: i64| if came < 0 { *libc::__errno_location() } else { 0 };
        match libc::fork() {
            0 => {
                let mode = libc::SECCOMP_SET_MODE_FILTER;
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                if libc::syscall(libc::SYS_seccomp, mode, 0, &raw const compiled) != 0 {
                    libc::_exit(1);
                }
                for (number, _) in refused.iter().enumerate().filter(|(_, is)| **is) {
                    said[number] = errno(libc::syscall(
                        i64::try_from(number).unwrap(),
                        -1,
                        -1,
                        -1,
                        -1,
                        -1,
                        -1,
                    ));
                }
                said[NUMBERS] = errno(libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).into());
                said[NUMBERS + 1] = errno(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).into());
                let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
                said[NUMBERS + 2] = errno(libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0));
                libc::_exit(0)
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                assert_eq!(status, 0, "{}", io::Error::last_os_error());
            }
        }
        said
    };
    for number in 0..600 {
        let at = usize::try_from(number).unwrap();
        let right = refusal(number).filter(|_| refused[at]).unwrap_or_default();
        assert_eq!(said[at], right, "{number}");
    }
    assert_eq!(said[NUMBERS..], [libc::EPERM, 0, libc::EPERM]);
}
