//! VMs freeze and die at once, whatever operation is in progress on them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{
    Burstable, CheckpointTaken, CreateVm, Kept, Mode, MoveTask, StartTask, StopTask, TaskStarted,
    TaskStopped, Tier, VmRef, command::Command, report::Report,
};

use crate::{
    agent::{Agent, until},
    await_report,
    coordinator::{Fake, Seat, welcome},
    parallel,
    tasks::{create, is_task, over, stop, vector},
};

/// Time limit for what must happen at once, on a busy host. The operations in progress can be prolonged at will.
const AT_ONCE: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(10);

/// A CRIU whose start a test can delay.
struct SlowCriu(tempfile::TempDir);

impl SlowCriu {
    fn new() -> Self {
        let criu = Self(tempfile::tempdir().unwrap());
        let real = dormouse_worker::criu::find_criu(None).unwrap();
        // In the jail of tasks there is its own folder, and /usr.
        let real = match real.starts_with("/usr") {
            true => real.display().to_string(),
            false => {
                let mut copied = std::process::Command::new("cp");
                copied.arg("-r").arg(real.parent().unwrap());
                assert!(copied.arg(criu.path("real")).status().unwrap().success());
                // A shell that is root for another user stays so with -p.
                "/bin/sh -p $here/real/criu".to_owned()
            }
        };
        let script = format!(
            "#!/bin/sh\nhere=${{0%/*}}\nif [ -e $here/hold ]; then\n  : > $here/held\n  while [ -e \
             $here/hold ]; do sleep .01; done\nfi\nexec {real} \"$@\"\n",
        );
        fs::write(criu.path("criu"), script).unwrap();
        fs::set_permissions(criu.path("criu"), fs::Permissions::from_mode(0o755)).unwrap();
        criu
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Keeps CRIU from starting from now on.
    fn hold(&self) {
        fs::write(self.path("hold"), "").unwrap();
    }

    /// Waits until a CRIU is kept from starting. Messages are received meanwhile: in an emulated machine this may take
    /// longer than the allowed silence of a worker.
    fn await_held(&self, seat: &mut Seat<'_>) {
        until("a CRIU that waits", SOON, || {
            seat.listen(Duration::from_millis(20));
            self.path("held").exists()
        });
    }

    fn let_go(&self) {
        fs::remove_file(self.path("hold")).unwrap();
    }
}

/// A worker that uses this CRIU, with one VM of two vCPUs.
fn with_slow<'a>(fake: &'a Fake, criu: &SlowCriu) -> (Agent, Seat<'a>) {
    let mut seat = fake.seat("w1", welcome());
    let criu = criu.path("criu");
    let agent = Agent::start_with(&fake.address.to_string(), "w1", Some(&criu));
    assert!(seat.ready().is_empty());
    seat.command(create(1, 2));
    await_report!(seat, VmCreated);
    (agent, seat)
}

/// Starts task 8, which runs for a long time.
fn run_on(seat: &mut Seat<'_>) {
    seat.command(Command::StartTask(vector(1, 8, 1, 3_000)));
    await_report!(seat, TaskStarted, s => is_task(s.task, 8));
}

/// A command to start task 7 from its first checkpoint.
fn restored(vm: u32, attempt: u32, done_ppm: u32) -> StartTask {
    let from = Some(Kept { checkpoint: 1, attempt: 1, done_ppm });
    StartTask { from, ..vector(vm, 7, attempt, 60) }
}

const KEEP: StopTask = stop(1, 7, 1, true);

/// Runs task 7 for a while and stops it with a checkpoint.
fn keep(seat: &mut Seat<'_>) -> TaskStopped {
    seat.command(Command::StartTask(vector(1, 7, 1, 60)));
    await_report!(seat, TaskStarted);
    seat.listen(Duration::from_millis(300));
    seat.command(Command::StopTask(KEEP));
    await_report!(seat, TaskStopped)
}

fn destroy(seat: &mut Seat<'_>) {
    let asked = Instant::now();
    seat.command(Command::DestroyVm(VmRef { vm: 1 }));
    await_report!(seat, VmDestroyed);
    assert!(asked.elapsed() < AT_ONCE, "destroyed after {:?}", asked.elapsed());
}

/// Freezes the VM and checks that nothing runs on it.
fn freeze(agent: &Agent, seat: &mut Seat<'_>) {
    let asked = Instant::now();
    seat.command(Command::FreezeVm(VmRef { vm: 1 }));
    let frozen = await_report!(seat, VmFrozen);
    let took = asked.elapsed();
    assert!(took < AT_ONCE && Duration::from_micros(frozen.real_took_us) <= took, "after {took:?}");
    let used = || ["cpu0", "cpu1"].map(|vcpu| agent.slot_cpu(vcpu_of_1(vcpu), "a"));
    let before = used();
    seat.listen(Duration::from_millis(300));
    assert_eq!(used(), before, "a frozen VM works");
}

