//! The comparison of a run with its twin as text, and its table `twin.csv` with one line for each task or job.

use dormouse_analysis::RunMode;
use dormouse_analysis::twin::{
    DivergentDecision, DurationSpread, LiveAndTwin, TaskFate, TwinComparison, TwinTask, VmFate,
};
use dormouse_model::TenantWork;
use dormouse_units::{Money, Span, Time};
use dormouse_view::{TableCell, TableColumn, TableOf, Terminal, TypedTable};

/// Number of tasks with the largest differences in the short table.
const WORST: usize = 10;

/// The comparison as text: totals, or with `all` also every task and VM.
#[must_use]
pub fn table(twin: &TwinComparison, terminal: Terminal, all: bool) -> String {
    let mut table = ComparisonText { twin, terminal, text: String::new() };
    table.add_head();
    table.add_totals();
    table.add_spreads();
    if all {
        table.add_heading(&format!("every {}", table.unit_word(1)));
        table.add_tasks(twin.tasks.iter());
        table.add_vms();
    } else {
        let differs = |row: &&TwinTask| row.difference != Some(0.0);
        table.add_heading(&format!("the {} that differ most", table.unit_word(WORST)));
        table.add_tasks(twin.worst().into_iter().filter(differs).take(WORST));
    }
    table.add_divergence();
    table.text.trim_end().to_owned()
}

struct ComparisonText<'a> {
    twin: &'a TwinComparison,
    terminal: Terminal,
    text: String,
}

impl ComparisonText<'_> {
    fn add_line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    fn add_heading(&mut self, text: &str) {
        self.add_line(&format!("\n  {}", self.terminal.dim(text)));
    }

    fn add_row(&mut self, name: &str, value: &str) {
        self.text += &format!("  {} {value}\n", self.terminal.dim(&format!("{name:<13}")));
    }

    /// The word for this number of tasks or jobs.
    fn unit_word(&self, n: usize) -> &'static str {
        match (self.twin.work, n) {
            (TenantWork::Jobs, 1) => "job",
            (TenantWork::Jobs, _) => "jobs",
            (_, 1) => "task",
            (_, _) => "tasks",
        }
    }

    fn add_head(&mut self) {
        let twin = self.twin;
        let about = &twin.about;
        let speed = about.speedup.map(|x| format!(" at {x}x")).unwrap_or_default();
        let (experiment, scheduler, mode) = (&about.experiment, &about.scheduler, about.mode);
        let seed = about.seed;
        self.add_row("run", &format!("{experiment} under {scheduler}, {mode}{speed}, seed {seed}"));
        self.add_row(
            "twin",
            &match (mode, twin.work) {
                (RunMode::Virtual, _) => "a run of virtual time is its own twin".to_owned(),
                (RunMode::Live, TenantWork::Jobs) => {
                    let moving = twin.migration.map(seconds);
                    let moving = moving.map(|took| {
                        format!("; moving a job takes as long as it did here, {took} on average")
                    });
                    format!("in virtual time, on exact processors{}", moving.unwrap_or_default())
                }
                (RunMode::Live, _) => {
                    let n = twin.interruptions;
                    format!("in virtual time, with the {n} interruptions that this run had")
                }
            },
        );
        let early = &twin.ended_early;
        for (which, why) in [("the run", &early.live), ("the twin", &early.twin)] {
            if let Some(why) = why {
                let early = format!("{which} ended with {} left: {why}", self.unit_word(2));
                self.add_row("", &self.terminal.verdict(false, &early));
            }
        }
    }

    fn add_totals(&mut self) {
        let twin = self.twin;
        let head = columns("", &twin.about.mode.to_string(), "twin", "difference");
        self.add_line(&format!("\n{}", self.terminal.dim(head.trim_end())));
        if twin.about.mode == RunMode::Live {
            let unit = self.unit_word(2);
            let by =
                format!("  by the log, which has an end when it was due; the {unit} are measured");
            self.add_line(&self.terminal.dim(&by));
        }
        let end = |span: Option<Span>| span.map_or_else(missing, seconds);
        let (LiveAndTwin { live, twin: other }, more) = (twin.makespan, twin.makespan_difference());
        self.add_line(&columns("makespan", &end(live), &end(other), &percent(more)));
        if let Some(LiveAndTwin { live, twin: other }) = twin.cost {
            let usd = |cost: Money| format!("${:.4}", cost.as_usd());
            let more = percent(twin.cost_difference());
            self.add_line(&columns("cost", &usd(live), &usd(other), &more));
        }
        for count in twin.counts.iter().filter(|count| count.sides.live + count.sides.twin > 0) {
            let LiveAndTwin { live, twin } = count.sides;
            let more = i128::from(live) - i128::from(twin);
            let more = if more == 0 { String::new() } else { format!("{more:+}") };
            let name = count.name.replace('_', " ");
            self.add_line(&columns(&name, &live.to_string(), &twin.to_string(), &more));
        }
    }

    fn add_spreads(&mut self) {
        let alone = match self.twin.work {
            TenantWork::Jobs => "foreground",
            _ => "undisturbed",
        };
        self.add_line("");
        match &self.twin.undisturbed {
            Some(of) => self.add_spread(alone, of),
            None => self.add_row(alone, &format!("no {} of these", self.unit_word(2))),
        }
        if let Some(of) = &self.twin.background {
            self.add_spread("background", of);
        }
    }

    fn add_spread(&mut self, name: &str, of: &DurationSpread) {
        let (n, all, past) = (of.tasks(), self.twin.tasks.len(), of.past_5_percent());
        let figures = format!(
            "{n} of {all} {}: mean {}, shortest {}, longest {}",
            self.unit_word(2),
            percent(Some(of.mean())),
            percent(Some(of.shortest())),
            percent(Some(of.longest())),
        );
        let bins: Vec<_> = of.bins().into_iter().map(|(name, n)| format!("{name}: {n}")).collect();
        self.add_row(name, &figures);
        self.add_row("", &self.terminal.verdict(past == 0, &format!("{past} past 5 %")));
        self.add_row("", &bins.join("  "));
    }

    fn add_tasks<'a>(&mut self, rows: impl Iterator<Item = &'a TwinTask>) {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return self.add_line("  none");
        }
        let head = format!(
            "{:>6}  {:<12} {:>10} {:>10} {:>9}  {:<32}",
            "", "name", "live", "twin", "", "where, live / twin"
        );
        self.text += &format!("  {}\n", self.terminal.dim(&head));
        for TwinTask { number, name, sides: LiveAndTwin { live, twin }, difference, standing } in
            rows
        {
            let took = |span: Option<Span>| span.map_or_else(missing, seconds);
            let place = match live.place == twin.place {
                true => live.place.clone(),
                false => format!("{} / {}", live.place, twin.place),
            };
            self.add_line(&format!(
                "  {number:>6}  {name:<12} {:>10} {:>10} {:>9}  {place:<32} {}",
                took(live.took()),
                took(twin.took()),
                percent(*difference),
                standing.disturbed_by().unwrap_or_default()
            ));
        }
    }

    fn add_vms(&mut self) {
        if self.twin.vms.is_empty() {
            return;
        }
        self.add_heading("every VM: type, launched, ended, cost; live / twin");
        let side = |vm: &Option<VmFate>| {
            let Some(vm) = vm else { return missing() };
            let at = |at: Time| seconds(at.since(Time::ZERO));
            let (launched, ended) = (at(vm.launched), vm.ended.map_or_else(missing, at));
            let kind = format!("{} {}", vm.market, vm.kind);
            format!("{kind:<20} {launched:>9} {ended:>9} ${:.5}", vm.cost.as_usd())
        };
        for row in &self.twin.vms {
            let (name, LiveAndTwin { live, twin }) = (row.vm.to_string(), &row.sides);
            self.text += &format!("  {name:<6} {:<49} / {}\n", side(live), side(twin));
        }
    }

    fn add_divergence(&mut self) {
        self.add_line("");
        let Some(of) = &self.twin.divergence else {
            return self.add_row("they diverge", "nowhere: the same decisions in the same order");
        };
        self.add_row("they diverge", &format!("after {} equal decisions", of.same));
        self.add_decided(&of.decided, "nothing is left to decide");
        if of.alone.live.is_none() && of.alone.twin.is_none() {
            self.add_row("", "they decide the same, in another order");
        } else if of.alone != of.decided {
            self.add_row("", "what only one of them ever decides:");
            self.add_decided(&of.alone, "nothing that the other does not");
        }
    }

    /// Adds rows on the first decision in which the live run and its twin differ; `none` stands for
    /// a missing decision.
    fn add_decided(&mut self, of: &LiveAndTwin<Option<DivergentDecision>>, none: &str) {
        let sides = [("live", "in the twin", &of.live), ("in the twin", "live", &of.twin)];
        for (which, other, decided) in sides {
            let Some(DivergentDecision { at, what, heard, other_heard }) = decided else {
                self.add_row("", &format!("{which}, {none}"));
                continue;
            };
            let s = |at: Time| format!("{:.3} s", at.as_secs_f64());
            let other = other_heard
                .map_or_else(|| format!("never {other}"), |at| format!("{other} at {}", s(at)));
            let at = s(*at);
            self.add_row("", &format!("{which}, {heard} at {at} ({other}), and so: {what}"));
        }
    }
}

