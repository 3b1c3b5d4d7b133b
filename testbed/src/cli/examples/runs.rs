//! Examples of the commands of one run.

use super::example::{Example, Examples};

const ROOT: &str = "root";
const LIVE: &str = "a live run that goes on";
const OVER: &str = "a live run that was stopped";

/// Examples in an order in which a run is made before the others ask about it.
pub(super) const ALL: &[Examples] = &[
    (
        "",
        &[
            Example::new("dormouse run j60", "a bag of 60 tasks in virtual time, in a second"),
            Example::new("dormouse list", "what else there is to run"),
        ],
    ),
    (
        "run",
        &[
            Example::new(
                "dormouse run j60-sc2 --scheduler hads --seed 7",
                "another scheduler, and other interruptions",
            ),
            Example::new(
                "dormouse run my.toml --set workload.deadline=40m --out mine",
                "an experiment of your own with one key changed, into the folder mine",
            ),
            Example::new(
                "dormouse run --on j60 --each 'data/*.txt' --runtime 60s -- ./work.sh {}",
                "a program of your own, a task for each file",
            ),
            Example::needing(ROOT, "dormouse run j60-sc2 --live", "a bag on real processes"),
        ],
    ),
    (
        "explain",
        &[
            Example::new(
                "dormouse explain runs/j60-burst-hads-s1 task7",
                "why a task ran where and when it did",
            ),
            Example::new(
                "dormouse explain runs/j60-burst-hads-s1 vm3 --json",
                "what became of a VM, for another program",
            ),
        ],
    ),
    (
        "check",
        &[
            Example::new("dormouse check runs/j60-burst-hads-s1", "status 1 if a rule is broken"),
            Example::new("dormouse check runs/j60-burst-hads-s1 --json", "for another program"),
        ],
    ),
    (
        "replay",
        &[
            Example::new(
                "dormouse replay runs/j60-burst-hads-s1",
                "status 1 if a decision comes out otherwise",
            ),
            Example::new("dormouse replay runs/j60-burst-hads-s1 --json", "for another program"),
        ],
    ),
    (
        "twin",
        &[
            Example::new(
                "dormouse twin runs/j60-burst-hads-s1",
                "the figures that differ most; of a virtual run, none",
            ),
            Example::new(
                "dormouse twin runs/j60-burst-hads-s1 --all --out twin",
                "every task and VM, and twin/twin.csv",
            ),
        ],
    ),
    (
        "export",
        &[
            Example::new(
                "dormouse export runs/j60-burst-hads-s1 --as svg --from 5m --until 10m",
                "a chart of five minutes of the run",
            ),
            Example::new(
                "dormouse export runs/j60-burst-hads-s1 --as parquet --out tables",
                "its tables, for pandas, DuckDB and the like",
            ),
        ],
    ),
    (
        "events",
        &[
            Example::new(
                "dormouse events runs/j60-burst-hads-s1 --from 10 | head -n 3",
                "three lines of a run's log",
            ),
            Example::needing(
                LIVE,
                "dormouse events runs/bag --follow",
                "the log as it grows, until the run is over",
            ),
        ],
    ),
    (
        "watch",
        &[
            Example::needing(
                "a browser",
                "dormouse watch runs/j60-burst-hads-s1 --open-page",
                "the page of a run, live or over",
            ),
            Example::needing(
                "a browser",
                "dormouse watch runs/j60-burst-hads-s1 --speed 60 --http 127.0.0.1:7381",
                "a run as it was, a minute in a second, at this address",
            ),
        ],
    ),
    (
        "resume",
        &[
            Example::needing(OVER, "dormouse resume runs/bag", "go on with it on this host"),
            Example::needing(
                OVER,
                "dormouse resume runs/bag --listen 0.0.0.0:7380",
                "go on with it on the workers of other hosts",
            ),
        ],
    ),
    (
        "status",
        &[
            Example::needing(LIVE, "dormouse status runs/bag", "one line on how it goes"),
            Example::needing(
                LIVE,
                "dormouse status lab1:7380 --secret-file secret.observer --json",
                "that of another host, for another program",
            ),
        ],
    ),
    (
        "submit",
        &[
            Example::needing(
                LIVE,
                "dormouse submit runs/jobs --processors 2 --runtime 60s",
                "one more parallel job",
            ),
            Example::needing(
                LIVE,
                "dormouse submit runs/jobs --processors 1 --runtime 90s --estimate 2m --key job-1",
                "a job that is submitted once, however often this is typed",
            ),
        ],
    ),
    (
        "close",
        &[
            Example::needing(LIVE, "dormouse close runs/jobs", "let it end after its last job"),
            Example::needing(
                LIVE,
                "dormouse close lab1:7380 --secret-file secret.operator",
                "the same for a run of another host",
            ),
        ],
    ),
    (
        "cancel",
        &[
            Example::needing(LIVE, "dormouse cancel runs/bag", "end it now, with its results"),
            Example::needing(
                LIVE,
                "dormouse cancel runs/bag --why 'wrong deadline'",
                "the same, with a reason in its log",
            ),
        ],
    ),
    (
        "interrupt",
        &[
            Example::needing(
                LIVE,
                "dormouse interrupt runs/bag hibernate --vm vm3",
                "have one spot VM hibernate now",
            ),
            Example::needing(
                LIVE,
                "dormouse interrupt runs/bag preempt --type c3.large --why storm",
                "take all spot VMs of a type away",
            ),
        ],
    ),
    (
        "measure",
        &[
            Example::needing(
                ROOT,
                "dormouse measure --on j60 -- ./work.sh data/a.txt",
                "what a program of your own takes; measured.json keeps it",
            ),
            Example::needing(
                ROOT,
                "dormouse measure my.toml --all --out mine.json",
                "every task of an experiment that differs from the others",
            ),
        ],
    ),
];
