//! State that survives a coordinator, and runs for which nothing can be made durable.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::*;
use dormouse_coordinator::{
    AwaitedWorkers, CoordinatorError, LiveRunPlan, RunProgress, replay_log,
};
use dormouse_proto::v1;
use dormouse_units::Span;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_coordinator_goes_on_with_what_its_workers_still_run() {
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(4, 1, dir.path())).await;
    let address = coordinator.at.address;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    let before = worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    worker.report(finished(vm, task, attempt)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    let secret = std::fs::read_to_string(dir.path().join("secret")).unwrap();
    kill(runtime).await;
    worker.disconnect();
    // Power was lost, too: half a line, which was never acted upon.
    let log = dir.path().join("events.jsonl");
    let mut file = OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"{\"seq\":99,\"at\":12").unwrap();
    drop(file);
    // Meanwhile the worker finishes what it has. It never took the last command: it comes again.
    worker.make(finished(vm, task, attempt));
    worker.taken -= 1;

    let mut again = live(4, 1, dir.path());
    (again.listen, again.resume) = (address, true);
    let coordinator = Under::start(again).await;
    // Its workers know no other.
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), secret);
    worker.connect().await.unwrap();
    let after = worker.welcome().await;
    assert_eq!((&after.run, after.host), (&before.run, before.host));
    assert_eq!(started(&worker.commands().await), (vm, task, attempt), "it comes again");
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
    assert!(done.run.tasks().iter().all(|t| t.attempt.get() == 1 && t.real_cpu_us == 11));
    assert!(done.run.over_at().unwrap() >= dormouse_units::Time::from_micros(after.now_us));
    let report = replay_log(&done.log, |_| Ok(run_again(4, 1))).unwrap();
    assert_eq!((report.difference, report.torn), (None, false));
    assert_eq!(report.decisions_sha256, done.run.digest());
    // It is over: nobody needs the secret any more, and nothing else says it.
    assert!(!dir.path().join("secret").exists());
    assert!(!std::fs::read_to_string(&log).unwrap().contains(secret.trim()));
}

/// If an older copy of the run's folder is restored, its log is intact by its seal, but workers have received more
/// commands than the log has.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_went_back_is_not_blamed_on_the_worker_that_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(4, 1, dir.path())).await;
    let address = coordinator.at.address;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    let files = ["events.jsonl", "seal.json"].map(|name| dir.path().join(name));
    // Once what it was told is sealed.
    let [log, seal] = &files;
    let length = std::fs::metadata(log).unwrap().len();
    let sealed = || std::fs::read_to_string(seal).unwrap();
    while !sealed().contains(&format!("\"bytes\": {length},")) {
        tokio::task::yield_now().await;
    }
    let copies = files.each_ref().map(|file| std::fs::read(file).unwrap());
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    worker.report(finished(vm, task, attempt)).await;
    started(&worker.commands().await);
    kill(runtime).await;
    worker.disconnect();
    for (file, copy) in files.iter().zip(&copies) {
        std::fs::write(file, copy).unwrap();
    }
    let mut again = live(4, 1, dir.path());
    (again.listen, again.resume) = (address, true);
    let coordinator = Under::start(again).await;
    worker.connect().await.unwrap();
    let said = within("a refusal", coordinator.outcome()).await.unwrap_err();
    let is_it = matches!(&said, CoordinatorError::LogWentBack { ack, said, .. } if ack > said);
    assert!(is_it && said.to_string().contains("the log is older than its run"), "{said}");
    assert_eq!(std::fs::read(log).unwrap(), copies[0], "nothing was added");
}