fn vcpu_of_1(vcpu: &str) -> &'static str {
    if vcpu == "cpu0" { "vm1/cpu0" } else { "vm1/cpu1" }
}

fn thaw(seat: &mut Seat<'_>) {
    seat.command(Command::ThawVm(VmRef { vm: 1 }));
    await_report!(seat, VmThawed);
}

fn nothing_began(seat: &mut Seat<'_>, span: Duration) {
    seat.listen(span);
    let began = |r: &Report| matches!(r, Report::TaskStarted(_) | Report::TaskFailed(_));
    assert!(!seat.heard().iter().any(began), "{:?}", seat.heard());
}

pub(crate) fn destroy_waits_for_no_fetch() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    run_on(&mut seat);
    fake.withhold(true);
    seat.command(Command::StartTask(restored(1, 1, 0)));
    until("a fetch", SOON, || fake.asked() > 0);
    destroy(&mut seat);
    over(agent, &seat);
}

pub(crate) fn destroy_waits_for_no_dump() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    run_on(&mut seat);
    seat.command(Command::StartTask(vector(1, 7, 1, 60)));
    await_report!(seat, TaskStarted);
    criu.hold();
    seat.command(Command::StopTask(KEEP));
    criu.await_held(&mut seat);
    destroy(&mut seat);
    criu.let_go();
    over(agent, &seat);
    assert_eq!(fake.checkpoints(), []);
}

pub(crate) fn destroy_waits_for_no_restore() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    let kept = keep(&mut seat);
    run_on(&mut seat);
    criu.hold();
    seat.command(Command::StartTask(restored(1, 2, kept.done_ppm)));
    criu.await_held(&mut seat);
    destroy(&mut seat);
    // It is not brought to life behind the VM's back.
    criu.let_go();
    nothing_began(&mut seat, Duration::from_millis(200));
    over(agent, &seat);
}

pub(crate) fn destroy_waits_for_no_move() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start_with(&fake.address.to_string(), "w1", Some(&criu.path("criu")));
    parallel::create_machine(&mut seat, 2);
    let job = parallel::job(1, 1);
    seat.command(parallel::start(job, &[0], Tier::Foreground, "1", 60_000));
    await_report!(seat, TaskStarted);
    criu.hold();
    seat.command(Command::MoveTask(MoveTask { task: Some(job), vcpus: vec![1] }));
    criu.await_held(&mut seat);
    destroy(&mut seat);
    criu.let_go();
    over(agent, &seat);
}

pub(crate) fn freeze_waits_for_no_fetch() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    run_on(&mut seat);
    fake.withhold(true);
    seat.command(Command::StartTask(restored(1, 1, 0)));
    until("a fetch", SOON, || fake.asked() > 0);
    freeze(&agent, &mut seat);
    // Fetched, or found not to be there, it waits for the thaw.
    fake.withhold(false);
    nothing_began(&mut seat, Duration::from_millis(300));
    thaw(&mut seat);
    let started: TaskStarted = await_report!(seat, TaskStarted);
    assert!(is_task(started.task, 7), "{started:?}");
    assert!(await_report!(seat, TaskFinished).verified);
    over(agent, &seat);
}

pub(crate) fn freeze_waits_for_no_dump() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    run_on(&mut seat);
    criu.hold();
    let order = StartTask {
        checkpoints_ppm: vec![250_000],
        emulated_checkpoint_cost_us: 3_000_000,
        ..vector(1, 7, 1, 120)
    };
    seat.command(Command::StartTask(order));
    criu.await_held(&mut seat);
    freeze(&agent, &mut seat);
    // CRIU finds a frozen VM, and does not touch the task.
    criu.let_go();
    seat.listen(Duration::from_millis(500));
    let heard = |r: &Report| matches!(r, Report::CheckpointFailed(_) | Report::CheckpointTaken(_));
    assert!(!seat.heard().iter().any(heard), "{:?}", seat.heard());
    thaw(&mut seat);
    let taken: CheckpointTaken = await_report!(seat, CheckpointTaken);
    assert_eq!(taken.checkpoint, 1);
    assert!(await_report!(seat, TaskFinished).verified);
    over(agent, &seat);
}

pub(crate) fn freeze_waits_for_no_restore() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    let kept = keep(&mut seat);
    run_on(&mut seat);
    criu.hold();
    seat.command(Command::StartTask(restored(1, 2, kept.done_ppm)));
    criu.await_held(&mut seat);
    freeze(&agent, &mut seat);
    criu.let_go();
    nothing_began(&mut seat, Duration::from_millis(300));
    thaw(&mut seat);
    let started: TaskStarted = await_report!(seat, TaskStarted);
    assert_eq!(started.done_ppm, kept.done_ppm);
    assert!(await_report!(seat, TaskFinished).verified);
    over(agent, &seat);
}

