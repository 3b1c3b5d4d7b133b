//! A task of one process: what it is promised by the model of its VM, and how it is kept to that.

mod accounts;
mod own;
mod pacing;
mod promise;
mod reference;

pub(crate) use accounts::Share;
pub(crate) use promise::{Charges, Promise};
