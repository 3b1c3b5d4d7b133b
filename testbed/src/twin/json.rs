//! The comparison for programs.

use dormouse_engine::Work;
use dormouse_units::{Span, Time};
use serde_json::{Map, Value, json};

use super::{Both, Decided, Divergence, Side, Spread, Standing, TaskRow, Twin, VmSide};

impl Twin {
    /// Everything, with times in seconds, money in dollars, differences as parts of the twin's.
    #[must_use]
    pub fn json(&self) -> Value {
        let counts: Map<_, _> =
            self.counts.iter().map(|count| (count.name.clone(), json!(count.sides))).collect();
        json!({
            "kind": if self.work == Work::Jobs { "batch" } else { "bag" },
            "experiment": self.experiment,
            "scheduler": self.scheduler,
            "mode": self.mode,
            "seed": self.seed,
            "speedup": self.speedup,
            "interruptions": self.interruptions,
            "migration_s": self.migration.map(Span::as_secs_f64),
            "makespan_s": {
                "live": self.makespan.live.map(Span::as_secs_f64),
                "twin": self.makespan.twin.map(Span::as_secs_f64),
                "difference": self.makespan_difference(),
            },
            "cost_usd": self.cost.map(|cost| json!({
                "live": cost.live.as_usd(),
                "twin": cost.twin.as_usd(),
                "difference": self.cost_difference(),
            })),
            "ended_early": self.ended_early,
            "undisturbed": self.undisturbed.as_ref().map(spread),
            "background": self.background.as_ref().map(spread),
            "counts": counts,
            "divergence": self.divergence.as_ref().map(divergence),
            "tasks": self.tasks.iter().map(task).collect::<Vec<_>>(),
            "vms": self.vms.iter().map(|row| json!({
                "id": row.vm.get(),
                "live": row.sides.live.as_ref().map(vm),
                "twin": row.sides.twin.as_ref().map(vm),
            })).collect::<Vec<_>>(),
        })
    }
}

fn spread(of: &Spread) -> Value {
    json!({
        "tasks": of.tasks(),
        "mean": of.mean(),
        "shortest": of.shortest(),
        "longest": of.longest(),
        "past_5_percent": of.past_5_percent(),
    })
}

fn divergence(of: &Divergence) -> Value {
    let side = |decided: &Decided| {
        json!({
            "at_s": decided.at.as_secs_f64(),
            "decision": decided.what,
            "heard": decided.heard,
            "other_heard_s": decided.other_heard.map(Time::as_secs_f64),
        })
    };
    let Both { live, twin } = &of.decided;
    json!({
        "decisions_before": of.same,
        "live": live.as_ref().map(side),
        "twin": twin.as_ref().map(side),
        "alone": {
            "live": of.alone.live.as_ref().map(side),
            "twin": of.alone.twin.as_ref().map(side),
        },
    })
}

fn task(row: &TaskRow) -> Value {
    let side = |of: &Side| {
        json!({
            "place": of.place,
            "attempts": of.attempts,
            "started_s": of.started.map(Time::as_secs_f64),
            "finished_s": of.finished.map(Time::as_secs_f64),
            "took_s": of.took().map(Span::as_secs_f64),
        })
    };
    let (standing, by) = match &row.standing {
        Standing::Undisturbed => ("undisturbed", None),
        Standing::Background => ("background", None),
        Standing::Disturbed(by) => ("disturbed", Some(by)),
    };
    json!({
        "task": row.number,
        "name": row.name,
        "live": side(&row.sides.live),
        "twin": side(&row.sides.twin),
        "difference": row.difference,
        "standing": standing,
        "disturbed_by": by,
    })
}

fn vm(of: &VmSide) -> Value {
    json!({
        "type": of.kind,
        "market": of.market,
        "launched_s": of.launched.as_secs_f64(),
        "ended_s": of.ended.map(Time::as_secs_f64),
        "hibernations": of.hibernations,
        "cost_usd": of.cost.as_usd(),
    })
}