/// A task catches up on the time that its restore takes, and uses credits for that then, as in virtual time, where a
/// restore takes no time. CPU time of CRIU is charged to no task.
pub(crate) fn a_restore_uses_credits_as_its_work_would() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start_with(&fake.address.to_string(), "w1", Some(&criu.path("criu")));
    seat.ready();
    let burstable = Burstable {
        baseline_ppm: 200_000,
        emulated_earned_us_per_hour: 0,
        emulated_initial_us: 600_000_000,
        emulated_cap_us: 600_000_000,
    };
    let Command::CreateVm(create) = create(1, 2) else { unreachable!("it is one") };
    seat.command(Command::CreateVm(CreateVm { burstable: Some(burstable), ..create }));
    await_report!(seat, VmCreated);
    let burst = |start| StartTask { mode: Mode::Burst.into(), ..start };
    seat.command(Command::StartTask(burst(vector(1, 7, 1, 600))));
    await_report!(seat, TaskStarted);
    seat.command(Command::StopTask(KEEP));
    let stopped = await_report!(seat, TaskStopped);
    // All that it has said before this is read with it.
    seat.listen(Duration::from_millis(200));
    let said = |seat: &mut Seat<'_>| {
        let of = |r: Report| match r {
            Report::Credits(credits) => Some(credits.emulated_us),
            _ => None,
        };
        seat.take_all().into_iter().filter_map(of).next_back().unwrap()
    };
    let had = said(&mut seat);
    criu.hold();
    let (asked, from) = (Instant::now(), restored(1, 2, stopped.done_ppm).from);
    seat.command(Command::StartTask(burst(StartTask { from, ..vector(1, 7, 2, 600) })));
    criu.await_held(&mut seat);
    let held = Instant::now();
    seat.listen(Duration::from_millis(500));
    let held = held.elapsed();
    criu.let_go();
    until("the restored task to say what credits are left", SOON, || {
        seat.listen(Duration::from_millis(50));
        let has = |r: &Report| matches!(r, Report::TaskStarted(_));
        seat.heard().iter().any(has)
    });
    seat.listen(Duration::from_millis(100));
    let (used, since) = (had - said(&mut seat), asked.elapsed());
    // At a speed-up of 30, of one vCPU.
    let emulated = |real: Duration| u64::try_from(real.as_micros()).unwrap() * 30;
    assert!(
        (emulated(held)..=emulated(since)).contains(&used),
        "{used} µs of credits were used in {since:?}, of which CRIU was held for {held:?}"
    );
    over(agent, &seat);
}

/// A VM is frozen during a task's start, for longer than a start may take.
pub(crate) fn a_birth_is_frozen() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    let freeze = Command::FreezeVm(VmRef { vm: 1 });
    seat.commands(vec![Command::StartTask(vector(1, 7, 1, 30)), freeze]);
    await_report!(seat, VmFrozen);
    nothing_began(&mut seat, Duration::from_millis(10_500));
    thaw(&mut seat);
    await_report!(seat, TaskStarted);
    let finished = await_report!(seat, TaskFinished);
    // The frozen time is nobody's.
    let ledger = finished.ledger.unwrap();
    assert!(finished.verified && ledger.real_took_us < 5_000_000, "{ledger:?}");
    over(agent, &seat);
}

pub(crate) fn a_stop_of_a_frozen_launch() {
    let (fake, criu) = (Fake::start(), SlowCriu::new());
    let (agent, mut seat) = with_slow(&fake, &criu);
    let kept = keep(&mut seat);
    run_on(&mut seat);
    criu.hold();
    seat.command(Command::StartTask(restored(1, 2, kept.done_ppm)));
    criu.await_held(&mut seat);
    freeze(&agent, &mut seat);
    seat.command(Command::StopTask(stop(1, 7, 2, false)));
    let stopped: TaskStopped = await_report!(seat, TaskStopped);
    assert!(is_task(stopped.task, 7), "{stopped:?}");
    criu.let_go();
    // It goes on elsewhere, in the same directory, and nothing of the frozen launch is in its way.
    seat.commands(vec![create(2, 1), Command::StartTask(restored(2, 3, kept.done_ppm))]);
    let started: TaskStarted = await_report!(seat, TaskStarted);
    assert_eq!((started.task.unwrap().attempt, started.done_ppm), (3, kept.done_ppm));
    thaw(&mut seat);
    assert!(await_report!(seat, TaskFinished).verified);
    nothing_began(&mut seat, Duration::from_millis(100));
    // Its seat is free.
    seat.command(Command::StartTask(vector(1, 9, 1, 6)));
    await_report!(seat, TaskFinished, f => is_task(f.task, 9));
    over(agent, &seat);
}