/// Found by the simulator: a crash can separate an attempt's account from its report, which are two lines of the log;
/// the worker sends both again, and the account was in the log twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_parted_from_its_report_is_heard_once() {
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(2, 1, dir.path())).await;
    let address = coordinator.at.address;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    let v1::report::Report::TaskFinished(mut end) = finished(vm, task, attempt) else { panic!() };
    end.ledger = Some(v1::Ledger::default());
    worker.report(v1::report::Report::TaskFinished(end)).await;
    let log = dir.path().join("events.jsonl");
    let read = || std::fs::read_to_string(&log).unwrap();
    let is_end = |line: &str| line.contains("\"task-finished\"");
    while !read().lines().any(is_end) {
        tokio::task::yield_now().await;
    }
    kill(runtime).await;
    worker.disconnect();
    let accounts = || read().lines().filter(|line| line.contains("\"ledger\"")).count();
    let text = read();
    let cut = text.find(text.lines().find(|line| is_end(line)).unwrap()).unwrap();
    OpenOptions::new().write(true).open(&log).unwrap().set_len(cut as u64).unwrap();
    assert_eq!(accounts(), 1, "the log ends with the account");
    // The seal that was written after these lines is not there either: a log without a chain may have none.
    std::fs::remove_file(dir.path().join("seal.json")).unwrap();
    let mut again = live(2, 1, dir.path());
    (again.listen, again.resume) = (address, true);
    let coordinator = Under::start(again).await;
    worker.connect().await.unwrap();
    worker.welcome().await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), accounts()), (0, 1));
    let report = replay_log(&done.log, |_| Ok(run_again(2, 1))).unwrap();
    assert_eq!((report.difference, report.torn), (None, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vms_are_charged_for_the_time_without_a_coordinator() {
    const OUTAGE: Duration = Duration::from_millis(700);
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(1, 1, dir.path())).await;
    let address = coordinator.at.address;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    kill(runtime).await;
    worker.disconnect();
    // This is the outage itself: nothing is waited for.
    tokio::time::sleep(OUTAGE).await;
    worker.make(finished(vm, task, attempt));
    let mut again = live(1, 1, dir.path());
    (again.listen, again.resume) = (address, true);
    let coordinator = Under::start(again).await;
    worker.connect().await.unwrap();
    worker.welcome().await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let [outage] = &done.facts.outages[..] else { panic!("{:?}", done.facts.outages) };
    assert!(Duration::from_micros(outage.away_real_us) >= OUTAGE, "{outage:?}");
    // At speed-up 30, and not for longer than from the beginning to the end.
    let passed = Duration::from_micros(outage.outage.as_micros());
    assert!(passed >= OUTAGE * 30 && done.run.over_at().unwrap() >= outage.at, "{outage:?}");
    let (_, vm) = done.run.provider().vms().next().unwrap();
    let there = vm.charges().iter().fold(Span::ZERO, |sum, charge| sum + charge.duration());
    assert!(Duration::from_micros(there.as_micros()) >= OUTAGE * 30, "{there}");
    let report = replay_log(&done.log, |_| Ok(run_again(1, 1))).unwrap();
    assert_eq!((report.difference, report.facts.outages.len()), (None, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_come_back_is_lost_as_of_when_the_coordinator_went() {
    const OUTAGE: Duration = Duration::from_millis(700);
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(2, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    started(&worker.commands().await);
    kill(runtime).await;
    let before = replay_log(&dir.path().join("events.jsonl"), |_| Ok(run_again(2, 1))).unwrap();
    // This is the outage itself: nothing is waited for.
    tokio::time::sleep(OUTAGE).await;
    let mut again = live(2, 1, dir.path());
    (again.resume, again.lost_after) = (true, Duration::from_millis(300));
    let coordinator = Under::start(again).await;
    let mut other = FakeWorker::new("other", &coordinator.at);
    other.join().await;
    other.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 1));
    let (lost, why) = done.facts.hosts[&dormouse_units::HostId::new(0)].lost.clone().unwrap();
    assert!(why.contains("not connected"), "{why}");
    // Nobody knows of more: no time passed, and the VM is charged up to there.
    let [outage] = &done.facts.outages[..] else { panic!("{:?}", done.facts.outages) };
    assert_eq!((outage.outage, outage.at), (Span::ZERO, lost));
    assert!(Duration::from_micros(outage.away_real_us) >= OUTAGE, "{outage:?}");
    let (_, vm) = done.run.provider().vms().next().unwrap();
    let there = vm.charges().iter().fold(Span::ZERO, |sum, charge| sum + charge.duration());
    assert!(Duration::from_micros(there.as_micros()) < OUTAGE * 30, "{there}");
    let report = replay_log(&done.log, |_| Ok(run_again(2, 1))).unwrap();
    assert_eq!((report.difference, before.difference), (None, None));
    assert!(report.steps > before.steps);
    // Its scheduler heard of it as the run went on, and not before.
    let lines = std::fs::read_to_string(&done.log).unwrap();
    let of = |what: &str| lines.lines().find(|line| line.contains(what)).unwrap().to_owned();
    assert!(!of("\"host-lost\"").contains("vm-lost"), "{lines}");
    assert!(of("\"resumed\"").contains("vm-lost"), "{lines}");
}

/// Found by the simulator: the loss of a worker that had just joined a resumed run was in no step, and the run waited
/// forever for the VMs commanded there.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_go_on_with_a_new_worker_that_is_sent_away_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(2, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    started(&worker.commands().await);
    kill(runtime).await;
    let mut again = live(2, 1, dir.path());
    (again.resume, again.lost_after) = (true, Duration::from_millis(300));
    let coordinator = Under::start(again).await;
    let mut liar = FakeWorker::new("liar", &coordinator.at);
    liar.connect().await.unwrap();
    let programs = liar.welcome().await.programs.len();
    let ready = v1::Ready { real_repetition_us: vec![0; programs] };
    liar.make(v1::report::Report::Ready(ready));
    // The VM is that of the worker before.
    liar.report(vm_created(vm)).await;
    let goodbye = liar.goodbye().await;
    assert!(goodbye.why.contains("which is on host0"), "{goodbye:?}");
    let mut other = FakeWorker::new("other", &coordinator.at);
    other.join().await;
    other.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 2));
    let report = replay_log(&done.log, |_| Ok(run_again(2, 1))).unwrap();
    assert_eq!((report.difference, report.facts.outages.len()), (None, 1));
    let hosts = done.run.provider().vms().map(|(_, vm)| vm.host.get()).collect::<Vec<_>>();
    assert_eq!(hosts, [0, 2], "no VM was ordered of who was sent away");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_only_worker_does_not_suit_it_any_more_ends_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let begun = LiveRunPlan { noop: false, ..live(2, 1, dir.path()) };
    let (runtime, coordinator) = start_apart(begun).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    started(&worker.commands().await);
    kill(runtime).await;
    let mut again = LiveRunPlan { noop: false, resume: true, ..live(2, 1, dir.path()) };
    (again.lost_after, again.hold) = (Duration::from_millis(300), Duration::from_millis(300));
    let coordinator = Under::start(again).await;
    let mut small = FakeWorker::new("small", &coordinator.at);
    small.millicores = 900;
    small.join().await;
    let goodbye = small.goodbye().await;
    assert!(goodbye.why.contains("the smallest VM has 1"), "{goodbye:?}");
    let done = coordinator.outcome().await.unwrap();
    let why = done.run.cancel_reason().unwrap_or_default();
    assert!(why.contains("nothing will ever happen again"), "{why}");
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_goes_on_waits_for_its_workers_and_shows_none_of_their_vms_until_then() {
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(1, 1, dir.path())).await;
    let address = coordinator.at.address;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    kill(runtime).await;
    worker.disconnect();
    let mut again = live(1, 1, dir.path());
    (again.listen, again.resume) = (address, true);
    let (progress, mut seen) = tokio::sync::watch::channel(RunProgress::default());
    again.observer.progress = Some(progress);
    let coordinator = Under::start(again).await;
    let waits = within("it waits", seen.wait_for(|now| now.awaited.is_some())).await.unwrap();
    assert_eq!(waits.awaited, Some(AwaitedWorkers { back: 0, of: 1 }));
    assert_eq!((waits.vms, waits.running), (0, 0));
    let stood = waits.now;
    drop(waits);
    worker.connect().await.unwrap();
    worker.welcome().await;
    let goes_on = |now: &RunProgress| now.awaited.is_none() && now.begun;
    let goes_on = *within("it goes on", seen.wait_for(goes_on)).await.unwrap();
    assert_eq!((goes_on.vms, goes_on.running), (1, 1));
    assert!(goes_on.now > stood, "{goes_on:?}");
    worker.report(finished(vm, task, attempt)).await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_stay_are_not_told_that_a_stopped_run_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = live(2, 1, dir.path());
    (first.workers_stay, first.hold) = (true, Duration::from_secs(600));
    let pause = first.pause.clone();
    let (coordinator, mut worker, welcome) = joined("w", first).await;
    assert_eq!((welcome.lost_after_ms, welcome.hold_ms), (30_000, 600_000));
    let address = coordinator.at.address;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    pause.cancel();
    assert!(matches!(worker.hear().await, Said::Ended(_)), "its connection ends without a word");
    let stopped = coordinator.outcome().await.unwrap_err();
    assert!(matches!(stopped, CoordinatorError::Paused { .. }), "{stopped}");
    worker.disconnect();
    worker.make(finished(vm, task, attempt));
    let mut again = live(2, 1, dir.path());
    (again.listen, again.resume) = (address, true);
    let coordinator = Under::start(again).await;
    worker.connect().await.unwrap();
    worker.welcome().await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
    assert!(done.run.tasks().iter().all(|t| t.attempt.get() == 1));
    assert!(done.facts.outages[0].outage > Span::ZERO, "its VM went on: {:?}", done.facts.outages);
    assert_eq!(replay_log(&done.log, |_| Ok(run_again(2, 1))).unwrap().difference, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_names_more_than_a_machine_has_is_refused_at_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, _) = joined("w", live(2, 1, dir.path())).await;
    worker.obey().await;
    let done = coordinator.outcome().await.unwrap();
    let text = std::fs::read_to_string(&done.log).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("\"vm-launched\"")).unwrap();
    let vast = text.replacen("\"vcpus\":1,\"host\"", "\"vcpus\":4294967294,\"host\"", 1);
    assert_ne!(vast, text);
    std::fs::write(&done.log, vast).unwrap();
    let why =
        format!("events.jsonl:{line}: the vCPUs of vm1 are 4294967294; the maximum is 10000000");
    let refused = |said: String| assert!(said.contains(&why), "{said}");
    refused(replay_log(&done.log, |_| Ok(run_again(2, 1))).unwrap_err().to_string());
    // Somebody wants to go on with it as it is.
    dormouse_log::reseal(&done.log).unwrap();
    let mut again = live(2, 1, dir.path());
    again.resume = true;
    refused(again.conduct_run().await.unwrap_err().to_string());
    // The header's counts are the run's own.
    let vast = replay_log(&done.log, |_| Ok(run_again(2, 10_000_001))).unwrap_err().to_string();
    assert!(vast.contains("events.jsonl:1: the vCPU count of"), "{vast}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_same_run_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, _) = joined("w", live(2, 1, dir.path())).await;
    worker.obey().await;
    coordinator.outcome().await.unwrap();
    let resumed = || {
        let mut live = live(2, 1, dir.path());
        live.resume = true;
        live
    };
    let mut other = resumed();
    let header = serde_json::json!({"format": dormouse_log::FORMAT, "experiment": "another"});
    other.header = dormouse_log::HeaderText::new(&header).unwrap();
    let mut faster = resumed();
    faster.speedup = dormouse_units::Speedup::from_f64(60.0).unwrap();
    let mut larger = resumed();
    larger.setup = setup(3, 1);
    for (live, word) in [(other, "'experiment'"), (faster, "--speedup 30"), (larger, "line")] {
        let no = live.conduct_run().await.unwrap_err();
        assert!(matches!(no, CoordinatorError::Resume { .. }), "{no}");
        assert!(no.to_string().contains(word), "{no}");
    }
    // One that was over stays over.
    let done = resumed().conduct_run().await.unwrap();
    assert_eq!(done.run.unfinished_count(), 0);
}

