//! Benchmarks of the agent: how exactly shares are kept, and what operations cost, for people.

use std::{
    fs,
    process::ExitCode,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{
    CreateVm, Program, StartTask, TaskRef, VmRef, VmShare, command::Command, report::Report,
};
use dormouse_samples::Samples;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::{create, over},
};

/// Number of VMs: each has two vCPUs with 6 % of a core, and all are busy for some seconds.
const VMS: u32 = 8;

/// Runs rounds of tasks on many small vCPUs; returns the greatest relative error of a VM's share.
fn worst_share(vms: u32, share_ppm: u64, rounds: u32) -> f64 {
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    seat.ready();
    seat.commands((0..vms).map(|vm| create(vm, 2)).collect());
    for round in 0..rounds {
        let orders = (0..2 * vms).map(|n| {
            // 60 to 90 emulated seconds: 2 to 3 real ones.
            let runtime_us = 60_000_000 + u64::from(n) * 30_000_000 / u64::from(2 * vms);
            Command::StartTask(StartTask {
                task: Some(TaskRef { vm: n / 2, task: round * 1000 + n, attempt: 1 }),
                program: Some(Program {
                    args: ["vector", "--memory", "1MiB"].map(str::to_owned).to_vec(),
                }),
                memory_bytes: 4 << 20,
                emulated_runtime_us: runtime_us,
                real_cpu_us: runtime_us * share_ppm / 30 / 1_000_000,
                ..StartTask::default()
            })
        });
        seat.commands(orders.collect());
        for _ in 0..2 * vms {
            assert!(await_report!(seat, TaskFinished).verified);
        }
    }
    let mut worst = 0.0_f64;
    for vm in 0..vms {
        seat.command(Command::DestroyVm(VmRef { vm }));
        let share: VmShare = await_report!(seat, VmShare, s => s.vm == vm);
        let error = share.real_received_us as f64 / share.real_promised_us as f64 - 1.0;
        println!("vm{vm}: {share:?} {:+.2} %", error * 100.0);
        if error.abs() > worst.abs() {
            worst = error;
        }
    }
    over(agent, &seat);
    worst
}

pub(crate) fn shares_are_kept() {
    let worst = worst_share(VMS, 60_000, 2);
    assert!(worst.abs() < 0.05, "worst share error {:+.2} %", worst * 100.0);
}

pub(crate) fn run(what: &str, rest: &[&str]) -> ExitCode {
    match what {
        "share" => {
            let number = |n: usize, or: u64| rest.get(n).map_or(or, |s| s.parse().unwrap());
            let vms = u32::try_from(number(0, 8)).unwrap();
            let worst = worst_share(vms, number(1, 60_000), 2);
            println!("worst share error {:+.2} %", worst * 100.0);
            let received = Samples { ours: vec![1.0 + worst.abs()], peer: vec![1.0] };
            received.report_costs("share").unwrap();
        }
        "idle" => idle(),
        "noop" => noop(rest.first().map_or(4_000, |n| n.parse().unwrap())),
        _ => panic!("bench share [VMS [PPM]] | idle | noop [TASKS]"),
    }
    ExitCode::SUCCESS
}

/// Measures the agent's own CPU time with 20 idle VMs, beside a bare loop that checks the host's load four times a
/// second.
fn idle() {
    /// Time for which both are measured.
    const FOR: Duration = Duration::from_secs(10);
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    seat.ready();
    seat.commands((0..20).map(|vm| create(vm, 2)).collect());
    for _ in 0..20 {
        await_report!(seat, VmCreated);
    }
    let (before, begun) = (cpu_time(agent.child.id()), Instant::now());
    let bare = std::thread::spawn(|| bare_looks(FOR));
    seat.listen(FOR);
    let percent =
        |cpu: Duration, during: Duration| 100.0 * cpu.as_secs_f64() / during.as_secs_f64();
    let share = percent(cpu_time(agent.child.id()) - before, begun.elapsed());
    let bare = percent(bare.join().unwrap(), FOR);
    println!("agent with 20 idle VMs: {share:.3} % of a core, a bare loop {bare:.3} %");
    Samples { ours: vec![share], peer: vec![bare] }.report_costs("agent-idle").unwrap();
    over(agent, &seat);
}

