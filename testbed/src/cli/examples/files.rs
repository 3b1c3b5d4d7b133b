//! Examples of the commands that read and write files.

use super::example::{Example, Examples};

/// Examples in an order in which a file is written before it is read.
pub(super) const ALL: &[Examples] = &[
    (
        "list",
        &[
            Example::new("dormouse list", "every experiment and scheduler with a line on it"),
            Example::new("dormouse list --json", "the experiments, for another program"),
        ],
    ),
    (
        "show",
        &[
            Example::new("dormouse show j60 > mine.toml", "a file to change and run"),
            Example::new("dormouse show mine.toml --json", "every key with the value that it has"),
        ],
    ),
    (
        "reference",
        &[
            Example::new("dormouse reference > keys.md", "every key, to read at leisure"),
            Example::new("dormouse reference | grep deadline", "the lines on one key"),
        ],
    ),
    (
        "schema",
        &[
            Example::new(
                "dormouse schema > dormouse.schema.json",
                "a schema by which editors complete experiment files",
            ),
            Example::new(
                "dormouse schema --scheduler > scheduler.schema.json",
                "the schema of what a scheduler of your own reads and writes",
            ),
        ],
    ),
    (
        "prices",
        &[
            Example::new("dormouse prices generate --out week.csv --lasts 7d", "a week of prices"),
            Example::new("dormouse prices describe week.csv", "what they are like"),
        ],
    ),
    (
        "prices generate",
        &[
            Example::new("dormouse prices generate --out prices.csv", "ninety days of prices"),
            Example::new(
                "dormouse prices generate --out calm.csv --spike-lasts 0s --seed 2",
                "prices without spikes",
            ),
        ],
    ),
    (
        "prices describe",
        &[
            Example::new("dormouse prices describe prices.csv", "range, changes and oddities"),
            Example::new(
                "dormouse prices describe prices.csv --bid 0.34 --plot prices.svg",
                "how an instance fares at a bid, and a plot",
            ),
        ],
    ),
    (
        "advise",
        &[
            Example::new("dormouse advise reuse --job 5h --age 10h", "an old VM, or a new one"),
            Example::new("dormouse advise bid prices.csv --on-demand 0.4", "what to bid"),
        ],
    ),
    (
        "advise checkpoints",
        &[
            Example::new(
                "dormouse advise checkpoints --job 5h",
                "when to checkpoint on a new VM, by the bathtub law",
            ),
            Example::new(
                "dormouse advise checkpoints --job 3h --age 2h --model 'mean = \"6h\"' --out advice",
                "on a VM that lives six hours in the mean, with a page",
            ),
        ],
    ),
    (
        "advise reuse",
        &[
            Example::new(
                "dormouse advise reuse --job 5h --age 10h",
                "whether a VM of ten hours is worth a job of five",
            ),
            Example::new(
                "dormouse advise reuse --job 2h --policy probability --json",
                "by another criterion, for another program",
            ),
        ],
    ),
    (
        "advise bid",
        &[
            Example::new(
                "dormouse advise bid prices.csv --on-demand 0.4",
                "the bid that the on-demand price gives, and what to expect of it",
            ),
            Example::new(
                "dormouse advise bid prices.csv calm.csv --bid 0.33 --job 3h --out bids",
                "the better of two records at a bid, with a page",
            ),
        ],
    ),
    (
        "fit",
        &[
            Example::new("dormouse fit lifetimes.csv", "the laws and how well they fit"),
            Example::new(
                "dormouse fit lifetimes.csv --law exponential --write fitted.toml",
                "an [[interruption]] for an experiment file",
            ),
        ],
    ),
    (
        "workload",
        &[
            Example::new(
                "dormouse workload generate --model fw-like --jobs 500 --out fw.swf",
                "a log of 500 parallel jobs",
            ),
            Example::new("dormouse workload stats fw.swf", "what is in it"),
        ],
    ),
    (
        "workload generate",
        &[
            Example::new(
                "dormouse workload generate --model lublin --jobs 1000 --out log.swf",
                "a log of 1000 parallel jobs",
            ),
            Example::new(
                "dormouse workload generate --model lublin --jobs 1000 --load 0.9 --out busy.swf",
                "one that keeps the machine busy",
            ),
        ],
    ),
    (
        "workload stats",
        &[
            Example::new("dormouse workload stats log.swf", "jobs, load, sizes and run times"),
            Example::new("dormouse workload stats log.swf --plot log.svg", "and a plot of them"),
        ],
    ),
    (
        "workload scale",
        &[
            Example::new(
                "dormouse workload scale log.swf --load 0.5 --out half.swf",
                "the same jobs at an offered load of a half",
            ),
            Example::new(
                "dormouse workload scale log.swf --factor 2 --out slow.swf",
                "twice the time between submissions",
            ),
        ],
    ),
    (
        "workload convert",
        &[
            Example::new(
                "dormouse workload convert log.swf --to csv --out log.csv",
                "a log of any format that is read, as a table",
            ),
            Example::new(
                "dormouse workload convert log.swf --to batsim --procs 320 --out log.json",
                "a workload for Batsim",
            ),
        ],
    ),
    (
        "workload requests",
        &[
            Example::new(
                "dormouse workload requests provider-testbed",
                "what the customers of an experiment request",
            ),
            Example::new(
                "dormouse workload requests provider-testbed --set seed=2 --out stream.csv",
                "under another seed, written as CSV",
            ),
        ],
    ),
    (
        "inspect",
        &[
            Example::new("dormouse inspect prices.csv", "what it is, and how to use it"),
            Example::new("dormouse inspect log.swf --json", "the same for another program"),
        ],
    ),
    (
        "completions",
        &[
            Example::new(
                "dormouse completions bash > completions.bash",
                "then, in bash: source completions.bash",
            ),
            Example::new(
                "dormouse completions fish > dormouse.fish",
                "for ~/.config/fish/completions",
            ),
        ],
    ),
    (
        "man",
        &[
            Example::new("dormouse man pages", "a page of each command, in the folder pages"),
            Example::new("dormouse man pages && ls pages/dormouse-run.1", "man -l shows one"),
        ],
    ),
];
