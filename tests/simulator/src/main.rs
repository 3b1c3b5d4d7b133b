//! The `simulate` command.

fn main() {}
