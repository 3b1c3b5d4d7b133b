//! The comparison for a person.

use std::fmt::Write as _;

use dormouse_engine::Work;
use dormouse_units::{Span, Time};

use super::{Both, Count, Decided, Divergence, Spread, Standing, TaskRow, Twin, VmRow, VmSide};
use crate::output::Mode;
use dormouse_view::Terminal;

/// So many of the tasks that differ most stand in the short table.
const WORST: usize = 10;

impl Twin {
    /// The table: what it comes to, or with `all` every task and VM, too.
    #[must_use]
    pub fn table(&self, terminal: Terminal, all: bool) -> String {
        let mut text = self.head(terminal) + &self.totals(terminal) + &self.spreads(terminal);
        if all {
            text += &heading(terminal, &format!("every {}", self.unit(1)));
            text += &rows(terminal, self.tasks.iter());
            text += &vms(terminal, &self.vms);
        } else {
            let differs = |row: &&TaskRow| row.difference != Some(0.0);
            let worst = self.worst().into_iter().filter(differs);
            text += &heading(terminal, &format!("the {} that differ most", self.unit(WORST)));
            text += &rows(terminal, worst.take(WORST));
        }
        text += &divergence(terminal, self.divergence.as_ref());
        text.trim_end().to_owned()
    }

    /// Tasks or jobs.
    fn unit(&self, n: usize) -> &'static str {
        match (self.work, n) {
            (Work::Jobs, 1) => "job",
            (Work::Jobs, _) => "jobs",
            (_, 1) => "task",
            (_, _) => "tasks",
        }
    }

    fn head(&self, terminal: Terminal) -> String {
        let speed = self.speedup.map(|x| format!(" at {x}x")).unwrap_or_default();
        let Self { experiment, scheduler, seed, mode, .. } = self;
        let run = format!("{experiment} under {scheduler}, {mode}{speed}, seed {seed}");
        let twin = match (self.mode, self.work) {
            (Mode::Virtual, _) => "a run of virtual time is its own twin".to_owned(),
            (Mode::Live, Work::Jobs) => {
                let moving = self.migration.map(|span| {
                    format!(
                        "; moving a job takes as long as it did here, {} on average",
                        seconds(span)
                    )
                });
                format!("in virtual time, on exact processors{}", moving.unwrap_or_default())
            }
            (Mode::Live, _) => {
                let n = self.interruptions;
                format!("in virtual time, with the {n} interruptions that this run had")
            }
        };
        let mut text = row(terminal, "run", &run) + &row(terminal, "twin", &twin);
        let Both { live, twin } = &self.ended_early;
        for (which, why) in [("the run", live), ("the twin", twin)] {
            if let Some(why) = why {
                let early = format!("{which} ended with {} left: {why}", self.unit(2));
                text += &row(terminal, "", &terminal.verdict(false, &early));
            }
        }
        text
    }

    fn totals(&self, terminal: Terminal) -> String {
        let head = line("", &self.mode.to_string(), "twin", "difference");
        let mut text = format!("\n{}\n", terminal.dim(head.trim_end()));
        if self.mode == Mode::Live {
            let unit = self.unit(2);
            let by =
                format!("  by the log, which has an end when it was due; the {unit} are measured");
            text += &format!("{}\n", terminal.dim(&by));
        }
        let end = |span: Option<Span>| span.map_or_else(|| "-".to_owned(), seconds);
        let Both { live, twin } = self.makespan;
        text += &line("makespan", &end(live), &end(twin), &percent(self.makespan_difference()));
        if let Some(Both { live, twin }) = self.cost {
            let usd = |cost: dormouse_units::Money| format!("${:.4}", cost.as_usd());
            text += &line("cost", &usd(live), &usd(twin), &percent(self.cost_difference()));
        }
        for Count { name, sides: Both { live, twin } } in &self.counts {
            if live + twin > 0 {
                let more = i128::from(*live) - i128::from(*twin);
                let more = if more == 0 { String::new() } else { format!("{more:+}") };
                let name = name.replace('_', " ");
                text += &line(&name, &live.to_string(), &twin.to_string(), &more);
            }
        }
        text
    }

    fn spreads(&self, terminal: Terminal) -> String {
        let (alone, below) = match self.work {
            Work::Jobs => ("foreground", "background"),
            _ => ("undisturbed", ""),
        };
        let mut text = String::from("\n");
        match &self.undisturbed {
            Some(of) => text += &self.spread(terminal, alone, of),
            None => text += &row(terminal, alone, &format!("no {} of these", self.unit(2))),
        }
        if let Some(of) = &self.background {
            text += &self.spread(terminal, below, of);
        }
        text
    }

    fn spread(&self, terminal: Terminal, name: &str, of: &Spread) -> String {
        let (n, all, past) = (of.tasks(), self.tasks.len(), of.past_5_percent());
        let figures = format!(
            "{n} of {all} {}: mean {}, shortest {}, longest {}",
            self.unit(2),
            percent(Some(of.mean())),
            percent(Some(of.shortest())),
            percent(Some(of.longest())),
        );
        let bins: Vec<_> = of.bins().into_iter().map(|(name, n)| format!("{name}: {n}")).collect();
        row(terminal, name, &figures)
            + &row(terminal, "", &terminal.verdict(past == 0, &format!("{past} past 5 %")))
            + &row(terminal, "", &bins.join("  "))
    }
}

