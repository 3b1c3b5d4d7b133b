//! The hosts, what is free on them, and on which a VM goes.

mod fleet;
mod host;
mod pack;
mod placer;
mod preempting;
mod spread;
#[cfg(test)]
mod tests;
mod tiers;

pub use fleet::Fleet;
pub use host::Host;
pub use pack::Pack;
pub use placer::{Placer, PlacerName, Want};
pub use preempting::Preempting;
pub use spread::Spread;
pub use tiers::{Placed, Tiers};
