//! Tests that compare the metrics of whole runs in virtual time with other results from the same steps.

use std::collections::BTreeMap;

use dormouse_analysis::{RunMode, RunRecord};
use dormouse_coordinator::CoordinatorVitals;
use dormouse_experiment::{ExperimentSource, LoadedExperiment, open};
use dormouse_model::{Effect, Event, Report, Step};
use dormouse_report::output::{LogHeader, RunLog};
use dormouse_report::replay::play;
use dormouse_units::{HostId, Time};

use super::{MetricFormat, RunMetrics, RunName, UnloggedFacts};

/// An experiment with tasks on spot VMs of two types that hibernate, resume and are preempted while credits are spent.
const BAG: &str = r#"name = "bag"
seed = 3
[cloud]
catalogue = "ec2-2020"
[[interruption]]
model = "schedule"
acts = [
    { at = "400s", action = "hibernate", type = "c3.large" },
    { at = "900s", action = "resume", type = "c3.large" },
    { at = "1000s", action = "preempt", vm = 0 },
]
[workload]
kind = "bag"
name = "j60"
deadline = "45m"
[scheduler]
name = "burst-hads"
"#;

fn header_of(experiment: &str) -> LogHeader {
    let source = ExperimentSource { experiment: Some(experiment), ..ExperimentSource::default() };
    let LoadedExperiment { experiment, .. } = open(&source).expect("a good experiment");
    LogHeader::new(RunMode::Virtual, String::new(), experiment)
}

fn header_of_text(text: &str) -> LogHeader {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("experiment.toml");
    std::fs::write(&file, text).expect("room");
    header_of(file.to_str().expect("plain"))
}

fn metrics_of(header: &LogHeader) -> RunMetrics {
    let experiment = &header.experiment;
    let name = RunName {
        run: "r-1".to_owned(),
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler_name(),
        mode: header.mode,
        speedup: header.live_speedup(),
    };
    RunMetrics::new(name, &experiment.whole_setup(), experiment.tenants())
}

fn steps_of(header: &LogHeader) -> Vec<Step> {
    let mut steps = Vec::new();
    let log = RunLog { header: header.clone(), steps: None, torn: false };
    play(&log, |step| steps.push(step.clone())).expect("it can be played");
    steps
}

/// The samples of an exposition, by name and labels.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

fn read(metrics: &RunMetrics) -> BTreeMap<String, f64> {
    samples(&metrics.exposition(MetricFormat::Plain, &UnloggedFacts::default()))
}

/// Sum over the samples of a family whose labels hold this text.
fn sum(of: &BTreeMap<String, f64>, family: &str, label: &str) -> f64 {
    let of_family = of.iter().filter(|(name, _)| name.split('{').next() == Some(family));
    of_family.filter(|(name, _)| name.contains(label)).map(|(_, value)| value).sum()
}

fn vms_of(record: &RunRecord, market: &str, state: &str) -> f64 {
    let is_so = |vm: &&dormouse_analysis::VmHistory| {
        let last = vm.hibernations.last();
        let frozen = last.is_some_and(|h| h.resumed.is_none());
        let is = match state {
            "booting" => vm.ready.is_none(),
            "hibernated" => frozen,
            _ => vm.ready.is_some() && !frozen,
        };
        vm.ended.is_none() && super::fleet::market_word(vm.market) == market && is
    };
    record.vms.values().filter(is_so).count() as f64
}

