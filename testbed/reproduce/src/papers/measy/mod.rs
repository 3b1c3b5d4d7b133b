//! MEASY: "Scheduling Parallel Jobs Using Migration and Consolidation in the Cloud", Figures 6 to 14 and the claims
//! of its text; and the same for the log of KTH-SP2, which the paper does not have.

/// Data file of this paper: its experiments, printed values and claims.
pub(super) const DATA: &str = include_str!("paper.toml");
