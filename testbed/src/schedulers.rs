//! Parts for a crate that adds a scheduler to this program, as `examples/linked` does: the crate needs a type that is a
//! [`Policy`], and calls [`link`] before [`cli::main`](crate::cli::main).
//!
//! Such a scheduler has its name in experiments (`scheduler.linked`) and after `--scheduler`. Its answers are written
//! to the log like those of a scheduler program, so that a `dormouse` without it can replay, check and explain its
//! runs.

pub use dormouse_cloud::{Catalogue, InstanceType, Market};
pub use dormouse_model::{Bag, Decision, Job, Notice, PromotionMethod, StartReason};
pub use dormouse_policies::{Delivery, Policy};
pub use dormouse_program::{Hello, Machine, Make, link};
pub use dormouse_units::{
    Bytes, Cpus, Credits, Mode, Ppm, Price, Seats, Span, TaskId, Tier, Time, TypeName, Usage, VmId,
};