/// CPU time of a process, including its threads that have ended.
fn cpu_time(pid: u32) -> Duration {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    clock_getcpuclockid(pid).unwrap().now().unwrap().into()
}

/// CPU time of a thread that reads the host's load four times a second, for this time.
fn bare_looks(span: Duration) -> Duration {
    let begun = Instant::now();
    while begun.elapsed() < span {
        std::thread::sleep(Duration::from_millis(250));
        std::hint::black_box(fs::read_to_string("/proc/stat").unwrap());
    }
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// Measures how many empty processes a second the agent starts, one after the other on each of a few vCPUs. A bare
/// `posix_spawn` loop on two threads is measured by turns with it, so that other load on the host affects both.
fn noop(tasks: u32) {
    const ROUNDS: u32 = 5;
    let tasks = tasks / ROUNDS;
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    seat.ready();
    let vcpus = 8;
    let kind = "noop".to_owned();
    let create = CreateVm { vm: 1, kind, vcpus, ..CreateVm::default() };
    seat.command(Command::CreateVm(create));
    await_report!(seat, VmCreated);
    let order = |task| {
        Command::StartTask(StartTask {
            task: Some(TaskRef { vm: 1, task, attempt: 1 }),
            program: Some(Program { args: vec!["noop".to_owned()] }),
            // No task ends before its VM should have had it done: that must not be what is waited for.
            emulated_runtime_us: 300,
            real_cpu_us: 10,
            ..StartTask::default()
        })
    };
    let (mut ratios, mut rates) = (Vec::new(), Samples::default());
    for round in 0..ROUNDS {
        let bare = bare_spawns(tasks);
        let rate = agent_spawns(&mut seat, vcpus, round * tasks..(round + 1) * tasks, order);
        println!("real noop processes: {rate:.0}/s, bare: {bare:.0}/s, ratio {:.2}", rate / bare);
        ratios.push(rate / bare);
        rates.push(rate, bare);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[ratios.len() / 2]);
    rates.report_rates("spawn-grpc").unwrap();
    over(agent, &seat);
}

/// Starts tasks of these numbers, each as soon as another has ended; returns how many a second.
fn agent_spawns(
    seat: &mut Seat<'_>,
    vcpus: u32,
    tasks: std::ops::Range<u32>,
    order: impl Fn(u32) -> Command,
) -> f64 {
    let begun = Instant::now();
    let (mut next, mut left) = (tasks.start + vcpus, tasks.len());
    seat.commands((tasks.start..next).map(&order).collect());
    while left > 0 {
        let mut ended = 0;
        for report in seat.take_all() {
            match report {
                Report::TaskFinished(task) if task.verified => ended += 1,
                Report::TaskFinished(_) | Report::TaskFailed(_) => panic!("{report:?}"),
                _ => {}
            }
        }
        // As many as have ended, in one message, as a coordinator does.
        left -= ended as usize;
        let orders = next..tasks.end.min(next + ended);
        if !orders.is_empty() {
            next = orders.end;
            seat.commands(orders.map(&order).collect());
        }
    }
    f64::from(tasks.end - tasks.start) / begun.elapsed().as_secs_f64()
}

fn bare_spawns(tasks: u32) -> f64 {
    let program = crate::agent::task_program();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..tasks / 2 {
                    // No closures, no directory: the standard library uses posix_spawn.
                    let status = std::process::Command::new(&program)
                        .arg("noop")
                        .stdout(std::process::Stdio::null())
                        .status();
                    assert!(status.unwrap().success());
                }
            });
        }
    });
    f64::from(tasks) / begun.elapsed().as_secs_f64()
}
