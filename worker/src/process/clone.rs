//! clone3(2) the way posix_spawn(3) uses clone(2): the new process borrows this one's memory until
//! it executes its program, and the calling thread waits for that.
//!
//! A fork would copy the page tables of the whole worker, fault every page that is touched
//! meanwhile, and throw the copy away again at the exec: measured, a quarter of all that the start
//! of a small program cost. No library wraps clone3, and clone(2) knows no `CLONE_INTO_CGROUP`.

use std::{
    ffi::c_void,
    io,
    os::fd::{FromRawFd, OwnedFd, RawFd},
};

use super::{
    Task,
    exec::{BlockedSignals, born_in},
};
use crate::cgroup::Entry;

/// What the new process runs. It must not return, allocate, lock or unwind: it shares all memory
/// with this process, whose other threads run on, and the thread-local data of the calling thread.
pub(crate) type Child = extern "C" fn(*const c_void) -> !;

/// For a few nested system calls; nothing recurses.
const STACK: usize = 32 << 10;

/// A piece of the new process's stack, aligned as calls need it.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Piece(#[expect(dead_code, reason = "room")] [u8; 16]);

/// Makes a process that runs `child` with `arg`, under version 2 inside the group of `entry` from
/// the start; returns once it has executed a program or ended. `flags` are clone(2)'s, beside
/// those that this needs.
///
/// # Safety
/// `child` and `arg` must be as [`Child`] says.
#[expect(unsafe_code, reason = "a system call after which two processes go on")]
pub(super) unsafe fn clone_and_wait(
    flags: i32,
    entry: Option<&Entry>,
    child: Child,
    arg: *const c_void,
) -> io::Result<Task> {
    let mut pidfd: RawFd = -1;
    // Touched here, so that the new process faults no page of this one's memory.
    let mut stack = vec![Piece([0; 16]); STACK / size_of::<Piece>()];
    // SAFETY: all-zero is a valid clone_args: no stack, no TLS, no flags.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    if let Some(entry) = entry {
        born_in(entry, &mut args);
    }
    let own = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
    args.flags |= u64::from((flags | own).unsigned_abs());
    args.pidfd = &raw mut pidfd as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    args.stack = stack.as_mut_ptr() as u64;
    args.stack_size = STACK as u64;
    let blocked = BlockedSignals::all()?;
    // SAFETY: as promised by the caller; the stack lives until the new process uses it no more.
    let result = unsafe { clone3(&args, child, arg) };
    drop(blocked);
    drop(stack);
    match i32::try_from(result) {
        // SAFETY: the kernel stored a new descriptor here, which nobody else owns.
        Ok(pid @ 1..) => Ok(Task::new(pid, unsafe { OwnedFd::from_raw_fd(pidfd) })),
        Ok(error) => Err(io::Error::from_raw_os_error(-error)),
        Err(_) => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// The bare call. The new process begins on its own stack and goes straight to `child`; it never
/// comes back here.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the new process has another stack, which no function survives")]
unsafe fn clone3(args: &libc::clone_args, child: Child, arg: *const c_void) -> i64 {
    let result;
    // SAFETY: the kernel changes rax, rcx and r11 only; the stack of this process is left alone.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r9",
            "call r8",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") args,
            in("rsi") size_of::<libc::clone_args>(),
            in("r8") child,
            in("r9") arg,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// The bare call. The new process begins on its own stack and goes straight to `child`; it never
/// comes back here.
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "the new process has another stack, which no function survives")]
unsafe fn clone3(args: &libc::clone_args, child: Child, arg: *const c_void) -> i64 {
    let result;
    // SAFETY: the kernel changes x0 only; the stack of this process is left alone.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x10",
            "blr x9",
            "brk #1",
            "2:",
            inlateout("x0") args => result,
            in("x1") size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            in("x9") child,
            in("x10") arg,
        );
    }
    result
}

/// Live runs are for the two processors above.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(unsafe_code, reason = "the same signature everywhere")]
unsafe fn clone3(_: &libc::clone_args, _: Child, _: *const c_void) -> i64 {
    -i64::from(libc::ENOSYS)
}
