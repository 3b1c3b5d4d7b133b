//! The notice of a preemption, and programs that save their work at it.

use dormouse_units::Ppm;

/// Fraction of an interruption's notice in which programs save their work; in the rest the saved work is sent to the
/// coordinator.
pub const PART_TO_SAVE: Ppm = Ppm::new(750_000);
