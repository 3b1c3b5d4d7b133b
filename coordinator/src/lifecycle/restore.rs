//! Rebuilds a run from its log, to resume it after its coordinator was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dormouse_analysis::{Evidence, LiveFacts};
use dormouse_engine::Run;
use dormouse_engine::drive::WaitingFollowers;
use dormouse_log::{HeaderText, LogReader, check_seal};
use dormouse_model::{AttemptEnds, Event, ProgramAttemptEnd, Report, Submission, VmRequest};
use dormouse_units::{Bytes, HostId, Ppm, Speedup, Time};
use serde_json::Value;

use crate::CoordinatorError;
use crate::admission::{self, WorkerOffer};
use crate::conductor::RestoredHost;
use crate::conductor::outstanding::Outstanding;
use crate::conductor::roster::parse_host_name;
use crate::log::replay::{next_step, replay_step};
use crate::messages::outside::JobIntake;
use crate::protocol::announce::list_announcements;
use crate::time::outage::ClockAnchor;

/// State of a run restored from its log.
#[derive(Debug)]
pub(crate) struct RestoredRun {
    pub(crate) run_name: String,
    pub(crate) run: Run,
    pub(crate) facts: LiveFacts,
    pub(crate) evidence: Evidence,
    /// Ends of users' own programs.
    pub(crate) ends: Vec<ProgramAttemptEnd>,
    pub(crate) answer_seed: u64,
    pub(crate) hosts: Vec<RestoredHost>,
    /// Commands in the log that hosts haven't answered.
    pub(crate) outstanding: Outstanding,
    /// Host and number of each report that a crash separated from its account of CPU time, which is in the log.
    pub(crate) parted: BTreeSet<(HostId, u64)>,
    pub(crate) begun: bool,
    pub(crate) last: Time,
    /// Last recorded relation of the run's clock to the wall clock; `None`: the log has none.
    pub(crate) anchor: Option<ClockAnchor>,
    /// Number of the experiment's faults that were injected.
    pub(crate) faults_asked: usize,
    /// Jobs submitted so far, and whether more may come from outside.
    pub(crate) door: JobIntake,
    /// Jobs that follow others and aren't submitted yet.
    pub(crate) followers: WaitingFollowers,
    pub(crate) good_bytes: u64,
}

impl RestoredRun {
    /// Makes the state of a run without a log.
    pub(crate) fn empty_state(
        (run, evidence, answer_seed): (Run, Evidence, u64),
        (followers, door): (WaitingFollowers, JobIntake),
        outstanding: Outstanding,
    ) -> Self {
        Self {
            run_name: String::new(),
            run,
            facts: LiveFacts::default(),
            evidence,
            ends: Vec::new(),
            answer_seed,
            hosts: Vec::new(),
            outstanding,
            parted: BTreeSet::new(),
            begun: false,
            last: Time::ZERO,
            anchor: None,
            faults_asked: 0,
            door,
            followers,
            good_bytes: 0,
        }
    }
}

