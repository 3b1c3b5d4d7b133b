//! The speed of virtual time: a whole run of ED200 in sc4, HADS on bags of growing size, and both tables of
//! Burst-HADS. `cargo bench --bench virtual_time -- runs` measures the first alone; the others are `bags` and
//! `tables`. The first two are each compared with a bare queue of as many events.

#[path = "floor/events.rs"]
mod events;

use std::time::Instant;

use dormouse_experiment::{ExperimentSource, Override, load};
use dormouse_report::virtual_run::virtual_run;
use dormouse_reproduce::papers::ReproductionRequest;
use dormouse_reproduce::sweep::ReproductionSpec;
use dormouse_samples::{Samples, median};

type Failure = Box<dyn std::error::Error>;

/// Number of tasks of the largest bag, and how often each bag is run.
const LARGEST_BAG: usize = 2_000;
const BAG_RUNS: usize = 3;
/// Number of runs of ED200 in each mean, and number of such means.
const RUNS: u32 = 200;
const MEANS: usize = 5;
/// How often both tables are made, on all processors and on one processor.
const TABLE_RUNS: usize = 2;

fn main() -> Result<(), Failure> {
    // Cargo gives options of its own, too.
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |part| only.is_empty() || only.iter().any(|only| only == part);
    if wanted("runs") {
        for scheduler in ["burst-hads", "hads", "ils-on-demand"] {
            one_run(scheduler)?;
        }
    }
    if wanted("bags") {
        for tasks in [500, 1_000, LARGEST_BAG] {
            large_bag(tasks)?;
        }
    }
    if wanted("tables") {
        tables()?;
    }
    Ok(())
}

/// Runs the task mix of the J jobs under HADS, with as many VMs per task as J80 has; each VM hibernates by itself five
/// times.
fn large_bag(tasks: usize) -> Result<(), Failure> {
    let limit = tasks * 3 / 80;
    let sizes = [(400, 3, 167), (600, 4, 222), (1_000, 3, 346)].map(|(size, tenths, seconds)| {
        let count = tasks * tenths / 10;
        format!(
            "[[workload.task]]\nname = \"s{size}\"\ncount = {count}\nmemory = \"12MB\"\n\
             runtime = \"{seconds}s\"\n"
        )
    });
    let text = format!(
        "name = \"bag-{tasks}\"\nseed = 1\n[cloud]\ncatalogue = \"ec2-2020\"\n\
         limits = {{ spot = {limit}, on-demand = {limit} }}\n\
         [[interruption]]\nmodel = \"poisson\"\nk-hibernate = 5\nk-resume = 5\nscope = \"vm\"\n\
         [workload]\nkind = \"bag\"\ndeadline = \"45m\"\n{}[scheduler]\nname = \"hads\"\n",
        sizes.concat()
    );
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bag.toml");
    std::fs::write(&file, text)?;
    let experiment = file.to_str();
    let mut times = Samples::default();
    for _ in 0..BAG_RUNS {
        let (began, mut steps) = (Instant::now(), 0);
        let experiment =
            load(&ExperimentSource { experiment, ..ExperimentSource::default() })?.experiment;
        virtual_run(&experiment, experiment.scheduler()?, |_| steps += 1)?;
        let seconds = began.elapsed().as_secs_f64();
        println!("{tasks:5} tasks under hads: {seconds:6.2} s, {steps} events");
        times.push(seconds, events::seconds(steps, tasks));
    }
    if tasks == LARGEST_BAG {
        times.report_costs("hads-2000")?;
    }
    Ok(())
}

/// Measures runs alone: plans and schedulers are made before the clock starts.
fn one_run(scheduler: &str) -> Result<(), Failure> {
    let name = Override::text("--scheduler", "scheduler.name", scheduler);
    let source = ExperimentSource {
        experiment: Some("ed200-sc4"),
        overrides: vec![name],
        ..ExperimentSource::default()
    };
    let loaded = load(&source)?;
    let began = Instant::now();
    let plan = loaded.experiment.plan()?;
    let planned = began.elapsed().as_secs_f64();
    let mut experiment = loaded.experiment;
    if let Some(config) = &mut experiment.scheduler {
        config.plan = plan;
    }
    let mut times = Samples::default();
    let (mut built, mut steps) = (0.0, 0);
    for _ in 0..MEANS {
        let began = Instant::now();
        let schedulers: Vec<_> =
            (0..RUNS).map(|_| experiment.scheduler()).collect::<Result<_, _>>()?;
        built = began.elapsed().as_secs_f64();
        let began = Instant::now();
        steps = 0;
        for scheduler in schedulers {
            virtual_run(&experiment, scheduler, |_| steps += 1)?;
        }
        times.push(began.elapsed().as_secs_f64(), events::seconds(steps, 0));
    }
    let (s, bare) = (median(&times.ours), median(&times.peer));
    #[expect(clippy::cast_precision_loss, reason = "a count of steps")]
    let rates = |seconds: &[f64]| seconds.iter().map(|s| steps as f64 / s / 1e3).collect();
    let rates = Samples { ours: rates(&times.ours), peer: rates(&times.peer) };
    rates.report_rates(&format!("events-{scheduler}"))?;
    #[expect(clippy::cast_precision_loss, reason = "a count of steps")]
    let per_second = steps as f64 / s;
    println!(
        "ed200-sc4 {scheduler:<14} plan {:7.1} ms, build {:5.2} ms, run {:6.2} ms, {:5} events, \
         {:.0} thousand events/s, of a bare queue {:.0}",
        planned * 1e3,
        built * 1e3 / f64::from(RUNS),
        s * 1e3 / f64::from(RUNS),
        steps / u64::from(RUNS),
        per_second / 1e3,
        per_second * s / bare / 1e3
    );
    Ok(())
}

fn tables() -> Result<(), Failure> {
    let what = "burst-hads".to_owned();
    let spec = ReproductionSpec { what, first_seed: 1, seeds: 30, ..ReproductionSpec::default() };
    let threads = std::thread::available_parallelism()?.get();
    let tables = |threads: usize| -> Result<f64, Failure> {
        let folder = tempfile::tempdir()?;
        let began = Instant::now();
        let done = ReproductionRequest::new(threads).run(
            &spec,
            (folder.path(), true),
            &mut |_, _, _| {},
        )?;
        let seconds = began.elapsed().as_secs_f64();
        let runs: usize = done.iter().map(|done| done.results.count()).sum();
        println!("Tables IV and VI, 30 seeds: {runs} runs in {seconds:.1} s on {threads} threads");
        Ok(seconds)
    };
    #[expect(clippy::cast_precision_loss, reason = "some threads")]
    let all = || Ok::<_, Failure>(tables(threads)? * threads as f64);
    let times = Samples::by_turns(TABLE_RUNS, all, || tables(1))?;
    times.report_costs("tables")?;
    Ok(())
}
