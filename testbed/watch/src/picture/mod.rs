//! The picture that a page draws of a run: a fold from its steps to changes of a picture. The contract between the
//! server and the page is the list of changes in `changes.rs`.

mod balances;
mod changes;
mod fold;
mod machines;
mod work;

pub use changes::Changes;
pub use fold::Picture;
