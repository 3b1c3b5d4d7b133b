//! Readings of the recursion: the paper's text has slips, its authors' code has others.

use dormouse_model::DpMode;

/// Reading of the paper's probability that a VM of some age is preempted before a checkpoint is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureProbability {
    /// The probability is conditional on the age that the VM has reached: (F(t') − F(t)) / (1 − F(t)).
    Conditional,
    /// The probability is unconditional, as if the VM's age were not known: F(t') − F(t).
    Unconditional,
}

/// Work that a failure is expected to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureLoss {
    /// All work since the last checkpoint until the VM is preempted is lost, by the distribution of lifetimes.
    Exact,
    /// A failure loses half of the time between its chunk's beginning and the next checkpoint.
    Half,
}

/// Reading of the way in which a job continues after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// The job continues from its last checkpoint on a new VM, of age zero: an equation with the
    /// unknown on both sides, which is solved.
    Fresh,
    /// The rule behind the authors' reference values: the next VM has the age at which the job began plus the restart. The job's
    /// time there is the least over i of P_succ · (i + δ + rest) + P_fail / P_succ · ((i + δ) / 2 + restart), but no less than its
    /// work. As the weights of the two branches don't add up to one, this time is too short.
    SameAge,
}

/// A reading of the recursion that chooses the chunks (bathtub paper, Eq. 9 to 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Reading of the probabilities, a [`FailureProbability`].
    pub probability: FailureProbability,
    /// Reading of the work that a failure undoes, a [`FailureLoss`].
    pub loss: FailureLoss,
    /// Reading of what follows a failure, an [`AfterFailure`].
    pub after_failure: AfterFailure,
    /// True if a checkpoint is also taken when the work is done.
    pub last_checkpoint: bool,
}

impl Rules {
    /// The recursion with the meaning that its text gives: see [`DpMode::Conditional`].
    pub const CONDITIONAL: Self = Self {
        probability: FailureProbability::Conditional,
        loss: FailureLoss::Exact,
        after_failure: AfterFailure::Fresh,
        last_checkpoint: false,
    };

    /// The recursion as its authors computed it: see [`DpMode::Artifact`].
    pub const ARTIFACT: Self = Self {
        probability: FailureProbability::Unconditional,
        loss: FailureLoss::Half,
        after_failure: AfterFailure::SameAge,
        last_checkpoint: true,
    };
}

impl From<DpMode> for Rules {
    fn from(mode: DpMode) -> Self {
        match mode {
            DpMode::Conditional => Self::CONDITIONAL,
            DpMode::Artifact => Self::ARTIFACT,
        }
    }
}
