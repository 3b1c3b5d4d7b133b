//! The cost of asking a scheduler that is a program of its own, in virtual time. It is compared, by turns, with
//! sending lines through two pipes and back on one processor.
//!
//! `cargo bench -p dormouse-tests --bench program`

use std::env;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::process::{Command, Stdio};
use std::time::Instant;

use dormouse_experiment::{ExperimentSource, load};
use dormouse_report::virtual_run::virtual_run;
use dormouse_samples::{Samples, median};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Number of tasks; the scheduler is asked once for each.
const TASKS: u32 = 20_000;
const ROUNDS: usize = 5;

/// A line like those that a scheduler reads and writes for a task.
const LINE: &str =
    r#"{"now":559833282,"notices":[{"notice":"task-finished","task":12345,"vm":0}]}"#;

fn main() -> Outcome<()> {
    let role = env::args().skip(1).find(|arg| arg != "--bench");
    match role.as_deref() {
        Some("--scheduler") => schedule(),
        Some("--echo") => echo(),
        Some("--floor") => floor(),
        _ => measure(),
    }
}

fn measure() -> Outcome<()> {
    let asks = Samples::by_turns(ROUNDS, run, || {
        let output =
            Command::new(env::current_exe()?).arg("--floor").stderr(Stdio::inherit()).output()?;
        Ok::<_, Box<dyn std::error::Error>>(String::from_utf8(output.stdout)?.trim().parse()?)
    })?;
    println!(
        "a program is asked in {:.1} us, a line goes through pipes and back in {:.1} us",
        median(&asks.ours),
        median(&asks.peer)
    );
    asks.report_costs("program-ask")?;
    Ok(())
}

/// Microseconds per request to the scheduler in a whole run, including the start and the end of the program.
fn run() -> Outcome<f64> {
    let text = format!(
        "name = \"asked\"\nseed = 1\n[cloud]\ncatalogue = \"ec2-2020\"\n[workload]\nkind = \"bag\"\n\
         deadline = \"1000h\"\n[[workload.task]]\nname = \"t\"\ncount = {TASKS}\nmemory = \"12MB\"\n\
         runtime = \"100s\"\n[scheduler]\nname = \"program\"\ncommand = [{:?}, \"--scheduler\"]\n",
        env::current_exe()?
    );
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("asked.toml");
    std::fs::write(&file, text)?;
    let experiment =
        load(&ExperimentSource { experiment: file.to_str(), ..ExperimentSource::default() })?
            .experiment;
    let begun = Instant::now();
    let run = virtual_run(&experiment, experiment.scheduler()?, |_| {})?;
    let us = begun.elapsed().as_secs_f64() * 1e6;
    if run.unfinished_count() > 0 {
        return Err(format!("{} tasks are left", run.unfinished_count()).into());
    }
    Ok(us / f64::from(TASKS))
}

/// The least work that a scheduler can do for a request: it searches its lines for words and parses none.
fn schedule() -> Outcome<()> {
    let mut lines = BufReader::new(stdin().lock());
    let (mut line, mut answer, mut out) = (String::new(), String::new(), stdout().lock());
    lines.read_line(&mut line)?;
    out.write_all(
        b"{\"hello\":{\"protocol\":1,\"hears\":[\"begin\",\"vm-ready\",\"task-finished\"]}}\n",
    )?;
    let mut next = 0;
    loop {
        out.flush()?;
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        answer.clear();
        answer.push_str("{\"decisions\":[");
        if line.contains("\"begin\"") {
            answer
                .push_str(r#"{"decision":"launch","vm":0,"kind":"c3.large","market":"on-demand"}"#);
        }
        let free = if line.contains("\"vm-ready\"") {
            2
        } else {
            line.matches("\"task-finished\"").count()
        };
        for n in 0..free {
            if next < TASKS {
                let comma = if n > 0 { "," } else { "" };
                write!(answer, "{comma}{{\"decision\":\"start\",\"task\":{next},\"vm\":0}}")?;
                next += 1;
            }
        }
        answer.push_str("]}\n");
        out.write_all(answer.as_bytes())?;
    }
}

/// Prints how many microseconds a line takes to a program that echoes it and back, both on one processor.
fn floor() -> Outcome<()> {
    let mut one = CpuSet::new();
    let all = sched_getaffinity(Pid::from_raw(0))?;
    let first = (0..CpuSet::count()).find(|cpu| all.is_set(*cpu).unwrap_or(false));
    one.set(first.ok_or("there is no processor")?)?;
    sched_setaffinity(Pid::from_raw(0), &one)?;
    let mut echo = Command::new(env::current_exe()?);
    let mut echo = echo.arg("--echo").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (to, from) = (echo.stdin.take(), echo.stdout.take());
    let (mut to, from) = (to.ok_or("no pipe")?, from.ok_or("no pipe")?);
    let (mut from, mut line) = (BufReader::new(from), String::new());
    let begun = Instant::now();
    for _ in 0..TASKS {
        to.write_all(format!("{LINE}\n").as_bytes())?;
        line.clear();
        from.read_line(&mut line)?;
    }
    println!("{}", begun.elapsed().as_secs_f64() * 1e6 / f64::from(TASKS));
    drop(to);
    echo.wait()?;
    Ok(())
}

fn echo() -> Outcome<()> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        out.write_all((line? + "\n").as_bytes())?;
        out.flush()?;
    }
    Ok(())
}
