//! The next steps after a file was read or written.

use std::path::Path;

use super::step::{NextStep, pasted};

fn step(words: &[&str], why: &'static str) -> NextStep {
    NextStep::new(pasted(words.iter().copied()), why)
}

/// The next steps with a file of spot prices.
pub(in crate::cli) fn after_prices(file: &Path) -> Vec<NextStep> {
    let file = &*file.to_string_lossy();
    vec![
        step(&["dormouse", "prices", "describe", file], "its range, changes and oddities"),
        step(&["dormouse", "advise", "bid", file, "--on-demand", "0.4"], "what to bid"),
    ]
}

/// The next steps with a log of parallel jobs.
pub(in crate::cli) fn after_workload(file: &Path) -> Vec<NextStep> {
    let file = &*file.to_string_lossy();
    let log = format!("workload.log={file}");
    vec![
        step(&["dormouse", "workload", "stats", file], "what is in it"),
        step(
            &["dormouse", "run", "kth-sp2", "--scheduler", "easy", "--set", &log],
            "its jobs under a scheduler",
        ),
    ]
}

/// The next steps with a file of this kind; `kind` is the name that `inspect` prints.
pub(in crate::cli) fn after_inspect(kind: &str, file: &Path) -> Vec<NextStep> {
    let name = &*file.to_string_lossy();
    match kind {
        "spot prices" => after_prices(file),
        "parallel jobs" => after_workload(file).into_iter().take(1).collect(),
        "lifetimes of VMs" => vec![step(&["dormouse", "fit", name], "laws of these lifetimes")],
        "requests for VMs" | "a workflow" => {
            vec![step(&["dormouse", "workload", "stats", name], "what is in it")]
        }
        _ => Vec::new(),
    }
}

/// The next steps after a program was measured; `run` are the words that run it with the measured values.
pub(in crate::cli) fn after_measure(
    (run, program): (Vec<String>, Vec<String>),
    measured: &Path,
) -> Vec<NextStep> {
    let line = |more: &[&str]| {
        let measured = match (program.is_empty(), measured.to_string_lossy()) {
            (true, file) => ["--set".to_owned(), format!("workload.measured={file}")],
            (false, file) => ["--measured".to_owned(), file.into_owned()],
        };
        let more = more.iter().map(|word| (*word).to_owned());
        pasted(run.iter().cloned().chain(measured).chain(more).chain(program.clone()))
    };
    vec![
        NextStep::new(line(&[]), "it in virtual time, with the time that was measured"),
        NextStep::new(line(&["--live"]), "the same on real processes"),
    ]
}
