//! Reasons for wake-ups, encoded as tokens.

use dormouse_units::VmId;

/// Reason for a wake-up, kept in the upper half of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeupPurpose {
    /// The scheduler wakes up at the end of a VM's allocation cycle.
    CycleEnd(VmId),
    /// The scheduler wakes up at the last moment to migrate tasks of hibernated VMs (HADS).
    Migrate,
    /// The scheduler wakes up to try refused launches again.
    Retry,
    /// The scheduler wakes up at the last moment to checkpoint the tasks of a VM that will be killed.
    LastCheckpoint(VmId),
}

const CYCLE_END: u64 = 1;
const MIGRATE: u64 = 2;
const RETRY: u64 = 3;
const LAST_CHECKPOINT: u64 = 4;

impl WakeupPurpose {
    pub(crate) fn to_token(self) -> u64 {
        match self {
            Self::CycleEnd(vm) => CYCLE_END << 32 | u64::from(vm.get()),
            Self::Migrate => MIGRATE << 32,
            Self::Retry => RETRY << 32,
            Self::LastCheckpoint(vm) => LAST_CHECKPOINT << 32 | u64::from(vm.get()),
        }
    }

    /// Decodes a token; `None` for a token that another policy made.
    pub(crate) fn from_token(token: u64) -> Option<Self> {
        let low = u32::try_from(token & 0xffff_ffff).ok()?;
        match (token >> 32, low) {
            (CYCLE_END, vm) => Some(Self::CycleEnd(VmId::new(vm))),
            (MIGRATE, 0) => Some(Self::Migrate),
            (RETRY, 0) => Some(Self::Retry),
            (LAST_CHECKPOINT, vm) => Some(Self::LastCheckpoint(VmId::new(vm))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back() {
        let vm = VmId::new(7);
        for purpose in [
            WakeupPurpose::CycleEnd(vm),
            WakeupPurpose::Migrate,
            WakeupPurpose::Retry,
            WakeupPurpose::LastCheckpoint(vm),
        ] {
            assert_eq!(WakeupPurpose::from_token(purpose.to_token()), Some(purpose));
        }
        assert_eq!(
            [WakeupPurpose::from_token(7), WakeupPurpose::from_token(MIGRATE << 32 | 1)],
            [None, None]
        );
    }
}
