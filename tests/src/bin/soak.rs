//! Runs a soak: rounds of every kind for hours, and a report of what failed and what was left behind (`scripts/soak`).

use std::{
    env, fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use dormouse_tests::soak::{Programs, Series};
use tokio::signal::unix::{Signal, SignalKind, signal};

const USAGE: &str = "usage: soak HOURS PROGRAMS OUT [--seed S]
  Runs rounds of the programs in the folder PROGRAMS until so many hours are over; OUT is a new folder for what they
  leave. scripts/soak builds the programs.";

fn asked() -> Option<(Series, PathBuf)> {
    let mut words = env::args().skip(1);
    let hours: f64 = words.next()?.parse().ok()?;
    let lasts = Duration::try_from_secs_f64(hours * 3600.0).ok()?;
    let (programs, out) = (PathBuf::from(words.next()?), PathBuf::from(words.next()?));
    let seed = match (words.next().as_deref(), words.next(), words.next()) {
        (None, ..) => 1,
        (Some("--seed"), Some(seed), None) => seed.parse().ok()?,
        _ => return None,
    };
    // Processes are known by their program's file, which the kernel names in full.
    let programs = fs::canonicalize(programs).ok()?;
    fs::create_dir_all(&out).ok()?;
    let out = fs::canonicalize(out).ok()?;
    Some((Series { programs: Programs::new(programs), out: out.clone(), lasts, seed }, out))
}

/// Sets `stop` when a signal asks the process to end.
#[expect(clippy::print_stderr, reason = "a program of its own")]
fn listen(stop: Arc<AtomicBool>) {
    let told = |kind: SignalKind| -> std::io::Result<Signal> { signal(kind) };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let heard = runtime.and_then(|runtime| {
            runtime.block_on(async {
                let mut interrupt = told(SignalKind::interrupt())?;
                let mut terminate = told(SignalKind::terminate())?;
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                Ok(())
            })
        });
        match heard {
            Ok(()) => stop.store(true, Ordering::Relaxed),
            Err(error) => eprintln!("soak: no signal is heard: {error}"),
        }
    });
}

/// Exit status 0: all is well; 1: the soak has findings; 2: a wrong argument, or no folder for the results.
#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a program of its own")]
fn main() -> ExitCode {
    let Some((series, out)) = asked() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let stop = Arc::new(AtomicBool::new(false));
    listen(Arc::clone(&stop));
    let soaked = series.run(&stop, |line| println!("{line}"));
    print!("{}", soaked.text);
    for (name, text) in [("soak.csv", &soaked.csv), ("soak.txt", &soaked.text)] {
        if let Err(error) = fs::write(out.join(name), text) {
            eprintln!("soak: {name} can't be written: {error}");
            return ExitCode::from(2);
        }
    }
    if soaked.is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
