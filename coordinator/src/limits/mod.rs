//! Bounds of workers' messages: their size, rate, texts and numbers. Pure.

pub(crate) mod bounds;
pub(crate) mod measured;
pub(crate) mod texts;
pub(crate) mod unasked;