#[test]
fn a_bag_counts_as_its_record_does() {
    let header = header_of_text(BAG);
    let (mut metrics, mut record) = (metrics_of(&header), header.record());
    let mut hibernated_at_most = 0.0_f64;
    for step in steps_of(&header) {
        metrics.see(&step);
        record.see(&step);
        let seen = read(&metrics);
        let tasks = |state: &str| sum(&seen, "dormouse_tasks", &format!("state=\"{state}\""));
        let open = record.tasks.iter().filter_map(|task| task.attempts.last());
        let open = open.filter(|attempt| attempt.ended.is_none()).count() as f64;
        let finished = record.finished() as f64;
        let at = format!("step {} at {}: {:?}", step.seq, step.at, step.event);
        assert_eq!((tasks("running"), tasks("done")), (open, finished), "{at}");
        assert_eq!(tasks("waiting"), record.tasks.len() as f64 - open - finished, "{at}");
        for market in ["spot", "on-demand"] {
            let vms = |state: &str| {
                seen[&format!("dormouse_vms{{market=\"{market}\",state=\"{state}\"}}")]
            };
            assert_eq!(vms("booting"), vms_of(&record, market, "booting"), "{at}");
            let frozen = vms("hibernated") + vms("resuming");
            assert_eq!(frozen, vms_of(&record, market, "hibernated"), "{at}");
            let there = vms("running") + vms("notice") + vms("hibernating");
            assert_eq!(there, vms_of(&record, market, "running"), "{at}");
            hibernated_at_most = hibernated_at_most.max(vms("hibernated"));
        }
    }
    assert!(hibernated_at_most > 0.0, "nothing ever hibernated");
    let (seen, counts) = (read(&metrics), &record.counts);
    for (name, count) in [
        ("hibernations", counts.hibernations),
        ("resumes", counts.resumes),
        ("preemptions", counts.preemptions),
        ("migrations", counts.migrations),
        ("steals", counts.steals),
        ("restores", counts.restores),
        ("launches_refused", counts.launches_refused),
        ("decisions_rejected", counts.rejected),
        ("checkpoints_failed", counts.checkpoints_failed),
    ] {
        assert_eq!(seen[&format!("dormouse_{name}_total")], f64::from(count), "{name}");
    }
    let checkpoints = seen["dormouse_checkpoint_size_bytes_count"];
    assert_eq!(checkpoints, f64::from(counts.checkpoints));
    assert_eq!(sum(&seen, "dormouse_vms_launched_total", ""), f64::from(counts.vms_launched));
    assert_eq!(sum(&seen, "dormouse_decisions_total", ""), record.decisions as f64);
    assert!((seen["dormouse_cost_usd"] - record.cost().as_usd()).abs() < 1e-9);
    assert_eq!(seen["dormouse_events_total"], record.steps as f64);
    assert_eq!(seen["dormouse_clock_seconds"], record.now.as_secs_f64());
    assert_eq!(seen["dormouse_run_complete"], 1.0);
    for happened in ["hibernations", "preemptions", "migrations", "restores"] {
        assert!(seen[&format!("dormouse_{happened}_total")] > 0.0, "no {happened}: {seen:#?}");
    }
    assert!(checkpoints > 0.0 && sum(&seen, "dormouse_credits", "") >= 0.0);
}

#[test]
fn what_is_owed_grows_between_steps_as_its_rate_says() {
    let header = header_of_text(BAG);
    let mut metrics = metrics_of(&header);
    let steps = steps_of(&header);
    let half = steps.len() / 2;
    steps[..half].iter().for_each(|step| metrics.see(step));
    let at =
        |secs: u64| {
            let now = Some(metrics.now + dormouse_units::Span::from_secs(secs));
            samples(&metrics.exposition(
                MetricFormat::Plain,
                &UnloggedFacts { now, ..UnloggedFacts::default() },
            ))
        };
    let (now, later) = (at(0), at(360));
    let rate = now["dormouse_cost_rate_usd_per_hour"];
    let grown = later["dormouse_cost_usd"] - now["dormouse_cost_usd"];
    assert!(rate > 0.0 && (grown - rate / 10.0).abs() < 1e-9, "{grown} at {rate}");
    let earlier = UnloggedFacts { now: Some(Time::ZERO), ..UnloggedFacts::default() };
    let earlier = samples(&metrics.exposition(MetricFormat::Plain, &earlier));
    assert_eq!(earlier["dormouse_clock_seconds"], now["dormouse_clock_seconds"], "it ran back");
}

