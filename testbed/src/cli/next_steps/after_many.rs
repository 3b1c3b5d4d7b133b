//! The next steps after a command that made many runs.

use std::path::Path;

use dormouse_reproduce::sweep::{FolderSpec, SweepCell};

use super::step::{NextStep, pasted};

/// Name of the program that opens a page on a desktop.
const OPENER: &str = "xdg-open";

/// The next steps after a sweep or a comparison of these cells, with results in a folder.
pub(in crate::cli) fn after_cells(
    cells: &[SweepCell],
    spec: &FolderSpec,
    folder: &Path,
) -> Vec<NextStep> {
    let one =
        cells.first().map(|cell| NextStep::new(pasted(cell.run_words()), "one of its runs, whole"));
    let more = more_seeds(spec).map(|spec| {
        let dir = pasted([folder.to_string_lossy()]);
        let again = pasted(shlex::split(&spec.command()).unwrap_or_default());
        let line = format!("{again} --out {dir} --force");
        NextStep::new(line, "narrower intervals: the runs that are there are kept")
    });
    page(folder).into_iter().chain(one).chain(more).collect()
}

/// The command that made a folder, with twice as many seeds; `None`: its seeds are listed one by one, or the command
/// has no number of seeds.
fn more_seeds(spec: &FolderSpec) -> Option<FolderSpec> {
    let mut more = spec.clone();
    match &mut more {
        FolderSpec::Sweep { set, .. } if set.iter().any(|set| set.starts_with("seed=")) => {
            return None;
        }
        FolderSpec::Sweep { seeds, .. } | FolderSpec::Compare { seeds, .. } => *seeds *= 2,
        FolderSpec::Reproduce(_) => return None,
    }
    Some(more)
}

/// The next steps after a paper, or a part of it.
pub(in crate::cli) fn after_paper(what: &str, folder: &Path) -> Vec<NextStep> {
    let runs: &[(&str, &str)] = match what.split('/').next().unwrap_or(what) {
        "burst-hads" => &[
            ("dormouse run j60-sc2", "one of its runs, whole"),
            (
                "dormouse compare --schedulers burst-hads,hads --on j60-sc2 --seeds 10",
                "its two schedulers, seed by seed",
            ),
        ],
        "measy" => &[
            ("dormouse run batch-small --scheduler measy", "its scheduler on a few jobs"),
            (
                "dormouse compare --schedulers easy,measy --on batch-small --seeds 10",
                "two of its schedulers, seed by seed",
            ),
        ],
        "opie" => &[
            ("dormouse run provider-testbed", "its rule on a small provider"),
            ("dormouse workload requests provider-testbed", "what its customers request"),
        ],
        "bathtub" => &[
            ("dormouse run bathtub-nanoconfinement", "one of its bags"),
            ("dormouse advise reuse --job 5h --age 10h", "its rule for a job of your own"),
        ],
        "acc" => &[
            ("dormouse run acc-live", "its checkpoints in a short bag"),
            ("dormouse prices generate --out prices.csv", "prices like its own"),
        ],
        _ => &[("dormouse list", "the experiments that there are")],
    };
    let runs = runs.iter().map(|(line, why)| NextStep::new(*line, why));
    page(folder).into_iter().chain(runs).collect()
}

/// The step that opens a folder's report in a browser; `None`: no program can open it.
fn page(folder: &Path) -> Option<NextStep> {
    let page = folder.join("report.html");
    let path = std::env::var_os("PATH")?;
    let can_open = std::env::split_paths(&path).any(|dir| dir.join(OPENER).is_file());
    (can_open && page.is_file()).then(|| {
        let line = pasted([OPENER, &page.to_string_lossy()]);
        NextStep::new(line, "the page with its figures")
    })
}
