//! `dormouse fit`: the laws of recorded lifetimes, as a table, a page and a part of an experiment file.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use dormouse_fit::{Asked, By, Estimated, Family, Fit, Group, Of, Record, appended, fragment};
use dormouse_view::plot::{Axis, Chart, Look, Panel, Point, Scale, Series};
use dormouse_view::{Block, Card, Cell, Column, Page, Table};
use serde_json::json;

use super::failure::Failure;
use super::print::show;
use crate::command_line::command_line;
use crate::experiment::{InputError, Place, files};

#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// A CSV file with a row a VM: lifetime_s, seconds; end_event, preempted or stop (by its user); and
    /// as there are machine_type, zone, workload, hr_of_day, insert_time
    file: PathBuf,
    /// Fit VMs that have the same type, zone, hour of launch or workload each by themselves, too
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
    /// Leave rows out that can't be used, and count them, instead of stopping at the first
    #[arg(long)]
    skip_malformed: bool,
    /// Resamples from which the intervals come; 0 for none, else at least 40
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    bootstrap: u32,
    /// For the resamples
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The law that experiments get: bathtub, exponential, weibull, gompertz-makeham or uniform
    #[arg(long, default_value = "bathtub")]
    law: Family,
    /// Give experiments the law of all VMs (Kaplan-Meier), not that of the preempted ones
    #[arg(long)]
    kaplan_meier: bool,
    /// Leave fit.csv, report.html, plot.svg and interruption.toml there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Add the law to this experiment file as its [[interruption]]; one that is not there is made
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &FitArgs) -> Result<(), Failure> {
    let record = files::record(&args.file, |text| Record::read(text, args.skip_malformed))?;
    let asked = Asked { by: args.by, resamples: args.bootstrap, seed: args.seed };
    let groups = dormouse_fit::groups(&record, &asked);
    let of = if args.kaplan_meier { Of::KaplanMeier } else { Of::Preempted };
    let has = |family| groups.iter().any(|g| g.estimated.iter().any(|e| e.fit(family).is_some()));
    if !has(if args.write.is_some() { args.law } else { Family::Exponential }) {
        let (all, taken) = (groups[0].vms, groups[0].preempted);
        let what = format!("of {all} VMs {taken} were preempted, at too few different ages to fit");
        let remedy = "give some preempted at two different ages for an exponential law, at five for a bathtub";
        return Err(InputError::new(&Place::of(&args.file.to_string_lossy()), what, remedy).into());
    }
    let fragment = fragment(&groups, args.by, args.law, of);
    if let Some(path) = &args.write {
        let before = if path.exists() { files::text(path)? } else { String::new() };
        save(path, &appended(&path.display().to_string(), &before, &fragment)?)?;
    }
    if let Some(dir) = &args.out {
        fs::create_dir_all(dir).map_err(refused(dir))?;
        let page = page(args, &record, &groups, &fragment);
        for (name, text) in [
            ("fit.csv", figures(&groups, false).to_csv()),
            ("report.html", page.to_html()),
            ("plot.svg", Chart { title: String::new(), panels: panels(&groups) }.to_svg()),
            ("interruption.toml", fragment),
        ] {
            save(&dir.join(name), &text)?;
        }
    }
    let of_rows = json!({ "repeated": record.repeated, "malformed": record.unusable.len() });
    let all =
        json!({ "file": args.file, "left_out": of_rows, "groups": dormouse_fit::json(&groups) });
    show(args.json, all, || {
        let terminal = super::terminal::stdout();
        let table = |of| table(&groups, of).to_text(terminal);
        let [preempted, all] = TITLES.map(|(of, title)| format!("{title}\n{}", table(of)));
        format!("{}\n\n{preempted}\n\n{all}\n\n{ABOUT}", lead(&record))
    })
}

/// What the two tables are of.
const TITLES: [(Of, &str); 2] = [
    (Of::Preempted, "Preempted VMs alone, as the paper fits them"),
    (Of::KaplanMeier, "All VMs (Kaplan-Meier): what users stopped counts as long as it was there"),
];
const ABOUT: &str = "a, b, tau1, tau2 and the mean lifetime are the bathtub's, hours; R² is the part of the \
    curve's variance that a law explains. * is at the end of the range that is looked at.";

fn lead(record: &Record) -> String {
    let taken = record.lives.iter().filter(|life| life.was_taken).count();
    let (all, repeated, malformed) = (record.lives.len(), record.repeated, record.unusable.len());
    let first =
        record.unusable.first().map(|row| format!(", the first in {row}")).unwrap_or_default();
    format!(
        "{all} VMs, {taken} preempted and {} stopped by their users; left out: {repeated} rows that \
         repeat another, {malformed} malformed ones{first}",
        all - taken
    )
}

fn of(group: &Group, which: Of) -> (&Estimated, usize) {
    let [preempted, all] = &group.estimated;
    if which == Of::Preempted { (preempted, group.preempted) } else { (all, group.vms) }
}