/// Restores a run from its log.
pub(crate) fn restore_run(
    path: &Path,
    header: &HeaderText,
    speedup: Speedup,
    (submissions, requests): (&[Submission], &[(Time, VmRequest)]),
    (mut followers, mut door): (WaitingFollowers, JobIntake),
    mut outstanding: Outstanding,
    (mut run, (announces, has_cells)): (Run, (bool, bool)),
) -> Result<RestoredRun, CoordinatorError> {
    let refuse = |why: String| CoordinatorError::Resume { path: path.to_owned(), why };
    // What was changed would be taken for what happened.
    check_seal(path)?;
    let mut log = LogReader::open_sealed(path)?;
    let now = header.to_value().map_err(|error| {
        refuse(format!(
            "this experiment's header can't be written: {error}; nest its keys less deeply"
        ))
    })?;
    let live = same_run(log.header(), &now).map_err(refuse)?;
    run.setup().check_counts().map_err(|why| log.damaged(why))?;
    let run_name = live.get("run").and_then(Value::as_str).unwrap_or_default().to_owned();
    let share = live.get("share_ppm").and_then(Value::as_u64).and_then(|s| u32::try_from(s).ok());
    let was = live.get("emulated_us_per_second").and_then(Value::as_u64);
    let (Some(share), Some(was)) = (share, was) else {
        return Err(refuse("its header lacks `live.share_ppm` or `live.emulated_us_per_second`; put back the log as the run left it".to_owned()));
    };
    if was != speedup.emulated_us_per_second() {
        let was = Speedup::from_emulated_us_per_second(was).map_or(0.0, Speedup::as_f64);
        let now = speedup.as_f64();
        return Err(refuse(format!("it ran at speed-up {was}, not {now}: use --speedup {was}")));
    }
    let mut facts = LiveFacts { share: Ppm::new(share), ..LiveFacts::default() };
    facts.cpu_us = admission::cpu_times(run.setup(), facts.share, speedup);
    let mut evidence = Evidence::new(run.setup(), speedup);
    let (mut seen_ends, mut ends) = (AttemptEnds::default(), Vec::new());
    let seed = live.get("answer_seed").and_then(Value::as_str);
    // The log of an older version has none: its tasks had no nonce.
    let answer_seed = seed.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or_default();
    let mut hosts: BTreeMap<HostId, RestoredHost> = BTreeMap::new();
    let (mut begun, mut last, mut anchor) = (false, Time::ZERO, None);
    let mut faults_asked = 0;
    let mut never_had_hosts = false;
    let mut parted = BTreeSet::new();
    while let Some(step) = next_step(&mut log)? {
        if let Some(why) = run.failure_reason() {
            return Err(CoordinatorError::Scheduler { why: why.to_owned() });
        }
        if hosts.is_empty() && matches!(step.event, Event::Cancel { .. }) {
            // It was ended before it had hosts: nothing was decided, and it begins anew.
            never_had_hosts = true;
            break;
        }
        let number = log.line();
        let (step, commands) = replay_step(&mut run, step, &log).map_err(|difference| {
            refuse(format!(
                "line {number} is decided differently by this version, as {}; use the version that \
                 wrote the log",
                difference.replayed
            ))
        })?;
        match &step.event {
            Event::Submitted { key, job, .. } => {
                let is_known = match (key, &job.after) {
                    (Some(_), _) => true,
                    (None, Some(_)) => followers.take_again(job),
                    (None, None) => submissions.get(door.own) == Some(&**job),
                };
                if !is_known {
                    let number = job.number;
                    return Err(refuse(format!(
                        "line {}: job {number} has changed since; resume it with the jobs it began with",
                        log.line()
                    )));
                }
                if key.is_some() || job.after.is_none() {
                    door.note_submitted(key.as_ref(), job);
                }
            }
            Event::Requested { request, asks } => {
                let own = requests.get(request.get() as usize);
                if own.is_none_or(|(at, own)| own != asks || *at > step.at) {
                    return Err(refuse(format!(
                        "line {number}: request {request} has changed since; resume it with the \
                         requests it began with"
                    )));
                }
            }
            Event::Closed => door.is_open = false,
            Event::HostJoined { host, name, .. } => {
                let (worker, incarnation) = parse_host_name(name).ok_or_else(|| {
                    refuse(format!("line {number}: '{name}' is not a worker's name and session, such as w1@0000000000000001; put back the log as the run left it"))
                })?;
                // What it offers is settled; its cores and memory are asked for no more.
                let room =
                    WorkerOffer { name: worker.to_owned(), millicores: 0, memory: Bytes::ZERO };
                hosts.insert(
                    *host,
                    RestoredHost {
                        host: *host,
                        worker: worker.to_owned(),
                        incarnation,
                        room,
                        lost: None,
                        // Its Ready, which this event stands for.
                        heard: [1].into(),
                    },
                );
            }
            Event::HostLost { host, why, .. } => {
                if let Some(host) = hosts.get_mut(host) {
                    host.lost = Some(why.clone());
                }
                outstanding.forget(*host);
            }
            // An account is a line of its own, before the report that it came with.
            Event::Machine {
                host,
                number,
                report: Report::Ledger { .. } | Report::JobAccount { .. },
            } => drop(parted.insert((*host, *number))),
            Event::Machine { host, number, report, .. } => {
                parted.remove(&(*host, *number));
                // Where an attempt began is not in the log.
                outstanding.heard(*host, report, None, step.at);
                if let Report::VmDestroyed { vm } = report {
                    outstanding.destroyed(*host, *vm);
                }
                if let Some(host) = hosts.get_mut(host) {
                    host.heard.insert(*number);
                }
            }
            Event::FaultFelt { host, number, .. } | Event::HostLoad { host, number, .. } => {
                if let Some(host) = hosts.get_mut(host) {
                    host.heard.insert(*number);
                }
            }
            Event::Fault { .. } => faults_asked += 1,
            Event::Begin => begun = true,
            Event::Clock { .. } => anchor = ClockAnchor::from_event(&step.event),
            Event::Tick
            | Event::AllSubmitted
            | Event::Called { .. }
            | Event::AllRequested
            | Event::InstantOver
            | Event::Interrupt { .. }
            | Event::Disbelieved { .. }
            | Event::JailLacking { .. }
            | Event::SpotCheck { .. }
            | Event::CoordinatorLoad { .. }
            | Event::Cancel { .. }
            | Event::Resumed { .. } => {}
        }
        let announced = if announces {
            list_announcements(step.at, &step.notices, has_cells, |vm| {
                Some(run.provider().find_vm(vm)?.host)
            })
        } else {
            Vec::new()
        };
        let end = seen_ends.take_step(&step);
        end.iter().for_each(|end| outstanding.assignments().handed().take_end(end));
        ends.extend(end);
        outstanding.told(announced.into_iter().chain(commands), step.at, &run);
        facts.see(&step);
        evidence.see(run.setup(), &step);
        followers.take_step(&step);
        last = step.at;
    }
    if let Some(why) = run.failure_reason() {
        return Err(CoordinatorError::Scheduler { why: why.to_owned() });
    }
    // The seal of a run that has begun says so before a worker is told anything (`JournalBatch::write`): what is damaged is
    // not begun again, as if it never had.
    if !begun
        && !never_had_hosts
        && let Some(why) = log.lost_lines()
    {
        let why = format!("{why}, so that it may have begun; nothing of it was changed");
        return Err(log.damaged(why).into());
    }
    if run.over_at().is_some() {
        // Its workers had their time to clean up with the coordinator that saw its end.
        outstanding.give_up_vms();
    }
    let (hosts, good_bytes) = (hosts.into_values().collect(), log.good_bytes());
    Ok(RestoredRun {
        run_name,
        run,
        facts,
        evidence,
        ends,
        answer_seed,
        hosts,
        outstanding,
        parted,
        begun,
        last,
        anchor,
        faults_asked,
        door,
        followers,
        good_bytes,
    })
}

/// Returns the live part of a log's header, if the rest is equal to this run's header.
fn same_run<'a>(logged: &'a Value, header: &Value) -> Result<&'a Value, String> {
    let live = logged
        .get("live")
        .ok_or("it is the log of a virtual run; only a live run can be resumed")?;
    let other = |key: &str| {
        format!(
            "its header differs in '{key}': it is the log of another run; resume it with the experiment it began with"
        )
    };
    let (Some(was), Some(now)) = (logged.as_object(), header.as_object()) else {
        return Err(
            "its first line is not the header of a run; put back the log as the run left it"
                .to_owned(),
        );
    };
    if let Some((key, _)) = now.iter().find(|(key, value)| was.get(*key) != Some(*value)) {
        return Err(other(key));
    }
    let extra = was.keys().find(|key| *key != "live" && !now.contains_key(*key));
    extra.map_or(Ok(live), |key| Err(other(key)))
}
