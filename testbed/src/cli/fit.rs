//! `dormouse fit`: fits laws to recorded lifetimes, as a table, a page and a part of an experiment file.

use std::path::PathBuf;

use clap::Args;
use dormouse_documents::instead;
use dormouse_fit::{
    By, EndIs, Estimated, Family, Fit, GroupOptions, LifeGroup, LifeQuery, Of, Record, Unit,
    WantedFragment, appended, fragment, read_lifetimes,
};
use dormouse_input::Chosen;
use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use dormouse_view::{FigureCard, HtmlPage, PageBlock, TableCell, TableColumn, TypedTable};
use serde_json::json;

use super::failure::Failure;
use super::print::{save, show};
use dormouse_experiment::command_line;
use dormouse_experiment::{InputError, Place, read_file, read_text, spot_types};
use dormouse_report::output::make_folder;

#[derive(Debug, Args)]
pub(crate) struct FitArgs {
    /// A file with one row per VM: lifetime_s in seconds (or lifetime_h, or created and deleted), and end_event,
    /// preempted or stop (or preempted, true or false). It may have machine_type, zone, workload, hr_of_day and
    /// insert_time. Or the JSON of Google's preemptible VMs
    file: PathBuf,
    /// The column of lifetimes, by its heading or its number, where it is not recognised by itself
    #[arg(long, value_name = "COLUMN", help_heading = "The columns of the file")]
    lifetime: Option<String>,
    /// The unit of lifetimes, or of times that are numbers, where the heading does not say it: s, m, h or d
    #[arg(long, value_name = "UNIT", help_heading = "The columns of the file")]
    unit: Option<Unit>,
    /// The column that says how a VM ended, and its value where that was a preemption: reason=preempted
    #[arg(long, value_name = "COLUMN=VALUE", help_heading = "The columns of the file")]
    end: Option<EndIs>,
    /// Which column is lifetime, created, deleted, end, type, zone, workload or hour, by its heading or its
    /// number: created=Launched
    #[arg(long = "column", value_name = "NAME=HEADING", help_heading = "The columns of the file")]
    columns: Vec<Chosen>,
    /// Fit VMs that have the same type, zone, hour of launch or workload each by themselves, too
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
    /// Give experiments the law of the VMs of this group alone, such as us-east1-b with --by zone, instead of the law of all VMs or
    /// of each type
    #[arg(long, value_name = "NAME", requires = "by")]
    group: Option<String>,
    /// Leave rows out that can't be used, and count them, instead of stopping at the first
    #[arg(long, help_heading = "The columns of the file")]
    skip_malformed: bool,
    /// Resamples from which the intervals come; 0 for none, else at least 40
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = resamples)]
    bootstrap: u32,
    /// Random seed of the resamples
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The law that experiments get: bathtub, exponential, weibull, gompertz-makeham or uniform
    #[arg(long, default_value = "bathtub")]
    law: Family,
    /// Give experiments the law of all VMs (Kaplan-Meier), not the law of the preempted VMs
    #[arg(long)]
    kaplan_meier: bool,
    /// Folder in which to leave fit.csv, report.html, plot.svg and interruption.toml
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    out: Option<PathBuf>,
    /// Add the law to this experiment file as its [[interruption]]; a missing file is created
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    write: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

