//! `dormouse advise checkpoints | reuse`: what to decide, with the curve behind it.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use dormouse_policies::dp::{DpMode, Plan, Problem, Survival, expected};
use dormouse_policies::service::ReusePolicy;
use dormouse_policies::young_daly;
use dormouse_units::Span;
use dormouse_view::plot::{Axis, Look, Panel, Point, Scale, Series};
use dormouse_view::{Block, Column, Page, Table};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::failure::Failure;
use super::print::show;
use crate::command_line::command_line;
use crate::experiment::law;

#[derive(Debug, Subcommand)]
pub(crate) enum AdviseCommand {
    /// When to checkpoint a job on a VM of some age, by the dynamic program of the bathtub paper
    Checkpoints(CheckpointsArgs),
    /// Whether a job goes to a VM of some age or to a new one
    Reuse(ReuseArgs),
}

/// Where advice goes.
#[derive(Debug, Args)]
pub(super) struct Where {
    /// Leave table.csv, plot.svg and report.html there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A job, and the VM that is there.
#[derive(Debug, Args)]
struct Job {
    /// Its work, such as 5h
    #[arg(long)]
    job: Span,
    /// Age of the VM that is there
    #[arg(long, default_value = "0s")]
    age: Span,
    /// How long VMs live: the keys of an [[interruption]] of lifetimes, such as 'mean = "6h"', or a file
    /// with one, as `dormouse fit` makes it
    #[arg(
        long,
        default_value = "bathtub = { a = 0.4137, b = \"24h\", tau1 = \"54m\", tau2 = \"45.6m\" }"
    )]
    model: String,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointsArgs {
    #[command(flatten)]
    of: Job,
    /// How long a checkpoint takes
    #[arg(long, default_value = "1m")]
    checkpoint: Span,
    /// How long it takes to go on from one, on another VM
    #[arg(long, default_value = "1m")]
    restart: Span,
    /// What times are counted in
    #[arg(long, default_value = "1m")]
    step: Span,
    /// How the recursion is read: conditional, or artifact as its authors computed it
    #[arg(long, default_value = "conditional", value_parser = named::<DpMode>)]
    mode: DpMode,
    /// Mean time to failure of the Young-Daly interval beside it
    #[arg(long, default_value = "1h")]
    mttf: Span,
    #[command(flatten)]
    to: Where,
}

#[derive(Debug, Args)]
pub(crate) struct ReuseArgs {
    #[command(flatten)]
    of: Job,
    /// What is compared: expected-time-corrected, expected-time as Eq. 8 is printed, or probability
    #[arg(long, default_value = "expected-time-corrected", value_parser = named::<ReusePolicy>)]
    policy: ReusePolicy,
    #[command(flatten)]
    to: Where,
}

fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(json!(text)).map_err(|error| error.to_string())
}

pub(crate) fn advise(command: &AdviseCommand) -> Result<(), Failure> {
    match command {
        AdviseCommand::Checkpoints(args) => args.run(),
        AdviseCommand::Reuse(args) => args.run(),
    }
}

impl CheckpointsArgs {
    fn run(&self) -> Result<(), Failure> {
        let Job { job, age, model } = &self.of;
        let lifetimes = law(model)?;
        let step = self.step.as_micros();
        let steps = |option: &str, span: Span| match (
            span.as_micros() % step.max(1),
            usize::try_from(span.as_micros() / step.max(1)),
        ) {
            (0, Ok(steps)) if step > 0 && steps < 10_000_000 => Ok(steps),
            _ => Err(Failure::BadInput(format!(
                "--{option} {span}: it is no whole number, below 10 million, of steps of {}: give another, \
                 or another --step",
                self.step
            ))),
        };
        let [work, first, checkpoint, restart] = [
            steps("job", *job)?,
            steps("age", *age)?,
            steps("checkpoint", self.checkpoint)?,
            steps("restart", self.restart)?,
        ];
        let hours = |steps: usize| self.step.times(steps as u64).as_secs_f64() / 3_600.0;
        let day = usize::try_from(86_400_000_000 / step).unwrap_or(0);
        let ages = Problem::ages(work, checkpoint, restart, first.max(day)).min(100_000_000);
        let survival = Survival::new(&|hours| lifetimes.law().cdf(hours), self.step, ages);
        let rules = self.mode.rules();
        let problem =
            Problem { job: work, checkpoint, restart, age: first, rules, survival: &survival };
        let bad = |error| {
            Failure::BadInput(format!(
                "--job {job} --age {age} --step {} --model {model}: {error}",
                self.step
            ))
        };
        let plan = Plan::of(&problem).map_err(bad)?;
        let tau = young_daly(self.checkpoint, self.mttf).as_micros() / step;
        let tau = usize::try_from(tau).unwrap_or(work).max(1);
        let even = expected(&problem, &|_, _| tau).map_err(bad)?;
        let minutes = |steps: f64| steps * self.step.as_secs_f64() / 60.0;
        let (takes, even) = (minutes(plan.makespan()), minutes(even));
        let verdict = format!(
            "A job of {job} on a VM of age {age} is expected to take {takes:.2} min (+{:.2} %); {even:.2} min with a \
             checkpoint after every {:.0} min of work (Young-Daly, MTTF {}).",
            100.0 * plan.overhead(),
            hours(tau) * 60.0,
            self.mttf,
        );
        let table = Table::of(plan.schedule(work, first))
            .column(Column::number("VM's age, min").named("age_min").digits(0), |chunk| {
                hours(chunk.age) * 60.0
            })
            .column(
                Column::number("work to the next checkpoint, min").named("work_min").digits(0),
                |chunk| hours(chunk.work) * 60.0,
            );
        let every = (1_800_000_000 / step).max(1);
        let ages =
            (0..=survival.last().min(first.max(day))).step_by(usize::try_from(every).unwrap_or(1));
        let alive = ages.filter(|age| survival.alive(*age) > 0.0);
        let curve =
            alive.filter_map(|age| Some((hours(age), minutes(plan.makespan_at(age)?)))).collect();
        let words = ["VM's age at the beginning, h", "expected time, min"];
        let json =
            json!({ "expected_min": takes, "overhead": plan.overhead(), "young_daly_min": even });
        Advice {
            title: "Checkpoints",
            verdict,
            table: table.into(),
            words,
            curves: vec![("dynamic program", curve)],
            json,
        }
        .tell(&self.to)
    }
}

