//! A task of one process: what it is promised by the model of its VM.

mod promise;

pub(crate) use promise::{SlotCharges, TaskPromise};
