//! clone3(2) the way posix_spawn(3) uses clone(2): the new process borrows this one's memory until
//! it executes its program, and the calling thread waits for that, but not for ever.
//!
//! A fork would copy the page tables of the whole worker, fault every page that is touched
//! meanwhile, and throw the copy away again at the exec: measured, a quarter of all that the start
//! of a small program cost. No library wraps clone3, and clone(2) knows no `CLONE_INTO_CGROUP`.
//! `CLONE_VFORK` would keep the caller waiting however long the new process is frozen.

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{io, ptr};

use nix::unistd::{SysconfVar, sysconf};

use super::exec::{BlockedSignals, born_in};
use super::{ChildProcess, ProcessGroups, task};

/// Function that the new process runs. It must not return, allocate, lock or unwind: it shares all memory with this
/// process, whose other threads run on, and the thread-local data of the calling thread.
pub(crate) type Child = extern "C" fn(*const c_void) -> !;

/// Memory of this process that the new process uses.
struct CloneMemory<T> {
    stack: GuardedStack,
    /// Nonzero until the new process executes a program or ends; the kernel then sets the value to zero, and wakes waiters
    /// (`CLONE_CHILD_CLEARTID`).
    in_use: AtomicU32,
    arg: T,
}

/// What became of a new process by the deadline.
pub(super) enum CloneOutcome<T> {
    /// The process has executed a program or ended, and no longer uses the memory.
    Past(ChildProcess, T),
    /// By the deadline the process had neither executed a program nor ended. It was killed, and is reaped when it is
    /// dead.
    Late,
}

/// Makes a process that runs `child` with `arg`, with every signal handler reset; returns once the process has executed a program
/// or ended, or at the deadline. Under cgroup version 2 the process is in the group of `entry` from the start. `flags` are
/// clone(2)'s, in addition to those that this function sets itself.
///
/// # Safety
/// `child` and `arg` must be as [`Child`] says.
#[expect(unsafe_code, reason = "a system call after which two processes go on")]
pub(super) unsafe fn clone_and_wait<T: Send + 'static>(
    flags: i32,
    entry: Option<&ProcessGroups>,
    child: Child,
    arg: T,
    deadline: Duration,
) -> io::Result<CloneOutcome<T>> {
    let begun = Instant::now();
    let mut pidfd: RawFd = -1;
    let ground =
        Box::new(CloneMemory { stack: GuardedStack::new()?, in_use: AtomicU32::new(1), arg });
    // SAFETY: all-zero is a valid clone_args: no stack, no TLS, no flags.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    if let Some(entry) = entry {
        born_in(entry, &mut args);
    }
    let own = libc::CLONE_VM | libc::CLONE_PIDFD | libc::CLONE_CHILD_CLEARTID;
    args.flags |= u64::from((flags | own).unsigned_abs()) | CLONE_CLEAR_SIGHAND;
    args.pidfd = &raw mut pidfd as u64;
    args.child_tid = ground.in_use.as_ptr() as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    (args.stack, args.stack_size) = ground.stack.address_range();
    let _blocked = BlockedSignals::block_all()?;
    // SAFETY: as promised by the caller; the ground stays until the new process uses it no more.
    let result = unsafe { clone3(&args, child, ptr::from_ref(&ground.arg).cast()) };
    let task = match i32::try_from(result) {
        // SAFETY: the kernel stored a new descriptor here, which nobody else owns.
        Ok(pid @ 1..) => ChildProcess::new(pid, unsafe { OwnedFd::from_raw_fd(pidfd) }),
        Ok(error) => return Err(io::Error::from_raw_os_error(-error)),
        Err(_) => return Err(io::Error::from(io::ErrorKind::InvalidData)),
    };
    if is_released(&ground.in_use, begun, deadline) {
        let CloneMemory { arg, .. } = *ground;
        return Ok(CloneOutcome::Past(task, arg));
    }
    // Whatever it waits for, it executes nothing of its own any more. It may have ended by itself.
    let _ = task.kill_all();
    task::reap_later(task, ground);
    Ok(CloneOutcome::Late)
}

/// Flag by which every signal handler is reset in the new process (linux/sched.h); the libc crate has it as a signed,
/// shortened number.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

/// Waits until the kernel has set `in_use` to zero; returns whether it has by the deadline.
///
/// Errors of system calls aren't checked, as the new process shares `errno`.
#[expect(unsafe_code, reason = "no library waits for what the kernel clears")]
fn is_released(in_use: &AtomicU32, begun: Instant, deadline: Duration) -> bool {
    while in_use.load(Ordering::Acquire) != 0 {
        let left = deadline.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return false;
        }
        let left = libc::timespec {
            tv_sec: libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // SAFETY: a word that lives, and a time that does for as long as the call.
        unsafe { libc::syscall(libc::SYS_futex, in_use.as_ptr(), libc::FUTEX_WAIT, 1, &left) };
    }
    true
}

/// Makes the bare system call clone3. The new process begins on its own stack at `child`, and never returns here.
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

