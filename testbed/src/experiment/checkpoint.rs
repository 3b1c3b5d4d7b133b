//! `[checkpoint]`: when tasks are checkpointed, and what that costs.

use dormouse_policies::{CheckpointBudget, CheckpointOn};
use dormouse_units::{Ppm, Span};

use super::InputError;
use super::reader::Section;

/// Ten per cent of a task's run time (the paper), 12.995 s + 0.04 s a megabyte (its artifact).
pub(crate) const STANDARD: CheckpointBudget = CheckpointBudget {
    overhead: Ppm::new(100_000),
    fixed: Span::from_micros(12_995_000),
    per_megabyte: Span::from_micros(40_000),
    on: CheckpointOn::Spot,
};

/// Reads `[checkpoint]`.
pub(crate) fn read(mut section: Section<'_>) -> Result<CheckpointBudget, InputError> {
    let wanted = section.choice("policy", &[("budget", true), ("none", false)])?.unwrap_or(true);
    let overhead = section.fraction("overhead", 0.0..=10.0)?.unwrap_or(STANDARD.overhead);
    let fixed = section.span("fixed")?.unwrap_or(STANDARD.fixed);
    let per_megabyte = section.span("per-megabyte")?.unwrap_or(STANDARD.per_megabyte);
    let on = section.choice("on", &[("spot", CheckpointOn::Spot), ("all", CheckpointOn::All)])?;
    if fixed < Span::from_micros(1_000) {
        let what = format!("a checkpoint that costs {fixed} would be taken all the time");
        return Err(InputError::new(&section.place_of("fixed"), what, "write at least \"1ms\""));
    }
    section.finish()?;
    let overhead = if wanted { overhead } else { Ppm::ZERO };
    Ok(CheckpointBudget { overhead, fixed, per_megabyte, on: on.unwrap_or_default() })
}
