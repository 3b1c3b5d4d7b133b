//! A run that is followed: its picture up to the last step read from its log, and the state of its coordinator.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dormouse_analysis::RunMode;
use dormouse_coordinator::CoordinatorVitals;
use dormouse_model::Step;
use dormouse_proto::v1;
use dormouse_report::output::LogHeader;
use dormouse_units::{Speedup, Time};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::about;
use crate::metrics::{MetricFormat, RunMetrics, RunName, UnloggedFacts};
use crate::picture::RunPicture;

/// State of a run's coordinator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CoordinatorState {
    /// A coordinator serves the run.
    Serving,
    /// No coordinator serves the run although it is not over, or the run is virtual.
    #[default]
    Away,
    /// The run is over.
    Over,
}

/// A run that is followed, shared by all pages that show it.
#[derive(Debug)]
pub struct FollowedRun {
    folder: PathBuf,
    vitals: Option<CoordinatorVitals>,
    state: Mutex<FollowedState>,
    grown: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct FollowedState {
    header: Option<LogHeader>,
    /// The part of the answer to `/api/run` that does not change during the run.
    about: Value,
    run: String,
    picture: Option<RunPicture>,
    metrics: Option<RunMetrics>,
    /// Inode of the log's file; `None` until the log was found.
    inode: Option<u64>,
    /// Offset in the log, in bytes, at which each event begins; empty if the events are not in the log.
    lines: Vec<u64>,
    /// Offset in the log, in bytes, at which the next event begins.
    read: u64,
    events: u64,
    standing: CoordinatorState,
    /// Time of the coordinator's clock, with the instant at which it was read; `None` until it was read.
    clock: Option<(Time, Instant)>,
    trouble: Option<String>,
    /// Condition that the run waits for before it continues; `None` if it does not wait.
    waits: Option<String>,
    /// Verdict on a live run that is over, with its reasons; `None` for any other run.
    verdict: Option<Value>,
}

impl FollowedRun {
    /// A run in this folder, before anything of its log is read. `vitals` are the coordinator's own figures, if the
    /// coordinator is this process.
    #[must_use]
    pub fn new(folder: PathBuf, vitals: Option<CoordinatorVitals>) -> Self {
        Self { folder, vitals, state: Mutex::default(), grown: watch::Sender::new(0) }
    }

    fn lock_state(&self) -> MutexGuard<'_, FollowedState> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn header(&self) -> Option<LogHeader> {
        self.lock_state().header.clone()
    }

    /// Number of events that have been read.
    pub(crate) fn events(&self) -> u64 {
        self.lock_state().events
    }

    /// Offset in the log of the first event that has not been read.
    pub(crate) fn read_so_far(&self) -> u64 {
        self.lock_state().read
    }

    /// Notes the inode of the log's file.
    pub(crate) fn has_log(&self, inode: u64) {
        self.lock_state().inode = Some(inode);
    }

    /// Whether everything read so far is from the log file with this inode.
    pub(crate) fn is_of(&self, inode: u64) -> bool {
        self.lock_state().inode == Some(inode)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock_state().picture.as_ref().is_some_and(RunPicture::is_over)
    }

    /// Starts the run with its header, its name, and the length of the header's line in bytes.
    pub(crate) fn begin(&self, header: LogHeader, run: String, bytes: u64) {
        let experiment = &header.experiment;
        let speedup = match header.mode {
            RunMode::Live => experiment.live.speedup,
            RunMode::Virtual => Speedup::ONE,
        };
        let picture = RunPicture::new(experiment.whole_setup(), experiment.tenants(), speedup);
        let about = about::answer(&header, &run);
        let name = RunName {
            run: run.clone(),
            experiment: experiment.name.clone(),
            scheduler: experiment.scheduler_name(),
            mode: header.mode,
            speedup: header.live_speedup(),
        };
        let metrics = RunMetrics::new(name, &experiment.whole_setup(), experiment.tenants());
        *self.lock_state() = FollowedState {
            header: Some(header),
            about,
            run,
            picture: Some(picture),
            metrics: Some(metrics),
            read: bytes,
            ..FollowedState::default()
        };
        self.notify_growth();
    }

    /// Adds the next step; its line in the log has this many bytes (`None` if the step is not in the log).
    pub(crate) fn see(&self, step: &Step, bytes: Option<u64>) {
        let mut state = self.lock_state();
        let FollowedState { picture, metrics, .. } = &mut *state;
        if let (Some(picture), Some(metrics)) = (picture, metrics) {
            metrics.see(step);
            picture.see(metrics.record(), step);
        }
        if let Some(bytes) = bytes {
            let at = state.read;
            state.lines.push(at);
            state.read += bytes;
        }
        state.events += 1;
        state.trouble = None;
        drop(state);
        self.notify_growth();
    }

    pub(crate) fn stands(&self, standing: CoordinatorState) {
        let mut state = self.lock_state();
        if std::mem::replace(&mut state.standing, standing) != standing {
            drop(state);
            self.notify_growth();
        }
    }

    /// Adds the coordinator's answer about its state.
    pub(crate) fn asked(&self, status: &v1::StatusReply) {
        let shows = Time::from_micros(status.emulated_now_us);
        let mut state = self.lock_state();
        state.clock = Some((shows, Instant::now()));
        let of = status.workers_awaited;
        state.waits = (of > 0).then(|| {
            format!(
                "The run continues once its workers are back: {} of {of} are",
                status.workers_back
            )
        });
    }

    /// Notes a problem with following the run.
    pub(crate) fn trouble(&self, why: String) {
        let mut state = self.lock_state();
        if state.trouble.as_ref() != Some(&why) {
            tracing::warn!(why, "the run can't be followed at the moment");
            state.trouble = Some(why);
        }
    }

