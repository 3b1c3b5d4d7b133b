//! The seccomp(2) filter program, by which the kernel allows a task's system calls, refuses them, or answers them as
//! unknown.

use std::{collections::BTreeMap, io};

use libc::sock_filter;

use super::calls::{ALLOWED, REFUSED};

/// A filter program in the kernel's form.
pub(super) type FilterProgram = Vec<sock_filter>;

/// The answer to a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallAnswer {
    Allow,
    /// The call fails with "Operation not permitted".
    Refuse,
    /// The call fails with "Function not implemented", as in a kernel that has no such call.
    Unknown,
    /// The call is allowed unless it makes a namespace.
    SameNamespaces,
    /// The call is allowed for the address families in [`FAMILIES`].
    UsualFamilies,
    /// The call is allowed, except for the requests in [`PUSHES`].
    NoPushes,
}

/// System calls whose arguments the filter checks, each with the check.
const INSPECTED: [(libc::c_long, CallAnswer); 4] = [
    (libc::SYS_clone, CallAnswer::SameNamespaces),
    (libc::SYS_socket, CallAnswer::UsualFamilies),
    (libc::SYS_socketpair, CallAnswer::UsualFamilies),
    (libc::SYS_ioctl, CallAnswer::NoPushes),
];

/// Flags of clone(2) that make namespaces; a task may use none of them.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The families of sockets that a task may open: local and internet ones; its network namespace has only a loopback
/// device.
const FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Requests that put characters into the input of a terminal, as if somebody had typed them (ioctl_tty(2)).
const PUSHES: [libc::Ioctl; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// The kind of processor for which the numbers of calls hold (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_00B7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Offsets in bytes in `struct seccomp_data`, here of the system call's number; below of the architecture and of the lower halves
/// of the first two arguments.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST: u32 = 16;
const SECOND: u32 = 24;

/// Makes the filter program for the lists of [`calls`](super::calls), which finds a call's number by binary search. A call by the
/// numbers of another architecture, as of a 32-bit program, ends the task.
///
/// # Errors
///
/// There is no list for this kind of processor, or a call is in the list twice.
pub(super) fn filter_program() -> io::Result<FilterProgram> {
    let Some(architecture) = ARCHITECTURE else {
        let kind = std::env::consts::ARCH;
        return Err(io::Error::other(format!("no list of system calls for processors of {kind}")));
    };
    let ranges = answer_ranges(&call_answers()?);
    let mut program = vec![
        load_word(ARCH),
        make_jump(libc::BPF_JEQ, architecture, 1, 0),
        return_action(libc::SECCOMP_RET_KILL_PROCESS),
        load_word(NUMBER),
    ];
    program.extend(search_ranges(&ranges)?);
    Ok(program)
}

/// Returns the filter's answers to all listed system calls, by the call's number.
fn call_answers() -> io::Result<BTreeMap<u32, CallAnswer>> {
    let of = |lists: &'static [&'static [super::calls::SystemCall]], answer| {
        lists.iter().copied().flatten().map(move |call| (call.name, call.number, answer))
    };
    let inspected = INSPECTED.iter().map(|(number, answer)| ("a call", *number, *answer));
    let all =
        of(ALLOWED, CallAnswer::Allow).chain(of(REFUSED, CallAnswer::Refuse)).chain(inspected);
    let mut answers = BTreeMap::new();
    for (name, number, answer) in all {
        let number = u32::try_from(number).map_err(io::Error::other)?;
        if answers.insert(number, answer).is_some() {
            return Err(io::Error::other(format!("{name} ({number}) has two different rules")));
        }
    }
    Ok(answers)
}

/// Returns ranges of call numbers with the same answer, each by its first number; every number is in a range.
fn answer_ranges(answers: &BTreeMap<u32, CallAnswer>) -> Vec<(u32, CallAnswer)> {
    let mut ranges = Vec::new();
    let mut next = 0;
    for (&number, &answer) in answers {
        if number > next {
            ranges.push((next, CallAnswer::Unknown));
        }
        ranges.push((number, answer));
        next = number.saturating_add(1);
    }
    ranges.push((next, CallAnswer::Unknown));
    ranges.dedup_by_key(|(_, answer)| *answer);
    ranges
}

/// Makes a filter program that finds the range of the loaded call number by binary search, and gives the range's answer.
fn search_ranges(ranges: &[(u32, CallAnswer)]) -> io::Result<FilterProgram> {
    if let [(_, answer)] = ranges {
        return Ok(look_and_answer(*answer));
    }
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let middle = upper.first().map(|(from, _)| *from).unwrap_or_default();
    let (lower, upper) = (search_ranges(lower)?, search_ranges(upper)?);
    let past = u32::try_from(lower.len()).map_err(io::Error::other)?;
    let mut program = match u8::try_from(past) {
        Ok(past) => vec![make_jump(libc::BPF_JGE, middle, past, 0)],
        // Past what a conditional jump can pass over.
        Err(_) => vec![make_jump(libc::BPF_JGE, middle, 0, 1), make_jump(libc::BPF_JA, past, 0, 0)],
    };
    program.extend(lower);
    program.extend(upper);
    Ok(program)
}

/// Makes a filter program that gives an answer to a system call, after checking the call's arguments if need be.
fn look_and_answer(what: CallAnswer) -> FilterProgram {
    let allow = return_action(libc::SECCOMP_RET_ALLOW);
    let refuse = return_action(libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs());
    match what {
        CallAnswer::Allow => vec![allow],
        CallAnswer::Refuse => vec![refuse],
        CallAnswer::Unknown => {
            vec![return_action(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs())]
        }
        CallAnswer::SameNamespaces => {
            let any = NAMESPACES.iter().fold(0, |all, flag| all | flag.cast_unsigned());
            vec![load_word(FIRST), make_jump(libc::BPF_JSET, any, 0, 1), refuse, allow]
        }
        CallAnswer::UsualFamilies => {
            one_of(FIRST, &FAMILIES.map(i32::unsigned_abs), [allow, refuse])
        }
        CallAnswer::NoPushes => {
            // The kernel looks at 32 bits of it.
            let pushes = PUSHES.map(|request| u32::try_from(request).unwrap_or_default());
            one_of(SECOND, &pushes, [refuse, allow])
        }
    }
}

/// Makes a filter program that gives the first of two answers if the word at offset `from` is one of `these`, and the second
/// otherwise.
fn one_of(from: u32, these: &[u32], [one, none]: [sock_filter; 2]) -> FilterProgram {
    let tests = these.iter().zip((0..these.len()).rev()).map(|(value, left)| {
        // To the answer behind the tests that are left and the other answer.
        let past = u8::try_from(left + 1).unwrap_or(u8::MAX);
        make_jump(libc::BPF_JEQ, *value, past, 0)
    });
    std::iter::once(load_word(from)).chain(tests).chain([none, one]).collect()
}

fn make_statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: 0, jf: 0, k }
}

fn load_word(from: u32) -> sock_filter {
    make_statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, from)
}

fn make_jump(how: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { jt, jf, ..make_statement(libc::BPF_JMP | how | libc::BPF_K, k) }
}

fn return_action(action: u32) -> sock_filter {
    make_statement(libc::BPF_RET | libc::BPF_K, action)
}

#[cfg(test)]
mod tests;
