//! `report.html`.

mod calibration;
mod fidelity;
mod happened;
pub(crate) mod html;
mod page;

pub(crate) use page::report;
