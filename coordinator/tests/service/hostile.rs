//! What a coordinator makes of workers, disks and strangers that do not do as they should.

mod bounds;
mod certificates;
mod durable;
mod judged;
mod lies;
mod session;
mod spot_checks;
mod trust;