#[test]
fn parallel_jobs_are_counted_and_forgotten() {
    let header = header_of("batch-small");
    let mut metrics = metrics_of(&header);
    let (mut submitted, mut finished, mut most) = (0.0, 0.0, 0.0_f64);
    for step in steps_of(&header) {
        metrics.see(&step);
        let is_stale = step.effects.contains(&Effect::Stale);
        submitted +=
            f64::from(u8::from(matches!(step.event, Event::Submitted { .. }) && !is_stale));
        let is_end = matches!(
            step.event,
            Event::Machine { report: Report::TaskFinished { verified: true, .. }, .. }
        );
        finished += f64::from(u8::from(is_end && !is_stale));
        let seen = read(&metrics);
        let jobs = |state: &str| seen[&format!("dormouse_tasks{{kind=\"job\",state=\"{state}\"}}")];
        let all = jobs("waiting") + jobs("running") + jobs("done");
        assert_eq!((all, jobs("done")), (submitted, finished), "step {}", step.seq);
        most = most.max(jobs("running"));
    }
    assert!(most > 1.0 && submitted > 10.0 && finished == submitted, "{most} of {submitted}");
}

#[test]
fn requests_come_to_their_ends() {
    let header = header_of("provider-testbed");
    let mut metrics = metrics_of(&header);
    steps_of(&header).iter().for_each(|step| metrics.see(step));
    let seen = read(&metrics);
    let requested = seen["dormouse_requests_total"];
    assert!(requested > 10.0, "{requested}");
    assert_eq!(sum(&seen, "dormouse_requests_ended_total", ""), requested);
    assert_eq!(seen["dormouse_requests_open"], 0.0);
    assert_eq!(sum(&seen, "dormouse_vms", ""), 0.0, "no VM is left");
    assert!(seen["dormouse_cost_usd"] > 0.0);
}

/// An exposition with every metric family: of a bag beside requests, with a coordinator in this process.
fn everything() -> String {
    let header = header_of("provider-j60");
    let mut metrics = metrics_of(&header);
    metrics.name.speedup = Some(30.0);
    let vitals = CoordinatorVitals::default();
    metrics.exposition(
        MetricFormat::Plain,
        &UnloggedFacts { serves: true, now: None, vitals: Some(&vitals) },
    )
}

/// A line of the page for each family: its name, type and meaning.
fn rows(exposition: &str) -> Vec<String> {
    let mut help = BTreeMap::new();
    let mut rows = Vec::new();
    for line in exposition.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help.extend(said.split_once(' '));
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|said| said.split_once(' '))
        {
            rows.push(format!("| `{name}` | {kind} | {} |", help[name]));
        }
    }
    rows
}

#[test]
fn the_page_has_every_metric() {
    let page = include_str!("../../../../docs/metrics.md");
    let told: Vec<&str> = page.lines().filter(|line| line.starts_with("| `dormouse_")).collect();
    let there = rows(&everything());
    assert!(there.len() > 50, "{there:#?}");
    assert_eq!(told, there, "docs/metrics.md; its table should be:\n{}", there.join("\n"));
}

/// Names of series in a text, in the order of their first mention.
fn named(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_part(c));
    words.filter(|word| word.starts_with("dormouse_")).map(str::to_owned).collect()
}

/// All names of series that an exposition may have.
fn series_of(exposition: &str) -> Vec<String> {
    let types = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .flat_map(|said| match said.split_once(' ') {
            Some((name, "histogram")) => {
                ["_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}")).to_vec()
            }
            Some((name, _)) => vec![name.to_owned()],
            None => Vec::new(),
        })
        .collect()
}

#[test]
fn dashboard_and_alerts_name_only_what_there_is() {
    let there = series_of(&everything());
    let dashboard = include_str!("../../grafana/dormouse.json");
    let rules = include_str!("../../prometheus/dormouse-rules.yml");
    for (file, text) in [("dormouse.json", dashboard), ("dormouse-rules.yml", rules)] {
        let named = named(text);
        assert!(named.len() > 5, "{file} names {named:?}");
        let unknown: Vec<_> = named.iter().filter(|name| !there.contains(name)).collect();
        assert!(unknown.is_empty(), "{file} names what there is not: {unknown:?}");
    }
    // Every family is on the dashboard.
    let named = named(dashboard);
    let families = rows(&everything());
    let family = |row: &String| row.split('`').nth(1).unwrap_or_default().to_owned();
    let missing: Vec<_> = families
        .iter()
        .map(family)
        .filter(|family| !named.iter().any(|name| name.starts_with(family.as_str())))
        .collect();
    assert!(missing.is_empty(), "not on the dashboard: {missing:?}");
}