/// A separate file system with this much room.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(on: &Path, size: &str) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "dormouse-test"])
            .arg(on)
            .status()
            .is_ok_and(|status| status.success());
        mounted.then(|| Self(on.to_owned()))
    }

    fn enlarge(&self, size: &str) {
        let options = ["-o", &format!("remount,size={size}")];
        assert!(Command::new("mount").args(options).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        // Lazily: nothing may stay behind even if a file is still open.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_a_run_stands_still_and_goes_on_once_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let Some(tiny) = Tiny::mount(dir.path(), "128k") else {
        assert!(std::env::var("CI").is_err(), "CI must be able to mount a tmpfs");
        eprintln!("skipped: only root can mount a tiny file system to fill");
        return;
    };
    let (coordinator, mut worker, _) = joined("w", live(1_000, 64, &tiny.0)).await;
    let obeys = tokio::spawn(async move { worker.obey_to_the_end().await });
    within("the disk is full", async {
        while nix::sys::statvfs::statvfs(&tiny.0).unwrap().blocks_available() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!obeys.is_finished(), "the run is not over");
    tiny.enlarge("64m");
    within("the worker is told that it is over", obeys).await.unwrap();
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
    // No line is lost, twice or torn.
    let report = replay_log(&done.log, |_| Ok(run_again(1_000, 64))).unwrap();
    assert_eq!(report.difference, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_folder_that_cannot_be_made_is_said_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let no = live(1, 1, &file.join("out")).conduct_run().await.unwrap_err();
    assert!(matches!(no, CoordinatorError::Output { .. }), "{no}");
    assert!(no.to_string().contains("file/out"), "{no}");
}
