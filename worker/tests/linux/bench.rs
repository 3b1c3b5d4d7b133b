//! Benchmarks, on demand: `cargo test --release -p dormouse-worker --test linux -- bench <name>`.

use std::{
    fs,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use dormouse_samples::Samples;
use dormouse_worker::{
    cgroup::{TierSlot, VmGroups},
    criu::AfterDump,
    jail::JailDemand,
    process::{ask_to_stop, await_stop, cpu_ns, resume_process},
    store::SavedProgress,
};

use crate::harness;
use crate::worker::{SOON, Worker, name};

pub(crate) fn run(which: &str) -> ExitCode {
    match which {
        "spawn" => spawn(),
        "criu" => criu(&[("16", 27), ("64", 27), ("160", 27), ("512", 17)]),
        "small" => criu(&[("1", 41)]),
        "jailed" => jailed(),
        "stop" => stop(),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// Measures starts of a program that ends at once: a bare spawn against a task in its control groups.
fn spawn() {
    const N: u32 = 2000;
    let (mut worker, directory) = Worker::temporary();
    let vms = [worker.vm(1), worker.vm(1)];
    let program = worker.workspace.install_program(&std::env::current_exe().unwrap()).unwrap();
    let per_second = |took: Duration| f64::from(N) / took.as_secs_f64();
    let mut rates = Samples::default();
    for round in 0..3 {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..N / 2 {
                        let null = || std::process::Stdio::null();
                        Command::new(&program)
                            .args(["task", "noop"])
                            .stdin(null())
                            .stdout(null())
                            .stderr(null())
                            .status()
                            .unwrap();
                    }
                });
            }
        });
        let bare = per_second(start.elapsed());
        let start = Instant::now();
        std::thread::scope(|scope| {
            for vm in &vms {
                let worker = &worker;
                scope.spawn(move || {
                    let entry = vm.slot_groups(0, TierSlot::A).unwrap();
                    let program = worker.program(&name("noop"), &["noop"]);
                    for _ in 0..N / 2 {
                        let task = program.start_task(&entry, SOON).unwrap();
                        task.wait_end(SOON).unwrap().unwrap();
                    }
                });
            }
        });
        let ours = per_second(start.elapsed());
        println!(
            "round {round}: bare spawn {bare:.0}/s, tasks {ours:.0}/s, ratio {:.2}",
            ours / bare
        );
        rates.push(ours, bare);
    }
    rates.report_rates("spawn").unwrap();
    drop(directory);
}

/// A way to stop a task: its name, and the operations.
type Order<'a> = (&'a str, &'a dyn Fn(&VmGroups));

/// Measures how long a task under a quota takes to stop, and its CPU time meanwhile, for several ways to stop it.
fn stop() {
    let (mut worker, directory) = Worker::temporary();
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["count", "1", "1000000000"]);
    worker.await_step(&name("t"), 1);
    let pid = task.pid();
    let signal = || ask_to_stop(pid).unwrap();
    let still = || await_stop(pid, SOON).unwrap();
    let orders: [Order<'_>; 5] = [
        ("a lifted quota, 5 ms, the signal", &|vm| {
            let _lifted = vm.lift_quota(0, TierSlot::A).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            signal();
            still();
        }),
        ("the signal, a lifted quota", &|vm| {
            signal();
            let _lifted = vm.lift_quota(0, TierSlot::A).unwrap();
            still();
        }),
        ("the signal, a quota of 3 ms in 20", &|vm| {
            signal();
            vm.set_quota(0, Some(150_000)).unwrap();
            still();
        }),
        ("the signal alone", &|_| {
            signal();
            still();
        }),
        ("the freezer, a lifted quota", &|vm| {
            vm.freeze_vm(SOON).unwrap();
        }),
    ];
    for ppm in [20_000, 50_000, 100_000, 500_000] {
        for (order, halt) in orders {
            let (mut took, mut cpu) = (Vec::new(), Vec::new());
            for round in 0..25 {
                vm.set_quota(0, Some(ppm)).unwrap();
                // Until it is throttled, at another place in its period each time.
                std::thread::sleep(
                    Duration::from_millis(100) + Duration::from_micros(1_300) * round,
                );
                let (before, began) = (cpu_ns(pid).unwrap(), Instant::now());
                halt(&vm);
                took.push(began.elapsed());
                cpu.push(Duration::from_nanos(cpu_ns(pid).unwrap() - before));
                if vm.is_frozen().unwrap() {
                    vm.thaw_vm(SOON).unwrap();
                }
                resume_process(pid).unwrap();
            }
            let median_and_worst = |times: &mut Vec<Duration>| {
                times.sort();
                let ms = |time: Duration| time.as_secs_f64() * 1e3;
                format!("{:6.2} ms, {:6.2} at worst", ms(times[12]), ms(times[24]))
            };
            println!(
                "{:4.1} % of a core, {order:35} still after {}; CPU time {}",
                f64::from(ppm) / 1e4,
                median_and_worst(&mut took),
                median_and_worst(&mut cpu)
            );
        }
    }
    vm.kill_all(SOON).unwrap();
    task.wait_end(SOON).unwrap().unwrap();
    drop(directory);
}