    fn notify_growth(&self) {
        self.grown.send_modify(|n| *n += 1);
    }

    /// A channel whose value changes whenever more of the run has been read.
    pub(crate) fn grown(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    /// At most `at_most` changes from index `from` on as a JSON array, with the index after the
    /// last.
    pub(crate) fn batch(&self, from: usize, at_most: usize) -> (String, usize) {
        let state = self.lock_state();
        state.picture.as_ref().map_or(("[]".to_owned(), 0), |it| it.changes().batch(from, at_most))
    }

    /// Name of the run; empty before its log begins.
    pub(crate) fn run(&self) -> String {
        self.lock_state().run.clone()
    }

    /// The answer to `/api/run`: the description of the run that does not change during the run, and whether acts on the run are
    /// allowed now.
    pub(crate) fn about(&self) -> Value {
        let state = self.lock_state();
        let mut about = state.about.clone();
        let why_not = match (&state.header, state.standing) {
            (None, _) => Some("the run has not begun: its workers are not all there"),
            (Some(header), _) if header.mode == RunMode::Virtual => {
                Some("it is a virtual run: there is nothing to act on")
            }
            (_, CoordinatorState::Over) => Some("the run is over"),
            (_, CoordinatorState::Away) => Some("no coordinator serves the run"),
            (_, CoordinatorState::Serving) => None,
        };
        if !about.is_object() {
            about = json!({ "run": "", "experiment": null });
        }
        about["may"] = json!({ "act": why_not.is_none(), "why_not": why_not });
        about
    }

    /// The present state of the run.
    pub(crate) fn now(&self) -> Value {
        let mut state = self.lock_state();
        if state.verdict.is_none() && state.picture.as_ref().is_some_and(RunPicture::is_over) {
            state.verdict = read_verdict(&self.folder);
        }
        let is_virtual = state.header.as_ref().is_some_and(|it| it.mode == RunMode::Virtual);
        let seen = state.picture.as_ref().map_or(Time::ZERO, RunPicture::now);
        let (clock, age_s) = match (state.standing, state.clock) {
            (CoordinatorState::Serving, Some((shows, at))) => {
                (shows.max(seen), at.elapsed().as_secs_f64())
            }
            _ => (seen, 0.0),
        };
        let coordinator = match state.standing {
            CoordinatorState::Serving => "serving",
            // A virtual run has no coordinator that could be away.
            CoordinatorState::Away if is_virtual => "none",
            CoordinatorState::Away => "away",
            CoordinatorState::Over => "over",
        };
        let sessions =
            self.vitals.as_ref().map(CoordinatorVitals::session_vitals).unwrap_or_default();
        let sessions: Vec<_> = sessions
            .iter()
            .map(|it| {
                json!({
                    "host": it.host, "worker": it.worker,
                    "connected_s": it.connected.map(|it| it.as_secs_f64()),
                    "silent_s": it.silent.as_secs_f64(),
                })
            })
            .collect();
        let journal = self.vitals.as_ref().map(CoordinatorVitals::journal_delays);
        let journal = journal.and_then(|it| {
            let ms = |it: std::time::Duration| it.as_secs_f64() * 1e3;
            Some(json!({ "last": ms(it.last?), "worst": ms(it.worst?) }))
        });
        let share = state.picture.as_ref().and_then(RunPicture::share_error);
        json!({
            "clock_s": clock.as_secs_f64(), "coordinator": coordinator, "real_age_s": age_s,
            "sessions": sessions, "journal_ms": journal, "share_error": share,
            "changes": state.picture.as_ref().map_or(0, |picture| picture.changes().len()),
            "events": state.events, "over": state.picture.as_ref().is_some_and(RunPicture::is_over),
            "trouble": state.trouble, "waits": state.waits, "verdict": state.verdict,
        })
    }

    /// The run's metrics in this format.
    pub(crate) fn metrics(&self, format: MetricFormat) -> String {
        let vitals = self.vitals.as_ref();
        let state = self.lock_state();
        let shown = state.clock.map(|(shows, _)| shows);
        let now = vitals.and_then(CoordinatorVitals::clock_now).or(shown);
        let serves = state.standing == CoordinatorState::Serving;
        let now = now.filter(|_| serves);
        let serves = serves || vitals.is_some_and(CoordinatorVitals::is_serving);
        let beside = UnloggedFacts { serves, now, vitals };
        match &state.metrics {
            Some(metrics) => metrics.exposition(format, &beside),
            None => RunMetrics::before(format, &beside),
        }
    }

    /// Offsets in the log at which events begin; `None` if the log has no events.
    pub(crate) fn lines(&self) -> Option<Vec<u64>> {
        let state = self.lock_state();
        (state.lines.len() as u64 == state.events).then(|| state.lines.clone())
    }
}

/// Verdict and reasons from the summary in a folder; `None` for a virtual run, or if there is no
/// summary yet.
fn read_verdict(folder: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(folder.join("summary.json")).ok()?;
    let summary: Value = serde_json::from_str(&text).ok()?;
    let fidelity = summary.get("fidelity").filter(|it| it["faithful"].is_boolean())?;
    Some(json!({ "faithful": fidelity["faithful"], "notes": fidelity["notes"] }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_that_of_the_summary_once_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_verdict(folder.path()), None);
        let write = |text: &str| std::fs::write(folder.path().join("summary.json"), text).unwrap();
        write("{\"fidelity\":null}");
        assert_eq!(read_verdict(folder.path()), None);
        write("{\"fidelity\":{\"faithful\":false,\"notes\":[\"the host was busy\"],\"other\":1}}");
        let expected = json!({ "faithful": false, "notes": ["the host was busy"] });
        assert_eq!(read_verdict(folder.path()), Some(expected));
    }
}
