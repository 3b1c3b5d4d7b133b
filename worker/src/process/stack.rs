//! The stack of a new process that shares this one's memory.

use std::{io, ptr};

use nix::unistd::{SysconfVar, sysconf};

/// Size in bytes: enough for a few nested system calls, as nothing recurses.
pub(super) const SIZE: usize = 32 << 10;

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
        let guard = page.unwrap_or(SIZE);
        // Populated, so that the new process faults no page of this one's memory.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_POPULATE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, wherever the kernel likes.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), guard + SIZE, access, flags, -1, 0) };
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
        ((self.mapping + self.guard) as u64, SIZE as u64)
    }
}

impl Drop for GuardedStack {
    #[expect(unsafe_code, reason = "no library maps memory here")]
    fn drop(&mut self) {
        // SAFETY: mapped by `new` and used by nobody any more. Unmapping a whole mapping can't fail.
        unsafe { libc::munmap(self.mapping as *mut _, self.guard + SIZE) };
    }
}
