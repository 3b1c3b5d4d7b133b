//! All metrics: their names, units, help texts and values.

use dormouse_analysis::RunMode;
use dormouse_analysis::outcome::wording::REQUESTS_ENDED;
use dormouse_coordinator::CoordinatorVitals;
use dormouse_units::Time;

use super::exposition::{FamilySamples, Labels, MetricFamily};
use super::fleet::market_word;
use super::fleet::{FleetMetrics, MARKETS};
use super::histogram::{BucketHistogram, HistogramCounts};
use super::run_metrics::RunMetrics;

/// Names and properties of a run that are labels of its metrics.
#[derive(Clone, Debug)]
pub struct RunName {
    /// Unique name of the run.
    pub run: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the scheduler.
    pub scheduler: String,
    /// Mode of the run.
    pub mode: RunMode,
    /// Emulated seconds per real second; `None` in virtual time.
    pub speedup: Option<f64>,
}

/// Facts about a run that are not in its log.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnloggedFacts<'a> {
    /// Whether a coordinator serves the run now.
    pub serves: bool,
    /// Present time of the run's clock; `None` if only the log's last time is known.
    pub now: Option<Time>,
    /// The coordinator's own figures, if the coordinator is this process; `None` otherwise.
    pub vitals: Option<&'a CoordinatorVitals>,
}

fn gauge(name: &'static str, help: &'static str, value: impl Into<f64>) -> MetricFamily {
    gauges(name, help, [(Labels::new(), value.into())])
}

/// A metric family with a gauge for each set of labels.
fn gauges(
    name: &'static str,
    help: &'static str,
    values: impl IntoIterator<Item = (Labels, f64)>,
) -> MetricFamily {
    MetricFamily {
        name,
        help,
        unit: None,
        samples: FamilySamples::Gauge(values.into_iter().collect()),
    }
}

fn counter(name: &'static str, help: &'static str, value: u64) -> MetricFamily {
    counters(name, help, [(Labels::new(), value)])
}

/// A metric family with a counter for each set of labels.
#[expect(clippy::cast_precision_loss, reason = "counts; Prometheus knows floats alone")]
fn counters(
    name: &'static str,
    help: &'static str,
    values: impl IntoIterator<Item = (Labels, u64)>,
) -> MetricFamily {
    let values = values.into_iter().map(|(labels, n)| (labels, n as f64));
    MetricFamily { name, help, unit: None, samples: FamilySamples::Counter(values.collect()) }
}

fn histogram(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    counted: HistogramCounts,
) -> MetricFamily {
    MetricFamily { name, help, unit: Some(unit), samples: FamilySamples::Histogram(counted) }
}

impl MetricFamily {
    fn in_unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }
}