pub(crate) fn run(args: &FitArgs) -> Result<(), Failure> {
    let query = args.query();
    let record = read_file(&args.file, |source| read_lifetimes(source, &query))?;
    let asked = GroupOptions { by: args.by, resamples: args.bootstrap, seed: args.seed };
    let groups = dormouse_fit::groups(&record, &asked);
    let of = if args.kaplan_meier { Of::KaplanMeier } else { Of::Preempted };
    let group = args.group.as_deref().map(|name| named(name, args.by, &groups)).transpose()?;
    let needed = if args.write.is_some() { args.law } else { Family::Exponential };
    if !groups.iter().any(|group| group.estimated(of).fit(needed).is_some()) {
        let what = format!("too few ages to fit: it has {record}");
        let remedy = "record preempted VMs of two different ages for an exponential law, of five for a bathtub";
        return Err(
            InputError::new(&Place::whole(&args.file.to_string_lossy()), what, remedy).into()
        );
    }
    let before = match &args.write {
        Some(path) if path.exists() => read_text(path)?,
        _ => String::new(),
    };
    let types = spot_types(&before);
    let (by, types) = (args.by, types.as_deref());
    let fragment = fragment(&groups, &WantedFragment { by, group, family: args.law, of, types });
    let has_none = !fragment.lines().any(|line| line == "[[interruption]]");
    if has_none && (args.write.is_some() || group.is_some()) {
        let law = args.law.name();
        let what = match &args.group {
            Some(name) => format!("--group {name}: it has no fit of law {law}"),
            None => format!("--write --by type: no type of the experiment has a fit of law {law}"),
        };
        let remedy = "leave --by out, so that all VMs have one law, or give another --law";
        return Err(Failure::BadInput(format!("{what}; {remedy}")));
    }
    if let Some(path) = &args.write {
        save(path, &appended(&path.to_string_lossy(), &before, &fragment)?)?;
    }
    if let Some(dir) = &args.out {
        make_folder(dir)?;
        let chart = PanelChart { title: String::new(), panels: panels(&groups) };
        save(&dir.join("fit.csv"), &figures(&groups, false).to_csv())?;
        save(&dir.join("plot.svg"), &chart.to_svg())?;
        save(&dir.join("report.html"), &page(args, &record, &groups, &fragment).to_html())?;
        save(&dir.join("interruption.toml"), &fragment)?;
    }
    let mut left_out = json!({ "repeated": record.repeated, "malformed": record.unusable.len() });
    if !record.left_out.is_empty() {
        left_out["reasons"] = json!(record.left_out);
    }
    let mut all =
        json!({ "file": args.file, "left_out": left_out, "groups": dormouse_fit::json(&groups) });
    if !record.remarks.is_empty() {
        all["notes"] = json!(record.remarks);
    }
    show(args.json, all, || {
        let text = |of| table(&groups, of).to_text(super::terminal::stdout());
        let tables = Of::ALL.map(|of| format!("{}\n{}", of.about(), text(of)));
        let ends: String = unseen_ends(&groups).map(|end| format!("\n{end}")).collect();
        format!("{record}\n\n{}\n\n{ABOUT}{ends}", tables.join("\n\n"))
    })
}

impl FitArgs {
    /// The options for reading the file of VMs' lifetimes.
    fn query(&self) -> LifeQuery {
        let own = self.columns.iter().flat_map(Chosen::iter);
        let own = own.map(|(name, heading)| (name.to_owned(), heading.to_owned()));
        let lifetime = self.lifetime.iter().map(|column| ("lifetime".to_owned(), column.clone()));
        LifeQuery {
            columns: own.chain(lifetime).collect(),
            unit: self.unit,
            end: self.end.clone(),
            skips_malformed: self.skip_malformed,
            may_lack_ends: false,
        }
    }
}

/// The name of a group as it is spelled in `groups`; an error if there is no group with this name.
fn named<'a>(name: &str, by: Option<By>, groups: &'a [LifeGroup]) -> Result<&'a str, Failure> {
    // 07 and 7 are one hour.
    let hour = name.parse::<u8>().ok().filter(|_| by == Some(By::Hour));
    let name = hour.map_or(name.to_owned(), |hour| hour.to_string());
    let mut some = groups.iter().filter_map(|group| Some((group.name(), group.of.as_deref()?)));
    some.find(|(said, _)| *said == name).map(|(_, of)| of).ok_or_else(|| {
        let all: Vec<&str> =
            groups.iter().filter(|g| g.of.is_some()).map(LifeGroup::name).collect();
        let remedy = instead(&name, &all);
        Failure::BadInput(format!("--group {name}: there are no such VMs; {remedy}"))
    })
}

/// Parses a number of resamples: 0, or at least as many as a 95 % interval needs.
fn resamples(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| *n == 0 || (40..=10_000).contains(n));
    number.ok_or_else(|| "write 0 for no intervals, else 40 to 10000".to_owned())
}

const ABOUT: &str = "a, b, tau1, tau2 and the mean lifetime are the bathtub's, times in hours; R² is the part of a \
    curve's variance that a law explains; * is at the end of the range that is looked at.";

/// A sentence for each bathtub whose end no recorded VM has reached.
fn unseen_ends(groups: &[LifeGroup]) -> impl Iterator<Item = String> {
    let each = groups.iter().flat_map(|group| Of::ALL.map(|of| (group, group.estimated(of))));
    each.filter_map(|(group, estimated)| {
        let last = estimated.curve.last();
        let end = estimated.fit(Family::Bathtub)?.unseen_end(last)?;
        Some(format!(
            "{}, {}: by the bathtub VMs live for up to {end:.1} h, and none was recorded for more than {last:.1} h: \
             another law, or recorded lives, may be nearer.",
            group.name(),
            estimated.of.name()
        ))
    })
}

