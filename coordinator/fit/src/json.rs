//! Fits as JSON.

use serde_json::{Map, Value, json};

use crate::{Estimated, Fit, FittedNumber, LifeGroup, Of};

/// One object per group, with the fits by law of its preempted VMs and of all its VMs.
#[must_use]
pub fn json(groups: &[LifeGroup]) -> Value {
    let group = |group: &LifeGroup| {
        let mut all = json!({
            "group": group.of, "vms": group.all.vms, "preempted_vms": group.preempted.vms,
        });
        for which in Of::ALL {
            all[which.name()] = estimate_json(group.estimated(which));
        }
        all
    };
    groups.iter().map(group).collect()
}

fn estimate_json(estimated: &Estimated) -> Value {
    let fits: Map<_, _> =
        estimated.fits.iter().map(|fit| (fit.family.name().to_owned(), law(fit))).collect();
    json!({ "mean_h": estimated.curve.mean(), "fits": fits })
}

fn law(fit: &Fit) -> Value {
    let numbers: Map<_, _> = fit
        .family
        .numbers()
        .iter()
        .zip(&fit.numbers)
        .map(|(name, number)| ((*name).to_owned(), figure_json(number)))
        .collect();
    json!({
        "r_squared": fit.r_squared, "numbers": numbers, "mean_h": figure_json(&fit.mean), "eq3_24h": fit.eq3,
    })
}

fn figure_json(figure: &FittedNumber) -> Value {
    json!({ "value": figure.value, "ci95": figure.ci95, "at_end_of_range": figure.is_at_end })
}