/// Makes the bare system call clone3. The new process begins on its own stack at `child`, and never returns here.
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

/// Always fails: live runs are supported on x86-64 and AArch64 processors only.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(unsafe_code, reason = "the same signature everywhere")]
unsafe fn clone3(_: &libc::clone_args, _: Child, _: *const c_void) -> i64 {
    -i64::from(libc::ENOSYS)
}

/// Size of a new process's stack in bytes: enough for a few nested system calls, as nothing recurses.
pub(super) const STACK_SIZE: usize = 32 << 10;

/// Stack with a guard page below it. A process that grows its stack into that page dies, and overwrites none of the
/// worker's memory.
pub(super) struct GuardedStack {
    mapping: usize,
    guard: usize,
}

impl GuardedStack {
    #[expect(unsafe_code, reason = "no library maps memory here")]
    pub(super) fn new() -> io::Result<Self> {
        let page = sysconf(SysconfVar::PAGE_SIZE)?.and_then(|size| usize::try_from(size).ok());
        let guard = page.unwrap_or(STACK_SIZE);
        // Populated, so that the new process faults no page of this one's memory.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_POPULATE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever the kernel likes.
        let mapping =
            unsafe { libc::mmap(ptr::null_mut(), guard + STACK_SIZE, access, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { mapping: mapping as usize, guard };
        // SAFETY: the first page of what was mapped just now, which nobody uses yet.
        if unsafe { libc::mprotect(mapping, guard, libc::PROT_NONE) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }

    /// Returns the address of the lowest byte of the stack, and its size in bytes.
    pub(super) fn address_range(&self) -> (u64, u64) {
        ((self.mapping + self.guard) as u64, STACK_SIZE as u64)
    }
}

impl Drop for GuardedStack {
    #[expect(unsafe_code, reason = "no library maps memory here")]
    fn drop(&mut self) {
        // SAFETY: mapped by `new` and used by nobody any more. Unmapping a whole mapping can't fail.
        unsafe { libc::munmap(self.mapping as *mut _, self.guard + STACK_SIZE) };
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[expect(unsafe_code, reason = "what runs in the new processes")]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicBool;

    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    use super::*;
    use crate::process::ProcessEnd;
    use crate::process::exec::ExecImage;

    const SOON: Duration = Duration::from_secs(10);

    fn run<T: Send + 'static>(child: Child, arg: T) -> Option<ProcessEnd> {
        // SAFETY: the tests' children make system calls only.
        match unsafe { clone_and_wait(0, None, child, arg, SOON) }.unwrap() {
            CloneOutcome::Past(task, _) => task.wait_end(SOON).unwrap(),
            CloneOutcome::Late => None,
        }
    }

    static HANDLED: AtomicBool = AtomicBool::new(false);

    extern "C" fn handle(_: i32) {
        HANDLED.store(true, Ordering::SeqCst);
    }

    extern "C" fn signal_itself(image: *const c_void) -> ! {
        // SAFETY: system calls only; `image` is the test's.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGUSR1);
            (*image.cast::<ExecImage>()).execute_program();
            libc::_exit(1)
        }
    }

    #[test]
    fn no_handler_of_this_process_runs_in_a_new_one() {
        let action = SigAction::new(SigHandler::Handler(handle), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler stores to an atomic only.
        unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
        let image = ExecImage::new("true".as_ref(), [], []).unwrap();
        // It waits for the mask to be lifted, and then does what it does by default.
        assert_eq!(run(signal_itself, image), Some(ProcessEnd::Killed(libc::SIGUSR1)));
        assert!(!HANDLED.load(Ordering::SeqCst));
    }

    extern "C" fn read_below_the_stack(_: *const c_void) -> ! {
        let here = 0_u8;
        let below = ptr::from_ref(&here).wrapping_sub(STACK_SIZE);
        // SAFETY: where this may not be read, the process is killed for it, as it should be.
        unsafe {
            ptr::read_volatile(below);
            libc::_exit(0)
        }
    }

    #[test]
    fn below_the_stack_there_is_nothing() {
        assert_eq!(run(read_below_the_stack, ()), Some(ProcessEnd::Killed(libc::SIGSEGV)));
    }

    extern "C" fn wait_for_ever(_: *const c_void) -> ! {
        loop {
            // SAFETY: takes nothing.
            unsafe { libc::pause() };
        }
    }

    #[test]
    fn one_that_gets_nowhere_is_given_up_and_reaped() {
        let begun = Instant::now();
        let brief = Duration::from_millis(20);
        // SAFETY: it makes one system call.
        let cloned = unsafe { clone_and_wait(0, None, wait_for_ever, (), brief) }.unwrap();
        assert!(matches!(cloned, CloneOutcome::Late));
        assert!(begun.elapsed() >= brief);
        while !fs::read_to_string("/proc/thread-self/children").unwrap().is_empty() {
            assert!(begun.elapsed() < SOON, "it is not reaped");
            std::thread::yield_now();
        }
    }
}