#[test]
fn the_dashboard_is_whole() {
    use serde_json::Value;
    let text = include_str!("../../grafana/dormouse.json");
    let dashboard: Value = serde_json::from_str(text).expect("JSON");
    assert!(dashboard["id"].is_null() && dashboard["schemaVersion"].as_u64() >= Some(39));
    let variables: Vec<_> = dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
        .iter()
        .map(|it| it["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(variables, ["datasource", "instance"]);
    let panels = dashboard["panels"].as_array().expect("panels");
    let (mut ids, mut taken) = (Vec::new(), BTreeMap::new());
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(!title.is_empty());
        ids.push(panel["id"].as_u64().expect("a number"));
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a number"));
        assert!(x + w <= 24 && w > 0 && h > 0, "{title} is beyond the grid");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            let other = taken.insert(cell, title);
            assert_eq!(other, None, "{title} lies on another panel at {cell:?}");
        }
        // What Grafana has in itself.
        let kind = panel["type"].as_str().expect("a type");
        assert!(["row", "stat", "timeseries"].contains(&kind), "{title} is a {kind}");
        if kind == "row" {
            continue;
        }
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{title}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
        let targets = panel["targets"].as_array().expect("targets");
        assert!(!targets.is_empty(), "{title} shows nothing");
        for target in targets {
            let expression = target["expr"].as_str().expect("an expression");
            assert!(expression.contains("instance=\"$instance\""), "{expression}");
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
        }
    }
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert!(ids.len() == all && all > 30, "{ids:?}");
}

#[test]
fn only_what_a_coordinator_knows_is_said_before_a_run() {
    let vitals = CoordinatorVitals::default();
    let beside = UnloggedFacts { serves: true, now: None, vitals: Some(&vitals) };
    let seen = samples(&RunMetrics::before(MetricFormat::Plain, &beside));
    assert_eq!(seen["dormouse_coordinator_up"], 1.0);
    assert_eq!(seen["dormouse_journal_write_seconds_count"], 0.0);
    assert!(!seen.keys().any(|name| name.starts_with("dormouse_tasks")));
}

#[test]
fn shares_add_up_by_host_whatever_vms_come_and_go() {
    let header = header_of_text(BAG);
    let mut metrics = metrics_of(&header);
    let share = |host: u32, vm: u32, promised: u64, received: u64| {
        let report = Report::Share {
            vm: dormouse_units::VmId::new(vm),
            real_promised_us: promised * 1_000_000,
            real_received_us: received * 1_000_000,
        };
        let event = Event::Machine { host: HostId::new(host), number: 1, report };
        Step { event, ..Step::blank() }
    };
    let gone = |host: u32, vm: u32| {
        let report = Report::VmDestroyed { vm: dormouse_units::VmId::new(vm) };
        Step {
            event: Event::Machine { host: HostId::new(host), number: 1, report },
            ..Step::blank()
        }
    };
    for step in [
        share(0, 1, 10, 9),
        share(0, 1, 20, 18),
        share(0, 2, 5, 5),
        share(1, 3, 7, 8),
        gone(0, 1),
        gone(0, 2),
    ] {
        metrics.see(&step);
    }
    let seen = read(&metrics);
    let of = |what: &str, host: u32| {
        seen[&format!("dormouse_host_cpu_{what}_seconds_total{{host=\"{host}\"}}")]
    };
    assert_eq!((of("promised", 0), of("received", 0)), (25.0, 23.0));
    assert_eq!((of("promised", 1), of("received", 1)), (7.0, 8.0));
    assert_eq!(seen["dormouse_vm_share_error_ratio_count"], 2.0);
    assert!((seen["dormouse_vm_share_error_ratio_sum"] - 0.1).abs() < 1e-12);
}
