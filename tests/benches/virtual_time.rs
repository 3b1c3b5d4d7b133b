//! How fast virtual time is: one whole run of ED200 in sc4, HADS on bags that grow, and both tables
//! of Burst-HADS. `cargo bench --bench virtual_time -- runs` makes the first alone; the others are
//! `bags` and `tables`.

use std::time::Instant;

use dormouse_experiment::{Override, Source, load};
use dormouse_report::virtual_run::virtual_run;
use dormouse_reproduce::papers::Request;
use dormouse_reproduce::sweep::Reproduction;

type Failure = Box<dyn std::error::Error>;

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
        for tasks in [500, 1_000, 2_000] {
            large_bag(tasks)?;
        }
    }
    if wanted("tables") {
        tables()?;
    }
    Ok(())
}

/// The J jobs' mix of tasks under HADS, with as many VMs a task as J80 has, each of which
/// hibernates by itself five times.
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
    let began = Instant::now();
    let experiment = load(&Source { experiment, ..Source::default() })?.experiment;
    virtual_run(&experiment, experiment.scheduler()?, |_| {})?;
    println!("{tasks:5} tasks under hads: {:6.2} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Runs alone: their plan is made and their schedulers are built before.
fn one_run(scheduler: &str) -> Result<(), Failure> {
    let name = Override::text("--scheduler", "scheduler.name", scheduler);
    let source =
        Source { experiment: Some("ed200-sc4"), overrides: vec![name], ..Source::default() };
    let loaded = load(&source)?;
    let began = Instant::now();
    let plan = loaded.experiment.plan()?;
    let planned = began.elapsed().as_secs_f64();
    let mut experiment = loaded.experiment;
    if let Some(config) = &mut experiment.scheduler {
        config.plan = plan;
    }
    let (runs, mut steps) = (200_u32, 0_u64);
    let began = Instant::now();
    let schedulers: Vec<_> = (0..runs).map(|_| experiment.scheduler()).collect::<Result<_, _>>()?;
    let built = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for scheduler in schedulers {
        virtual_run(&experiment, scheduler, |_| steps += 1)?;
    }
    let s = began.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a count of steps")]
    let per_second = steps as f64 / s;
    println!(
        "ed200-sc4 {scheduler:<14} plan {:7.1} ms, build {:5.2} ms, run {:6.2} ms, {:5} events, \
         {:.0} thousand events/s",
        planned * 1e3,
        built * 1e3 / f64::from(runs),
        s * 1e3 / f64::from(runs),
        steps / u64::from(runs),
        per_second / 1e3
    );
    Ok(())
}

fn tables() -> Result<(), Failure> {
    let what = "burst-hads".to_owned();
    let spec = Reproduction { what, first_seed: 1, seeds: 30, ..Reproduction::default() };
    let threads = std::thread::available_parallelism()?.get();
    let request = Request::new(threads);
    let folder = tempfile::tempdir()?;
    let began = Instant::now();
    let done = request.run(&spec, (folder.path(), true), &mut |_, _, _| {})?;
    let runs: usize = done.iter().map(|done| done.results.count()).sum();
    println!(
        "Tables IV and VI, 30 seeds: {runs} runs in {:.1} s on {threads} threads",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}
