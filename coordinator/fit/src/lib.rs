//! Recorded lifetimes of VMs: a reader of files of lifetimes, their distribution, and the laws of
//! [`dormouse_cloud::lifetimes`] fitted to it by least squares (Kadupitiya, Jadhao, Sharma, HPDC 2020, section 3).
//!
//! Ages here are hours as floats, and never times of a run. A fit becomes part of a run once it is
//! written as a law of integers ([`Fit::lifetimes`]).

mod columns;
mod curve;
mod family;
mod fit;
mod fragment;
mod groups;
mod json;
mod least_squares;
mod read;
mod record;
#[cfg(test)]
mod tests;
mod vms_json;
mod zone_clock;

pub use columns::Unit;
pub use curve::{Curve, CurveStep};
pub use family::Family;
pub use fit::{Fit, FittedNumber};
pub use fragment::{WantedFragment, appended, fragment};
pub use groups::{By, Estimated, FitRow, GroupOptions, LifeGroup, Of, groups};
pub use json::json;
pub use read::{EndIs, LifeQuery, looks_like_lifetimes, read_lifetimes};
pub use record::{Record, RecordedLife};
