//! The notice of a preemption, and programs that save their work at it.

use dormouse_units::Ppm;

/// The part of its notice that a program has to save its work; in the rest what it saved goes to the coordinator.
pub const PART_TO_SAVE: Ppm = Ppm::new(750_000);
