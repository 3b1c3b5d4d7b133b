//! The picture of a run on a page: a fold from its steps to changes of the picture. The list of
//! changes at [`PictureChanges`] is the contract between server and page.

mod balances;
mod fold;
mod machines;
mod work;

pub use fold::{PictureChanges, RunPicture};
