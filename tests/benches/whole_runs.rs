//! Whole runs of the command in virtual time, with all their output files: parallel jobs under EASY and MEASY, and a
//! provider's region. Each is compared, by turns, with the least program that does similar work.
//!
//! `DORMOUSE=PATH cargo bench -p dormouse-tests --bench whole_runs [-- easy measy million region]`

#[path = "floor/easy.rs"]
mod easy;
#[path = "floor/log.rs"]
mod log;
#[path = "floor/requests.rs"]
mod requests;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use dormouse_samples::{Samples, median};
use nix::sys::resource::{UsageWho, getrusage};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Number of pairs of runs that are measured.
const ROUNDS: usize = 3;
const JOBS: usize = 200_000;

fn main() -> Outcome<()> {
    // Cargo gives options of its own, too.
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--floor", "easy", from, to] => easy::easy(from.as_ref(), to.as_ref()).map(drop),
        ["--floor", "requests", to] => requests::provider(to.as_ref()).map(drop),
        ["--timed", program, ref rest @ ..] => timed(program, rest),
        ref only => measure(only),
    }
}

fn measure(only: &[&str]) -> Outcome<()> {
    let dormouse = env::var_os("DORMOUSE").ok_or("DORMOUSE has to name the command to measure")?;
    let runs = Runs { dormouse: dormouse.into(), folder: tempfile::tempdir()? };
    let wanted = |part| only.is_empty() || only.contains(&part);
    let log = log::make(runs.folder.path(), JOBS)?;
    for scheduler in ["easy", "measy"].into_iter().filter(|part| wanted(part)) {
        runs.jobs(scheduler, &log)?;
    }
    if wanted("million") {
        runs.million(&log)?;
    }
    if wanted("region") {
        runs.region()?;
    }
    Ok(())
}

/// Time and memory that a process used.
#[derive(Clone, Copy, Debug)]
struct Took {
    seconds: f64,
    /// The most memory that the process had, in MB.
    peak: f64,
}

/// Makes runs of the command and of floor programs in one folder.
struct Runs {
    dormouse: PathBuf,
    folder: tempfile::TempDir,
}

impl Runs {
    /// Measures the jobs of a log under a scheduler, against the floor program of EASY.
    fn jobs(&self, scheduler: &str, log: &Path) -> Outcome<()> {
        let (mut times, mut memory) = (Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            let floor = self.floor(&["easy".as_ref(), log.as_os_str()])?;
            let ours = self.run(&self.experiment(log)?, &["--scheduler", scheduler])?;
            times.push(ours.seconds, floor.seconds);
            memory.push(ours.peak, floor.peak);
        }
        told(&format!("{JOBS} jobs under {scheduler}"), &times, &memory);
        times.report_costs(&format!("{scheduler}-200k"))?;
        memory.report_costs(&format!("{scheduler}-200k-memory"))?;
        Ok(())
    }

    /// Measures a million jobs under EASY, against the log `fifth`, which has a fifth of them.
    fn million(&self, fifth: &Path) -> Outcome<()> {
        let log = log::make(self.folder.path(), 5 * JOBS)?;
        let easy = ["--scheduler", "easy"];
        let (mut times, mut memory) = (Samples::default(), Samples::default());
        for _ in 0..ROUNDS {
            let one = self.run(&self.experiment(fifth)?, &easy)?;
            let five = self.run(&self.experiment(&log)?, &easy)?;
            times.push(five.seconds / 5.0, one.seconds);
            memory.push(five.peak, one.peak);
        }
        told("a million jobs, a fifth of the time, against 200,000", &times, &memory);
        times.report_costs("easy-million")?;
        memory.report_costs("easy-million-memory")?;
        Ok(())
    }

    /// Measures a million requests for 100,000 hosts, against the floor program of a provider.
    fn region(&self) -> Outcome<()> {
        let floor = self.floor(&["requests".as_ref()])?;
        let ours = self.run("provider-region-100k".as_ref(), &[])?;
        let times = Samples { ours: vec![ours.seconds], peer: vec![floor.seconds] };
        let memory = Samples { ours: vec![ours.peak], peer: vec![floor.peak] };
        told("provider-region-100k", &times, &memory);
        times.report_costs("region-100k")?;
        memory.report_costs("region-100k-memory")?;
        Ok(())
    }

    /// Writes an experiment that uses a log, into the log's folder; returns its path.
    fn experiment(&self, log: &Path) -> Outcome<PathBuf> {
        let file = log.with_extension("toml");
        let text = format!("name = \"log\"\n[workload]\nkind = \"swf\"\nlog = {log:?}\n");
        fs::write(&file, text + "[scheduler]\nname = \"easy\"\n")?;
        Ok(file)
    }

    /// Measures a run of the command; its output folder is removed afterwards.
    fn run(&self, experiment: &Path, options: &[&str]) -> Outcome<Took> {
        let out = self.folder.path().join("out");
        let mut words = vec![OsString::from("run"), experiment.into()];
        words.extend(options.iter().map(OsString::from));
        words.extend(["--virtual".into(), "--quiet".into(), "--out".into(), out.clone().into()]);
        let took = took(&self.dormouse, &words)?;
        fs::remove_dir_all(out)?;
        Ok(took)
    }

    /// Measures this program as a floor program; its last argument is the path that it writes to.
    fn floor(&self, what: &[&OsStr]) -> Outcome<Took> {
        let out = self.folder.path().join("floor.csv");
        let mut words = vec![OsString::from("--floor")];
        words.extend(what.iter().map(OsString::from));
        words.push(out.into());
        took(&env::current_exe()?, &words)
    }
}

fn told(what: &str, times: &Samples, memory: &Samples) {
    println!(
        "{what}: {:.3} s and {:.1} MB, beside it {:.3} s and {:.1} MB",
        median(&times.ours),
        median(&memory.ours),
        median(&times.peer),
        median(&memory.peer)
    );
}

/// Measures a program as the only child of a process in between: the kernel reports the most memory of all children
/// that a process has had.
fn took(program: &Path, words: &[OsString]) -> Outcome<Took> {
    let mut command = Command::new(env::current_exe()?);
    let output =
        command.arg("--timed").arg(program).args(words).stderr(Stdio::inherit()).output()?;
    let said = String::from_utf8(output.stdout)?;
    let mut numbers = said.split_whitespace().map(str::parse);
    let (Some(Ok(seconds)), Some(Ok(peak))) = (numbers.next(), numbers.next()) else {
        return Err(format!("{} {words:?} failed", program.display()).into());
    };
    Ok(Took { seconds, peak })
}

fn timed(program: &str, words: &[&str]) -> Outcome<()> {
    let begun = Instant::now();
    let status = Command::new(program).args(words).stdout(Stdio::null()).status()?;
    let seconds = begun.elapsed().as_secs_f64();
    if !status.success() {
        return Err(status.to_string().into());
    }
    #[expect(clippy::cast_precision_loss, reason = "some MB")]
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as f64 / 1e3;
    println!("{seconds} {peak}");
    Ok(())
}