fn columns(name: &str, live: &str, twin: &str, difference: &str) -> String {
    format!("  {name:<18} {live:>12} {twin:>12} {difference:>12}")
}

fn missing() -> String {
    "-".to_owned()
}

fn seconds(span: Span) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

fn percent(part: Option<f64>) -> String {
    let Some(part) = part else { return missing() };
    // A difference that rounds to zero gets a positive sign.
    format!("{:+.1} %", part * 100.0).replace("-0.0 %", "+0.0 %")
}

/// The content of `twin.csv`: times in seconds; `difference` is the difference divided by the twin's value.
#[must_use]
pub fn csv(twin: &TwinComparison) -> String {
    let table = TypedTable::with_rows(&twin.tasks)
        .column(TableColumn::count("task").as_name(), |task| task.number)
        .column(TableColumn::text("name"), |task| task.name.clone());
    let table = add_sides(table, TableColumn::text, "place", |side| side.place.clone());
    let table = add_sides(table, TableColumn::count, "attempts", |side| side.attempts);
    let table = add_sides(table, TableColumn::seconds, "started_s", |side| side.started);
    let table = add_sides(table, TableColumn::seconds, "finished_s", |side| side.finished);
    let table = add_sides(table, TableColumn::seconds, "took_s", TaskFate::took)
        .column(TableColumn::number("difference"), |task| task.difference)
        .column(TableColumn::text("standing"), |task| task.standing.word())
        .column(TableColumn::text("disturbed_by"), |task| task.standing.disturbed_by());
    TypedTable::from(table).to_csv()
}

/// Adds two columns to the table: one for the live run and one for its twin.
fn add_sides<'a, C: Into<TableCell>>(
    table: TableOf<&'a TwinTask>,
    column: fn(String) -> TableColumn,
    what: &str,
    cell: impl Fn(&TaskFate) -> C,
) -> TableOf<&'a TwinTask> {
    table
        .column(column(format!("live_{what}")), |task| cell(&task.sides.live))
        .column(column(format!("twin_{what}")), |task| cell(&task.sides.twin))
}