fn heading(terminal: Terminal, text: &str) -> String {
    format!("\n  {}\n", terminal.dim(text))
}

fn row(terminal: Terminal, name: &str, value: &str) -> String {
    format!("  {} {value}\n", terminal.dim(&format!("{name:<13}")))
}

fn line(name: &str, live: &str, twin: &str, difference: &str) -> String {
    format!("  {name:<18} {live:>12} {twin:>12} {difference:>12}").trim_end().to_owned() + "\n"
}

fn seconds(span: Span) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

fn percent(part: Option<f64>) -> String {
    let Some(part) = part else { return "-".to_owned() };
    // What rounds to nothing has no sign that says anything.
    format!("{:+.1} %", part * 100.0).replace("-0.0 %", "+0.0 %")
}

fn rows<'a>(terminal: Terminal, of: impl Iterator<Item = &'a TaskRow>) -> String {
    let mut text = String::new();
    for row in of {
        if text.is_empty() {
            text = format!(
                "  {}\n",
                terminal.dim(&format!(
                    "{:>6}  {:<12} {:>10} {:>10} {:>9}  {:<32}",
                    "", "name", "live", "twin", "", "where, live / twin"
                ))
            );
        }
        let took = |span: Option<Span>| span.map_or_else(|| "-".to_owned(), seconds);
        let Both { live, twin } = &row.sides;
        let place = if live.place == twin.place {
            live.place.clone()
        } else {
            format!("{} / {}", live.place, twin.place)
        };
        let why = match &row.standing {
            Standing::Undisturbed | Standing::Background => String::new(),
            Standing::Disturbed(why) => why.clone(),
        };
        let line = format!(
            "  {:>6}  {:<12} {:>10} {:>10} {:>9}  {place:<32} {why}",
            row.number,
            row.name,
            took(live.took()),
            took(twin.took()),
            percent(row.difference),
        );
        text += line.trim_end();
        text.push('\n');
    }
    if text.is_empty() { "  none\n".to_owned() } else { text }
}

fn vms(terminal: Terminal, of: &[VmRow]) -> String {
    if of.is_empty() {
        return String::new();
    }
    let mut text = heading(terminal, "every VM: type, launched, ended, cost; live / twin");
    let side = |vm: &Option<VmSide>| {
        let Some(vm) = vm else { return "-".to_owned() };
        let ended = vm.ended.map_or_else(|| "-".to_owned(), |at| seconds(at.since(Time::ZERO)));
        let launched = seconds(vm.launched.since(Time::ZERO));
        let kind = format!("{} {}", vm.market, vm.kind);
        format!("{kind:<20} {launched:>9} {ended:>9} ${:.5}", vm.cost.as_usd())
    };
    for VmRow { vm, sides: Both { live, twin } } in of {
        let name = vm.to_string();
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {name:<6} {:<49} / {}", side(live), side(twin));
    }
    text
}

fn divergence(terminal: Terminal, of: Option<&Divergence>) -> String {
    let Some(of) = of else {
        let same = "nowhere: the same decisions in the same order";
        return format!("\n{}", row(terminal, "they diverge", same));
    };
    let side = |which: &str, other: &str, decided: &Option<Decided>, none: &str| match decided {
        None => format!("{which}, {none}"),
        Some(Decided { at, what, heard, other_heard }) => {
            let s = |at: Time| format!("{:.3} s", at.as_secs_f64());
            let other = other_heard
                .map_or_else(|| format!("never {other}"), |at| format!("{other} at {}", s(at)));
            format!("{which}, {heard} at {} ({other}), and so: {what}", s(*at))
        }
    };
    let both = |Both { live, twin }: &Both<Option<Decided>>, none: &str| {
        row(terminal, "", &side("live", "in the twin", live, none))
            + &row(terminal, "", &side("in the twin", "live", twin, none))
    };
    let first = format!("after {} equal decisions", of.same);
    let mut text = format!("\n{}", row(terminal, "they diverge", &first));
    text += &both(&of.decided, "nothing is left to decide");
    if of.alone.live.is_none() && of.alone.twin.is_none() {
        return text + &row(terminal, "", "they decide the same, in another order");
    }
    if of.alone != of.decided {
        text += &row(terminal, "", "what only one of them ever decides:");
        text += &both(&of.alone, "nothing that the other does not");
    }
    text
}