impl ReuseArgs {
    fn run(&self) -> Result<(), Failure> {
        let Job { job, age, model } = &self.of;
        let lifetimes = law(model)?;
        let (work, at) = (job.as_secs_f64() / 3_600.0, age.as_secs_f64() / 3_600.0);
        let compare = |at: f64, work: f64| self.policy.compare(lifetimes.law(), at, work);
        let both = compare(at, work);
        if work <= 0.0 || !both.here.is_finite() {
            let what =
                format!("--job {job} --age {age}: there is no such job, or no VM gets so old");
            return Err(Failure::BadInput(format!(
                "{what}: give a job longer than 0s and another age or --model"
            )));
        }
        let verdict = format!(
            "{} for a job of {job}: {:.4} on the VM of age {age}, {:.4} on a new one ({}).",
            if both.reuse() { "Take the VM that is there" } else { "Take a new VM" },
            both.here,
            both.anew,
            self.policy.about(),
        );
        let hours = || (0..=48).map(|n| f64::from(n) / 2.0);
        let longest = |at: f64| hours().skip(1).filter(|work| compare(at, *work).reuse()).last();
        let alive: Vec<f64> = hours().filter(|at| compare(*at, work).here.is_finite()).collect();
        let table = Table::of(alive.iter().copied())
            .column(Column::number("VM's age, h").named("age_h").digits(1), |at| *at)
            .column(Column::number("there").digits(4), |at| compare(*at, work).here)
            .column(Column::number("new").digits(4), |_| both.anew)
            .column(
                Column::number("longest job to take it for, h").named("longest_h").digits(1),
                |at| longest(*at),
            );
        let curve = |of: &dyn Fn(f64) -> f64| alive.iter().map(|at| (*at, of(*at))).collect();
        let curves = vec![
            ("VM that is there", curve(&|at| compare(at, work).here)),
            ("new VM", curve(&|_| both.anew)),
        ];
        let json = json!({ "reuse": both.reuse(), "here": both.here, "new": both.anew });
        let words = ["VM's age, h", self.policy.about()];
        Advice { title: "Reuse of a VM", verdict, table: table.into(), words, curves, json }
            .tell(&self.to)
    }
}

/// A decision, and the curve behind it.
struct Advice {
    title: &'static str,
    verdict: String,
    table: Table,
    /// What is along and beside the curves.
    words: [&'static str; 2],
    curves: Vec<(&'static str, Vec<(f64, f64)>)>,
    json: Value,
}

impl Advice {
    fn tell(self, to: &Where) -> Result<(), Failure> {
        let Self { title, verdict, table, words: [x, y], curves, mut json } = self;
        let series = curves.iter().enumerate().map(|(colour, (name, points))| {
            let points = points.iter().map(|(x, y)| Point::new(*x, *y)).collect();
            Series { name: (*name).to_owned(), colour, look: Look::Line, points }
        });
        let (x, y) = (Axis::new(x, Scale::FromZero), Axis::new(y, Scale::Linear));
        let panel =
            Panel { title: String::new(), x, y, series: series.collect(), ..Panel::default() };
        if let Some(dir) = &to.out {
            let mut page = Page::new(title, verdict.clone());
            page.section("Decision", [Block::Table(table.clone())]);
            page.section("The curve behind it", [Block::Plots(vec![panel.to_markup()])]);
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            let command = command_line(["dormouse".to_owned()].into_iter().chain(words));
            page.section("Reproduce", [Block::Command(command)]);
            let refused =
                |error| Failure::Broken(format!("cannot write into {}: {error}", dir.display()));
            let files = [
                ("table.csv", table.to_csv()),
                ("plot.svg", panel.to_svg()),
                ("report.html", page.to_html()),
            ];
            fs::create_dir_all(dir).map_err(refused)?;
            files
                .iter()
                .try_for_each(|(name, text)| fs::write(dir.join(name), text))
                .map_err(refused)?;
        }
        json["decision"] = json!(verdict);
        json["table"] = table.to_json();
        json["curves"] = json!(curves);
        show(to.json, json, || format!("{verdict}\n\n{}", table.to_text(super::terminal::stdout())))
    }
}