fn labels<const N: usize>(of: [(&'static str, &str); N]) -> Labels {
    of.map(|(name, value)| (name, value.to_owned())).into()
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// All metric families of a run.
pub(super) fn families(of: &RunMetrics, beside: &UnloggedFacts<'_>) -> Vec<MetricFamily> {
    // The clock of a run that is over stands still, whatever its coordinator still does.
    let clock = beside.now.filter(|_| of.over.is_none());
    let now = clock.map_or(of.now, |now| now.max(of.now));
    let mut all = run(of, now);
    all.extend(work_families(of));
    all.extend(vm_families(of, now));
    all.extend(act_families(of));
    all.extend(measured_families(of));
    all.extend(outage_families(of));
    all.extend(coordinator(beside));
    all
}

fn run(of: &RunMetrics, now: Time) -> Vec<MetricFamily> {
    let name = &of.name;
    let info = labels([
        ("run", &name.run),
        ("experiment", &name.experiment),
        ("scheduler", &name.scheduler),
        (
            "mode",
            match name.mode {
                RunMode::Virtual => "virtual",
                RunMode::Live => "live",
            },
        ),
    ]);
    let mut all = vec![
        MetricFamily {
            name: "run",
            help: "The run; always 1.",
            unit: None,
            samples: FamilySamples::Info(info),
        },
        gauge("clock", "What the clock of the run shows, in emulated time.", now.as_secs_f64())
            .in_unit("seconds"),
        counter("events", "Events of the log, each a line of it.", of.record.steps),
        gauge("run_over", "Whether the run is over.", flag(of.over.is_some())),
        gauge(
            "run_complete",
            "Whether the run is over and all of its work was done.",
            flag(of.over == Some(true)),
        ),
    ];
    if let Some(deadline) = of.deadline {
        let help = "The deadline of the bag, in emulated time.";
        all.push(gauge("deadline", help, deadline.as_secs_f64()).in_unit("seconds"));
    }
    if let Some(speedup) = name.speedup {
        let help = "Emulated seconds in a real one; not there in virtual time.";
        all.push(gauge("speedup", help, speedup).in_unit("ratio"));
    }
    all
}

#[expect(clippy::cast_precision_loss, reason = "counts; Prometheus knows floats alone")]
fn work_families(of: &RunMetrics) -> Vec<MetricFamily> {
    let tallies: Vec<_> = of.work.tallies().collect();
    let states = tallies.iter().flat_map(|(kind, of)| {
        [("waiting", of.waiting), ("running", of.running), ("done", of.done)]
            .map(|(state, n)| (labels([("kind", kind.word()), ("state", state)]), n as f64))
    });
    let each = |n: fn(&super::work_state::WorkTally) -> u64| {
        tallies.iter().map(move |(kind, of)| (labels([("kind", kind.word())]), n(of)))
    };
    let mut all = vec![
        gauges(
            "tasks",
            "Tasks of the bag and parallel jobs that were submitted, by what they do: the queue \
             (waiting), on a VM, whether that runs or not (running), over, well or not (done).",
            states,
        ),
        counters(
            "attempts_started",
            "Starts of tasks and parallel jobs that were sent to a VM.",
            each(|of| of.started),
        ),
        counters(
            "attempts_failed",
            "Attempts that failed, or whose answer was wrong.",
            each(|of| of.failed),
        ),
    ];
    if let Some(requests) = &of.requests {
        let ended = requests.ended.iter().map(|(end, n)| (labels([("end", end)]), *n));
        all.extend([
            counter("requests", "VMs that customers requested.", requests.requested),
            gauge(
                "requests_open",
                "Requested VMs whose request has not come to its end.",
                requests.open() as f64,
            ),
            counters("requests_ended", REQUESTS_ENDED, ended),
        ]);
    }
    all
}

#[expect(clippy::cast_precision_loss, reason = "counts; Prometheus knows floats alone")]
fn vm_families(of: &RunMetrics, now: Time) -> Vec<MetricFamily> {
    let (fleet, record) = (&of.fleet, &of.record);
    let states = FleetMetrics::by_state(record).into_iter().map(|((market, stage), n)| {
        (labels([("market", market), ("state", stage.word())]), n as f64)
    });
    let launched = MARKETS.map(market_word).map(|market| {
        let n = fleet.launched.get(market).copied().unwrap_or_default();
        (labels([("market", market)]), n)
    });
    let ended = fleet.ended.iter().map(|(why, n)| (labels([("why", why)]), *n));
    let of_type = |kind: &str, value: f64| (labels([("type", kind)]), value);
    let credits = fleet.credits(record);
    vec![
        gauges("vms", "VMs that are there, by market and state.", states),
        counters("vms_launched", "VMs that were granted.", launched),
        counters("vms_ended", "VMs that are gone, by why.", ended),
        counter("launches_refused", "Launches that were refused.", record.counts.launches_refused.into()),
        gauge("hosts", "Hosts that are part of the run.", of.hosts.len() as f64),
        counter("hosts_lost", "Hosts that are gone.", record.counts.hosts_lost.into()),
        gauge(
            "cost",
            "What is owed for all VMs up to now; it falls where a tariff forgoes a part of an hour.",
            fleet.cost(record, now).as_usd(),
        )
        .in_unit("usd"),
        gauge(
            "cost_rate_usd_per_hour",
            "What an emulated hour of the VMs costs that are paid for now.",
            fleet.rate(record),
        ),
        gauges(
            "spot_price_usd_per_hour",
            "The spot price of an instance type now.",
            fleet.spot_prices(now).map(|(kind, price)| of_type(kind.as_str(), price)),
        ),
        gauges(
            "credits",
            "CPU credits of the burstable VMs of a type that are there, all together, as last \
             reported; one is a vCPU-minute.",
            credits.iter().map(|(kind, (all, _))| of_type(kind.as_str(), *all)),
        ),
        gauges(
            "credits_lowest",
            "CPU credits of the burstable VM of a type that has the fewest, as last reported.",
            credits.iter().map(|(kind, (_, lowest))| of_type(kind.as_str(), *lowest)),
        ),
    ]
}

fn act_families(of: &RunMetrics) -> Vec<MetricFamily> {
    let (fleet, work, counts) = (&of.fleet, &of.work, &of.record.counts);
    let decisions = of.decisions.iter().map(|(kind, n)| (labels([("decision", kind)]), *n));
    vec![
        counter("hibernations", "VMs that the provider froze.", counts.hibernations.into()),
        counter("resumes", "VMs that the provider thawed.", counts.resumes.into()),
        counter("preemptions", "VMs that the provider took for good.", counts.preemptions.into()),
        counter("rebalances", "Recommendations of the provider to replace a VM.", fleet.rebalances),
        counter(
            "migrations",
            "Tasks that were sent to another VM than the one on which they ran last, and jobs that moved \
             to other processors.",
            work.migrations,
        ),
        counter("steals", "Tasks that an idle VM took over.", work.steals),
        counter("swaps", "Jobs that came to the foreground where they were.", work.swaps),
        counter(
            "kills",
            "Jobs that were killed in the background and started again in the foreground.",
            work.kills,
        ),
        counters("decisions", "Decisions of the schedulers, by kind.", decisions),
        counter(
            "decisions_rejected",
            "Decisions that asked for something impossible: bugs of a scheduler.",
            counts.rejected.into(),
        ),
        counter(
            "decisions_moot",
            "Decisions that were overtaken by what their scheduler had yet to hear.",
            of.moot,
        ),
        counter("events_stale", "Events that were dropped as out of date.", of.stale),
    ]
}

fn measured_families(of: &RunMetrics) -> Vec<MetricFamily> {
    let it = &of.measured;
    let seconds = |name, help, of: &BucketHistogram| histogram(name, "seconds", help, of.counted());
    let of_host = |us: fn(&super::measured::ReportedShare) -> u64| {
        it.shares.iter().map(move |(host, share)| {
            let host = host.get().to_string();
            (labels([("host", &host)]), us(share) as f64 / 1e6)
        })
    };
    let cpu = |name, help, values: Vec<(Labels, f64)>| MetricFamily {
        name,
        help,
        unit: Some("seconds"),
        samples: FamilySamples::Counter(values),
    };
    let one = |took: std::time::Duration| vec![(Labels::new(), took.as_secs_f64())];
    vec![
        histogram(
            "checkpoint_size",
            "bytes",
            "Sizes of the checkpoints that were stored.",
            it.checkpoint_bytes.counted(),
        ),
        seconds(
            "checkpoint_hold",
            "How long a task was stopped for a checkpoint, real time; zero in virtual time.",
            &it.checkpoint_hold,
        ),
        seconds(
            "checkpoint_dump",
            "How long CRIU took for a checkpoint, real time; zero in virtual time.",
            &it.checkpoint_dump,
        ),
        counter("checkpoints_failed", "Checkpoints that failed.", it.checkpoints_failed),
        counter("restores", "Starts that went on from a checkpoint.", of.work.restores),
        seconds(
            "restore",
            "Time from the command to a restored task's first instruction, real time.",
            &it.restore,
        ),
        counter(
            "restore_failures",
            "Checkpoints that could not be restored where they were to be: an older one was, or the \
             task began anew.",
            it.restore_failures,
        ),
        seconds(
            "task_start",
            "Time from the command to the first instruction of a task that begins anew, real time.",
            &it.task_start,
        ),
        seconds("vm_freeze", "Time from the command until a VM was frozen, real time.", &it.freeze),
        seconds("vm_thaw", "Time from the command until a VM ran again, real time.", &it.thaw),
        histogram(
            "task_time_error",
            "ratio",
            "Error of the time that a finished task took, as a part of what its VM promised, without \
             its sign; live runs alone.",
            it.task_error.counted(),
        ),
        cpu(
            "task_promised",
            "Time that finished tasks should have taken as their VMs promised, real time.",
            one(it.task_promised),
        ),
        cpu("task_took", "Time that finished tasks took, real time.", one(it.task_took)),
        seconds(
            "job_lateness",
            "How much later or earlier than due a parallel job ended, real time.",
            &it.job_lateness,
        ),
        histogram(
            "vm_share_error",
            "ratio",
            "Error of the CPU time that a VM got by its end, as a part of what it was promised, \
             without its sign; live runs alone.",
            it.share_error.counted(),
        ),
        cpu(
            "host_cpu_promised",
            "CPU time that a host promised its VMs, as they last reported.",
            of_host(|share| share.promised_us).collect(),
        ),
        cpu(
            "host_cpu_received",
            "CPU time that the VMs of a host got, as they last reported.",
            of_host(|share| share.received_us).collect(),
        ),
    ]
}

fn outage_families(of: &RunMetrics) -> Vec<MetricFamily> {
    vec![
        counter(
            "coordinator_resumes",
            "How often the run was resumed from its log.",
            of.coordinator_resumes,
        ),
        MetricFamily {
            name: "coordinator_away",
            help: "Time without a coordinator before the run was resumed, real time.",
            unit: Some("seconds"),
            samples: FamilySamples::Counter(vec![(Labels::new(), of.away_us as f64 / 1e6)]),
        },
    ]
}

/// Metrics of the coordinator that are not in the log.
pub(super) fn coordinator(beside: &UnloggedFacts<'_>) -> Vec<MetricFamily> {
    let help = "Whether a coordinator conducts the run now.";
    let mut all = vec![gauge("coordinator_up", help, flag(beside.serves))];
    let Some(vitals) = beside.vitals else { return all };
    let sessions: Vec<_> = vitals
        .session_vitals()
        .into_iter()
        .map(|it| {
            let host = it.host.get().to_string();
            (labels([("host", &host), ("worker", &it.worker)]), it.connected, it.silent)
        })
        .collect();
    let connected = sessions.iter().map(|(of, since, _)| (of.clone(), flag(since.is_some())));
    let ages = sessions
        .iter()
        .filter_map(|(of, connected, _)| Some((of.clone(), connected.as_ref()?.as_secs_f64())));
    let silence = sessions.iter().map(|(of, _, silent)| (of.clone(), silent.as_secs_f64()));
    all.extend([
        histogram(
            "journal_write",
            "seconds",
            "Time from a step's making until it was durable, for the first step of each write, real \
             time.",
            vitals.journal_delays().into(),
        ),
        histogram(
            "clock_lateness",
            "seconds",
            "How late the clock's alarm rang, real time.",
            vitals.clock_lateness().into(),
        ),
        gauges("session_connected", "Whether a worker that is there is connected.", connected),
        gauges("session_age", "How long a worker's connection has been there, real time.", ages)
            .in_unit("seconds"),
        gauges("session_silence", "How long nothing was heard of a worker, real time.", silence)
            .in_unit("seconds"),
    ]);
    all
}