/// The bathtub's numbers of each group, and how well every law fits.
fn table(groups: &[Group], which: Of) -> Table {
    let mut table = Table::of(groups)
        .column(Column::text("VMs"), |group| group.name())
        .column(Column::count("n"), |group| of(group, which).1);
    for (n, name) in ["a", "b", "tau1", "tau2"].into_iter().enumerate() {
        table = table.column(Column::number(name), |group| {
            let number = of(group, which).0.fit(Family::Bathtub).map(|fit| fit.numbers[n]);
            number.map(|x| format!("{:.4}{}", x.value, if x.is_at_end { "*" } else { "" }))
        });
    }
    let fit = |group: &Group, family| of(group, which).0.fit(family).cloned();
    let mean = |group: &&Group| fit(group, Family::Bathtub).map(|fit| fit.mean.value);
    table = table.column(Column::number("mean"), mean);
    for family in Family::ALL {
        let r_squared = move |group: &&Group| fit(group, family).map(|fit| fit.r_squared);
        table = table.column(Column::number(format!("R² {}", family.name())).digits(3), r_squared);
    }
    table.into()
}

/// Every figure of every fit, with its interval.
fn figures(groups: &[Group], is_for_people: bool) -> Table {
    let mut rows = Vec::new();
    for (group, which) in groups.iter().flat_map(|group| TITLES.map(|(of, _)| (group, of))) {
        let (estimated, n) = of(group, which);
        for fit in &estimated.fits {
            let case = [group.name(), which.name(), fit.family.name()].join("/");
            let mut row = |metric, value, ci95| rows.push((case.clone(), metric, value, ci95, n));
            for (metric, x) in fit.family.numbers().iter().zip(&fit.numbers) {
                row(*metric, x.value, x.ci95);
            }
            row("mean_lifetime_h", fit.mean.value, fit.mean.ci95);
            row("eq3_24h_h", fit.eq3, None);
            row("r_squared", fit.r_squared, None);
        }
    }
    let ours = Column::mean("ours [95 % of resamples]").named("ours").digits(4).file_digits(6);
    let table = Table::of(rows)
        .column(Column::text("case"), |row| row.0.clone())
        .column(Column::text("metric"), |row| row.1)
        .column(ours, |row| Cell::mean(row.2, row.3, row.4));
    if is_for_people { table.column(Column::count("n"), |row| row.4) } else { table }.into()
}

/// The curves of each group and the laws of those preempted; then the rates of all.
fn panels(groups: &[Group]) -> Vec<Panel> {
    let panel = |title: &str, y: &str, series| Panel {
        title: title.to_owned(),
        x: Axis::new("age, h", Scale::FromZero),
        y: Axis::new(y, Scale::FromZero),
        series,
        ..Panel::default()
    };
    let line = |name: &str, colour, points: Vec<(f64, f64)>| {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        Series { name: name.to_owned(), colour, look: Look::Line, points }
    };
    let ages = |last: f64| (0..=120).map(move |n| last * f64::from(n) / 120.0);
    let law = |fit: &Fit, last, y: &dyn Fn(f64) -> Option<f64>| {
        let points = ages(last).filter_map(|age| Some((age, y(age)?)).filter(|at| at.1 < 10.0));
        line(fit.family.name(), 2 + fit.family as usize, points.collect())
    };
    let of_group = |group: &Group| {
        let steps = TITLES
            .iter()
            .enumerate()
            .map(|(n, (which, _))| line(which.name(), n, of(group, *which).0.curve.corners(200)));
        let [preempted, _] = &group.estimated;
        let laws =
            preempted.fits.iter().map(|f| law(f, preempted.curve.last(), &|age| Some(f.cdf(age))));
        panel(group.name(), "part that is taken", steps.chain(laws).collect())
    };
    let is_drawn = |group: &&Group| !group.estimated[0].fits.is_empty();
    let [all, _] = &groups[0].estimated;
    let rate = |f: &Fit| law(f, all.curve.last(), &|age| f.lifetimes.law().hazard(age));
    let rates =
        panel("all: the rate of those left", "an hour", all.fits.iter().map(rate).collect());
    groups.iter().filter(is_drawn).map(of_group).chain([rates]).collect()
}

fn page(args: &FitArgs, record: &Record, groups: &[Group], fragment: &str) -> Page {
    let mut page = Page::new(format!("Lifetimes of {}", args.file.display()), lead(record));
    for fit in groups[0].estimated.iter().filter_map(|e| Some((e.of, e.fit(Family::Bathtub)?))) {
        let (of, fit) = fit;
        let mean = format!("mean lifetime {:.2} h", fit.mean.value);
        page.cards.push(Card::new(of.name(), format!("R² {:.3}", fit.r_squared), mean));
    }
    for (which, title) in TITLES {
        page.section(title, [Block::Table(table(groups, which)), Block::text(ABOUT)]);
    }
    let plots = panels(groups).iter().map(Panel::to_markup).collect();
    page.section("Distributions and laws", [Block::Plots(plots)]);
    page.section(
        "Every figure",
        [Block::Folded("All".into(), vec![Block::Table(figures(groups, true))])],
    );
    page.section("In an experiment file", [Block::Command(fragment.to_owned())]);
    let mut words = vec!["dormouse".to_owned(), "fit".to_owned(), args.file.display().to_string()];
    words.extend(args.by.map(|by| format!("--by={}", by.name())));
    words.extend([format!("--bootstrap={}", args.bootstrap), format!("--seed={}", args.seed)]);
    words.extend(args.skip_malformed.then(|| "--skip-malformed".to_owned()));
    page.section("Reproduce", [Block::Command(command_line(words))]);
    page
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(refused(path))
}

fn refused(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    |error| Failure::Broken(format!("cannot write {}: {error}", path.display()))
}
