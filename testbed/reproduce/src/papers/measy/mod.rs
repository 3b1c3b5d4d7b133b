//! MEASY: "Parallel job scheduling by migration and consolidation", Figures 6 to 14 and what its text
//! says of them, and the same of the log of KTH-SP2, which the paper does not have.

/// The data file.
pub(super) const DATA: &str = include_str!("paper.toml");
