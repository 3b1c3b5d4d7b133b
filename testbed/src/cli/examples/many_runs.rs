//! Examples of the commands that make many runs.

use super::example::{Example, Examples};

const DATA: &str = "public data";
const ROOT: &str = "root";
const LONG: &str = "some minutes";

/// Examples in an order in which parts come before the command that merges them.
pub(super) const ALL: &[Examples] = &[
    (
        "sweep",
        &[
            Example::new(
                "dormouse sweep j60 --set scheduler.alpha=0.1,0.5,0.9 --seeds 3",
                "a key over three values, each under three seeds",
            ),
            Example::new(
                "dormouse sweep batch-small --set scheduler.name=easy,measy --seeds 3",
                "two schedulers of parallel jobs",
            ),
            Example::new(
                "dormouse sweep j80 --seeds 4 --shard 1/2 --out part1",
                "the first half of a sweep, for one of two hosts",
            ),
            Example::new(
                "dormouse sweep j80 --seeds 4 --shard 2/2 --out part2",
                "the second half, for the other",
            ),
            Example::new(
                "dormouse sweep j60 --seeds 4 --engine local --shards 2 --out split",
                "two processes of this host, by the way that a cluster goes",
            ),
            Example::new(
                "dormouse sweep j60 --seeds 1000 --engine slurm --shards 20 --dry-run",
                "the job that Slurm would be given",
            ),
        ],
    ),
    (
        "merge",
        &[
            Example::new("dormouse merge part1 part2 --out whole", "join two halves of a sweep"),
            Example::new(
                "dormouse merge part1 part2 --out whole --json",
                "the joined table as JSON",
            ),
        ],
    ),
    (
        "compare",
        &[
            Example::new(
                "dormouse compare --schedulers burst-hads,hads --on j60 --seeds 3",
                "two schedulers seed by seed, with the differences",
            ),
            Example::new(
                "dormouse compare --schedulers easy,keasy,measy --on batch-small --seeds 3 --out jobs",
                "three schedulers of parallel jobs, into the folder jobs",
            ),
            Example::new(
                "dormouse compare --schedulers burst-hads,hads --on j60 --engine hq --dry-run",
                "the job that HyperQueue would be given",
            ),
        ],
    ),
    (
        "reproduce",
        &[
            Example::new("dormouse reproduce opie/tables --seeds 5", "a part of a paper, quickly"),
            Example::needing(LONG, "dormouse reproduce burst-hads", "a paper's tables, whole"),
            Example::new(
                "dormouse reproduce opie/tables --engine kubernetes --shards 4 --dry-run",
                "the Jobs that Kubernetes would be given",
            ),
        ],
    ),
    (
        "reproduce all",
        &[
            Example::needing(LONG, "dormouse reproduce all", "what needs no data of all papers"),
            Example::needing(
                DATA,
                "dormouse reproduce all --prices prices --lifetimes lifetimes.csv --kth KTH-SP2-1996-2.1-cln.swf.gz",
                "all of them",
            ),
        ],
    ),
    (
        "reproduce own",
        &[
            Example::needing(
                DATA,
                "dormouse reproduce own --paper mine.toml",
                "what the claims of your file come to",
            ),
            Example::needing(
                DATA,
                "dormouse reproduce own --paper mine.toml --part table --seeds 3",
                "one part of it, quickly",
            ),
        ],
    ),
    (
        "reproduce burst-hads",
        &[
            Example::needing(
                LONG,
                "dormouse reproduce burst-hads --seeds 5 --cause-seeds 0",
                "both tables from five runs a cell, and no search for causes",
            ),
            Example::needing(
                LONG,
                "dormouse reproduce burst-hads --preset artifact",
                "by the rules of the authors' code",
            ),
        ],
    ),
    (
        "reproduce burst-hads/plans",
        &[
            Example::needing(
                DATA,
                "dormouse reproduce burst-hads/plans --data inputs",
                "the stored plans of a folder beside ours",
            ),
            Example::needing(
                DATA,
                "dormouse reproduce burst-hads/plans --data inputs --set seed=2 --force",
                "the same under another seed, in the place of that",
            ),
        ],
    ),
    (
        "reproduce measy",
        &[
            Example::new(
                "dormouse reproduce measy/figure-6 --jobs 200 --no-causes",
                "a figure from few jobs, for a quick look",
            ),
            Example::needing(
                DATA,
                "dormouse reproduce measy --kth KTH-SP2-1996-2.1-cln.swf.gz",
                "all figures, with the log that some of them need",
            ),
        ],
    ),
    (
        "reproduce measy/two-tier",
        &[
            Example::needing(
                ROOT,
                "dormouse reproduce measy/two-tier",
                "what two VMs on one core cost each other here",
            ),
            Example::needing(
                ROOT,
                "dormouse reproduce measy/two-tier --usages 50,100 --seeds 2",
                "the same from fewer pairs of jobs",
            ),
        ],
    ),
    (
        "reproduce measy/live-ranking",
        &[
            Example::needing(
                ROOT,
                "dormouse reproduce measy/live-ranking",
                "four schedulers live and in virtual time",
            ),
            Example::needing(
                ROOT,
                "dormouse reproduce measy/live-ranking --seed 2 --out live",
                "under another seed, into the folder live",
            ),
        ],
    ),
    (
        "reproduce opie",
        &[
            Example::new("dormouse reproduce opie/tables --seeds 2", "its host tables, quickly"),
            Example::needing(LONG, "dormouse reproduce opie", "all parts"),
        ],
    ),
    (
        "reproduce combined",
        &[
            Example::needing(LONG, "dormouse reproduce combined", "on generated prices"),
            Example::needing(
                DATA,
                "dormouse reproduce combined --data prices --seeds 3",
                "on a folder of recorded prices",
            ),
        ],
    ),
    (
        "reproduce bathtub",
        &[
            Example::needing(LONG, "dormouse reproduce bathtub", "what needs no recorded data"),
            Example::needing(
                DATA,
                "dormouse reproduce bathtub --data lifetimes.csv",
                "all figures, from the recorded lifetimes",
            ),
        ],
    ),
    (
        "reproduce acc",
        &[
            Example::needing(
                DATA,
                "dormouse reproduce acc --data prices",
                "all figures, from a folder of recorded prices",
            ),
            Example::needing(
                DATA,
                "dormouse reproduce acc/figure-7 --data prices --seeds 5",
                "one figure, from fewer jobs",
            ),
        ],
    ),
];
