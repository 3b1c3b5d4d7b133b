//! How a coordinator deals with workers, disks and strangers that misbehave.

mod bounds;
mod certificates;
mod durable;
mod judged;
mod lies;
mod session;
mod spot_checks;
mod trust;