/// Measures dump and restore by the worker against CRIU called by hand, on the same process.
fn criu(sizes: &[(&str, u32)]) {
    let (mut worker, directory) = Worker::temporary();
    let program = harness::criu_program();
    let checkpointer = worker.checkpointer();
    for &(mib, rounds) in sizes {
        let vm = worker.vm(1);
        let name = name(&format!("m{mib}"));
        let task = worker.start_task(&name, &vm, &["count", mib, "1000000000"]);
        worker.await_step(&name, 1);
        let (mut ours, mut bare) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        let mut task = task;
        for round in 0..rounds {
            // By hand.
            let images = worker.workspace.checkpoints_directory().join("bare");
            fs::create_dir_all(&images).unwrap();
            let run = |args: &[&str]| {
                let start = Instant::now();
                let output =
                    Command::new(&program).args(args).arg("-D").arg(&images).output().unwrap();
                let took = start.elapsed();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                took
            };
            let options = ["-v2", "--manage-cgroups=ignore", "--network-lock", "skip"];
            let pid = task.pid().to_string();
            let mut dump = vec!["dump", "-o", "dump.log", "-t", &pid];
            dump.extend(options);
            let dumped = run(&dump);
            task.wait_end(SOON).unwrap().unwrap();
            let pidfile = images.join("pid");
            let _ = fs::remove_file(&pidfile);
            let mut restore = vec!["restore", "-o", "restore.log", "-d", "--pidfile"];
            restore.push(pidfile.to_str().unwrap());
            restore.extend(options);
            let restored = run(&restore);
            let pid: i32 = fs::read_to_string(&pidfile).unwrap().trim().parse().unwrap();
            fs::remove_dir_all(&images).unwrap();
            vm.attach_process(0, TierSlot::A, pid).unwrap();
            // Through the worker, of the process just restored.
            let taken = checkpointer
                .take_checkpoint(
                    &name,
                    pid,
                    (&vm, 0, TierSlot::A),
                    AfterDump::Kill,
                    SOON,
                    &mut |_| Ok(()),
                    SavedProgress::default,
                )
                .unwrap();
            let again = checkpointer.restore_task(&name, &vm, 0, TierSlot::A, SOON).unwrap();
            task = again.task;
            resume_process(task.pid()).unwrap();
            if round >= 2 {
                bare.0.push(dumped);
                bare.1.push(restored);
                ours.0.push(taken.took);
                ours.1.push(again.took);
            }
        }
        let ms = |times: &[Duration]| times.iter().map(|t| t.as_secs_f64() * 1e3).collect();
        let dumps = Samples { ours: ms(&ours.0), peer: ms(&bare.0) };
        dumps.report_costs(&format!("dump-{mib}")).unwrap();
        let restores = Samples { ours: ms(&ours.1), peer: ms(&bare.1) };
        restores.report_costs(&format!("restore-{mib}")).unwrap();
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            times[times.len() / 2].as_secs_f64() * 1e3
        };
        let (bd, br) = (median(&mut bare.0), median(&mut bare.1));
        let (od, or) = (median(&mut ours.0), median(&mut ours.1));
        println!(
            "{mib} MiB: dump bare {bd:.1} ms, worker {od:.1} ms, ratio {:.2}; \
             restore bare {br:.1} ms, worker {or:.1} ms, ratio {:.2}",
            od / bd,
            or / br
        );
        vm.kill_all(SOON).unwrap();
        task.wait_end(SOON).unwrap().unwrap();
        worker.store.remove_task(&name).unwrap();
    }
    drop(directory);
}

/// Measures restores of a small process in a jail, where its images are checked before CRIU restores them and its
/// processes after; to be compared with `small`, which has no jail.
fn jailed() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = Worker::start_jailed(directory.path(), JailDemand::Full);
    let checkpointer = worker.checkpointer();
    let (vm, name) = (worker.vm(1), name("jailed"));
    let mut task = worker.start_task(&name, &vm, &["count", "1", "1000000000"]);
    worker.await_step(&name, 1);
    let mut times = Vec::new();
    for round in 0..41 {
        let place = (&vm, 0, TierSlot::A);
        let noted = SavedProgress::default;
        checkpointer
            .take_checkpoint(
                &name,
                task.pid(),
                place,
                AfterDump::Kill,
                SOON,
                &mut |_| Ok(()),
                noted,
            )
            .unwrap();
        let again = checkpointer.restore_task(&name, &vm, 0, TierSlot::A, SOON).unwrap();
        task = again.task;
        resume_process(task.pid()).unwrap();
        if round >= 2 {
            times.push(again.took);
        }
    }
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("1 MiB in the jail: restored in {:.1} ms in the median", ms(times[times.len() / 2]));
    vm.kill_all(SOON).unwrap();
    task.wait_end(SOON).unwrap().unwrap();
    drop(directory);
}
