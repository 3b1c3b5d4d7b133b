//! The programs that the tests run as tasks.

use std::{
    ffi::OsString, fs::File, hint::black_box, io::Write, os::unix::fs::FileExt, path::Path,
    process::ExitCode, thread, time::Duration,
};

use crate::captive;

/// Name of the file in a task's directory that keeps the task from its end.
pub(crate) const HELD: &str = "held";

pub(crate) fn run(mode: &str, args: &[&str]) -> ExitCode {
    match (mode, args) {
        // Ends at once.
        ("noop", []) => ExitCode::SUCCESS,
        ("exit", [code]) => ExitCode::from(code.parse::<u8>().unwrap()),
        // Uses all the processor it gets.
        ("spin", []) => loop {
            black_box(0);
        },
        // Says who it is and what it holds.
        ("introspect", []) => {
            println!("pid {}", std::process::id());
            println!("ppid {}", nix::unistd::getppid());
            println!("sid {}", nix::unistd::getsid(None).unwrap());
            let fds = std::fs::read_dir("/dev/fd").map_or(0, Iterator::count);
            println!("fds {fds}");
            println!("env {}", std::env::vars().count());
            ExitCode::SUCCESS
        }
        // A parallel job, as the agent's tasks are.
        ("parallel", _) => {
            let line = ["parallel"].iter().chain(args).map(OsString::from);
            dormouse_tasks::cli::main(line)
        }
        ("strike", []) => strike(),
        ("captive", [port, pid, other]) => captive::run([port, pid, other]),
        ("count", [mib, steps]) => count(mib.parse().unwrap(), steps.parse().unwrap()),
        _ => ExitCode::FAILURE,
    }
}

/// Name of the file that a hostile image makes in its directory, at whatever instruction it resumes.
pub(crate) const STRUCK: &str = "struck";

/// Makes a file over and over, without ever holding it open.
fn strike() -> ExitCode {
    use nix::sys::stat::{Mode, SFlag, mknod};
    loop {
        let _ = mknod(STRUCK, SFlag::S_IFREG, Mode::S_IRUSR, 0);
    }
}

/// Keeps `mib` MiB of pseudo-random numbers in memory and changes them step by step. Writes the step to the file
/// `progress`, a line per 1000 steps to stdout, and the sum of all numbers at the end to the file `result`. As long as
/// there is a file [`HELD`], the last step waits.
fn count(mib: usize, steps: u64) -> ExitCode {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut memory: Vec<u64> = (0..mib << 17).map(|_| next()).collect();
    let progress = File::create("progress").unwrap();
    for step in 1..=steps {
        while step == steps && Path::new(HELD).exists() {
            thread::park_timeout(Duration::from_millis(1));
        }
        let at = next() as usize % memory.len();
        memory[at] = memory[at].rotate_left(7) ^ step;
        // Enough work that 1000 steps outlast a checkpoint by far.
        for _ in 0..40_000 {
            black_box(next());
        }
        progress.write_all_at(format!("{step:020}").as_bytes(), 0).unwrap();
        if step % 1000 == 0 {
            println!("{step}");
            std::io::stdout().flush().unwrap();
        }
    }
    let sum = memory.iter().fold(0_u64, |sum, n| sum.wrapping_mul(31).wrapping_add(*n));
    std::fs::write("result", sum.to_string()).unwrap();
    ExitCode::SUCCESS
}
