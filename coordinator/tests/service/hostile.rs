//! What a coordinator makes of workers, disks and strangers that do not do as they should.

mod bounds;
mod certificates;
mod durable;
mod lies;
mod session;
mod trust;
