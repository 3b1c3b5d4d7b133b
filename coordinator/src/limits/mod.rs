//! Bounds of what a worker may say: how much, how often, in which texts, and with which numbers. Pure.

pub(crate) mod bounds;
pub(crate) mod measured;
pub(crate) mod texts;
pub(crate) mod unasked;
