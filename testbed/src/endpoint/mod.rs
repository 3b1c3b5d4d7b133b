//! A metadata endpoint without a run: one VM that nobody has launched, and the provider's actions on it.

mod play;
mod timeline;

pub(crate) use play::{Act, play};
pub(crate) use timeline::{Interrupted, VmTimeline};
