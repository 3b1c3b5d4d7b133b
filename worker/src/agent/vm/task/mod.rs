//! A task of one process: the CPU time that the model of its VM promises it.

mod promise;

pub(crate) use promise::{SlotCharges, TaskPromise};
