//! Examples of the commands about hosts, and of runs on several hosts.

use super::example::{Example, Examples};

const ROOT: &str = "root";
const UNTIL: &str = "Ctrl-C at its end";
const SEVERAL: &str = "workers on other hosts";

/// Examples in an order in which an identity is made before its tokens are printed.
pub(super) const ALL: &[Examples] = &[
    (
        "doctor",
        &[
            Example::needing("root, for a good result", "dormouse doctor", "with real tasks"),
            Example::needing(
                "root, for a good result",
                "dormouse doctor --quick --json",
                "a look alone, for another program",
            ),
        ],
    ),
    (
        "calibrate",
        &[
            Example::needing(ROOT, "dormouse calibrate", "the whole table, in four minutes"),
            Example::needing(
                ROOT,
                "dormouse calibrate --quick --out here.json",
                "a smaller table in a minute, into a file",
            ),
        ],
    ),
    (
        "ec2",
        &[
            Example::needing(
                UNTIL,
                "dormouse ec2 j60-sc2 --clock paced 600",
                "its cloud for clients that only wait, ten minutes in a second",
            ),
            Example::needing(
                UNTIL,
                "dormouse ec2 j60-sc2 --clock manual --listen 127.0.0.1:0",
                "on a port that it says, by a clock that a program leads",
            ),
        ],
    ),
    (
        "metadata",
        &[
            Example::needing(
                UNTIL,
                "dormouse metadata --scenario j60-sc2 --speedup 60",
                "a VM that hibernates and resumes as in this experiment, a minute in a second",
            ),
            Example::needing(
                UNTIL,
                "dormouse metadata --port 0 --imdsv2",
                "everything at once, on a port that it says, to who has a token",
            ),
        ],
    ),
    (
        "metadata spot",
        &[
            Example::needing(
                UNTIL,
                "dormouse metadata spot --action terminate --mock-delay-sec 10 --imdsv2",
                "a notice of two minutes in ten seconds",
            ),
            Example::needing(
                UNTIL,
                "dormouse metadata spot --mock-delay-sec 300 --rebalance-delay-sec 5",
                "a recommendation in five seconds, and the notice in five minutes",
            ),
        ],
    ),
    (
        "metadata events",
        &[
            Example::needing(
                UNTIL,
                "dormouse metadata events --code instance-stop",
                "maintenance that stops the VM",
            ),
            Example::needing(
                UNTIL,
                "dormouse metadata events --code system-reboot --state canceled",
                "maintenance that will not be",
            ),
        ],
    ),
    (
        "coordinator",
        &[
            Example::needing(
                SEVERAL,
                "dormouse coordinator j60-sc2 --listen 0.0.0.0 --workers 3 --out runs/bag",
                "a run on three workers, which join with runs/bag/secret",
            ),
            Example::needing(
                SEVERAL,
                "dormouse coordinator j60-sc2 --out runs/bag --resume",
                "begin it, or go on with it if it was begun",
            ),
        ],
    ),
    (
        "worker",
        &[
            Example::needing(
                ROOT,
                "dormouse worker --coordinator lab1:7380 --secret-file secret",
                "offer this host to the coordinator on lab1",
            ),
            Example::needing(
                ROOT,
                "dormouse worker --coordinator lab1:7380 --secret-file secret --name lab2 --wait 1h",
                "under a name of its own, before the coordinator is there",
            ),
        ],
    ),
    (
        "identity",
        &[
            Example::new("dormouse identity lab", "for runs to come: DORMOUSE_IDENTITY=lab"),
            Example::new("dormouse identity week --valid 7d", "with tokens that are good a week"),
        ],
    ),
    (
        "token",
        &[
            Example::new("dormouse token lab --role worker", "for a host that is to join"),
            Example::new(
                "dormouse token lab --renew --valid 1d",
                "a new one to look on with, in the place of the former",
            ),
        ],
    ),
];