/// A table of the bathtub's parameters for each group, and of the quality of every law's fit.
fn table(groups: &[LifeGroup], of: Of) -> TypedTable {
    let fit = |group: &LifeGroup, family| group.estimated(of).fit(family).cloned();
    let mut table = TypedTable::with_rows(groups)
        .column(TableColumn::text("VMs"), |group| group.name())
        .column(TableColumn::count("n"), |group| group.estimated(of).vms);
    for (n, name) in ["a", "b", "tau1", "tau2"].into_iter().enumerate() {
        table = table.column(TableColumn::number(name), |group| {
            fit(group, Family::Bathtub).map(|fit| fit.numbers[n].to_string())
        });
    }
    table = table.column(TableColumn::number("mean"), |group| {
        fit(group, Family::Bathtub).map(|fit| fit.mean.value)
    });
    for family in Family::ALL {
        let column = TableColumn::number(format!("R² {}", family.name())).digits(3);
        table = table.column(column, |group| fit(group, family).map(|fit| fit.r_squared));
    }
    table.into()
}

/// A table of every figure of every fit, with its interval.
fn figures(groups: &[LifeGroup], is_for_people: bool) -> TypedTable {
    let ours = TableColumn::mean("ours [95 % of resamples]").named("ours").digits(4).file_digits(6);
    let table = TypedTable::with_rows(groups.iter().flat_map(LifeGroup::rows))
        .column(TableColumn::text("case"), |row| row.case.clone())
        .column(TableColumn::text("metric"), |row| row.metric)
        .column(ours, |row| TableCell::mean(row.figure.value, row.figure.ci95, row.vms));
    if is_for_people { table.column(TableColumn::count("n"), |row| row.vms) } else { table }.into()
}

/// The panels of a plot: for each group its curves and the laws fitted to preempted VMs; then one with all hazard
/// rates.
fn panels(groups: &[LifeGroup]) -> Vec<ChartPanel> {
    let panel = |title: &str, y: &str, series| ChartPanel {
        title: title.to_owned(),
        x: PlotAxis::new("age, h", AxisScale::FromZero),
        y: PlotAxis::new(y, AxisScale::FromZero),
        series,
        ..ChartPanel::default()
    };
    let line = |name: &str, colour, points: Vec<(f64, f64)>| {
        let points = points.into_iter().map(|(x, y)| SeriesPoint::new(x, y)).collect();
        PointSeries { name: name.to_owned(), colour, look: PointLook::Line, points }
    };
    let law = |fit: &Fit, points| line(fit.family.name(), 2 + fit.family as usize, points);
    let of_group = |group: &LifeGroup| {
        let curve = |of: Of| line(of.name(), of as usize, group.estimated(of).curve.corners(200));
        let Estimated { curve: steps, fits, .. } = &group.preempted;
        let laws = fits.iter().map(|fit| law(fit, fit.taken(steps.last())));
        panel(
            group.name(),
            "part of the VMs taken by this age",
            Of::ALL.map(curve).into_iter().chain(laws).collect(),
        )
    };
    let Estimated { curve, fits, .. } = &groups[0].preempted;
    let rates = fits.iter().map(|fit| law(fit, fit.rates(curve.last()))).collect();
    let drawn = groups.iter().filter(|group| !group.preempted.fits.is_empty());
    drawn
        .map(of_group)
        .chain([panel("all VMs: rate at which those still there are taken", "per hour", rates)])
        .collect()
}

fn page(args: &FitArgs, record: &Record, groups: &[LifeGroup], fragment: &str) -> HtmlPage {
    let mut page =
        HtmlPage::new(format!("Lifetimes of {}", args.file.display()), record.to_string());
    for of in Of::ALL {
        if let Some(fit) = groups[0].estimated(of).fit(Family::Bathtub) {
            let mean = format!("mean lifetime {:.2} h", fit.mean.value);
            page.cards.push(FigureCard::new(of.name(), format!("R² {:.3}", fit.r_squared), mean));
        }
        page.section(of.about(), [PageBlock::Table(table(groups, of)), PageBlock::text(ABOUT)]);
    }
    page.section("Laws that go beyond the record", unseen_ends(groups).map(PageBlock::text));
    let plots = panels(groups).iter().map(ChartPanel::to_markup).collect();
    page.section("Recorded lifetimes, and the laws fitted to them", [PageBlock::Plots(plots)]);
    let all = vec![PageBlock::Table(figures(groups, true))];
    page.section("Every figure", [PageBlock::Folded("All, with intervals".to_owned(), all)]);
    page.section("In an experiment file", [PageBlock::Command(fragment.to_owned())]);
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words = ["dormouse".to_owned()].into_iter().chain(words);
    page.section("Reproduce", [PageBlock::Command(command_line(words))]);
    page
}
