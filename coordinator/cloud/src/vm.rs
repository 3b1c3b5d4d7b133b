//! State of one VM at its provider.

use std::fmt;

use dormouse_units::{HostId, Money, Price, Time, TypeName};

use crate::{BillingMeter, ChargedInterval, Market, ResourceVector, TariffName};

/// Stage in a VM's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderVmState {
    /// The VM is requested and not usable yet; it is not charged unless [`crate::BillingTerms`] says so.
    Booting,
    /// The VM is usable and charged.
    Running,
    /// The VM was commanded to hibernate; it is charged until it is frozen.
    Hibernating,
    /// The VM is frozen and its memory kept; it is not charged unless [`crate::BillingTerms`] says so.
    Hibernated {
        /// Instant at which the VM was frozen.
        since: Time,
    },
    /// The VM was commanded to resume; it is charged from when it runs.
    Resuming,
    /// The VM was ended and can never run again.
    Terminated {
        /// Time at which the VM was gone.
        at: Time,
    },
}

impl fmt::Display for ProviderVmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Booting => f.write_str("booting"),
            Self::Running => f.write_str("running"),
            Self::Hibernating => f.write_str("about to hibernate"),
            Self::Hibernated { since } => write!(f, "hibernated since {since}"),
            Self::Resuming => f.write_str("resuming"),
            Self::Terminated { at } => write!(f, "gone since {at}"),
        }
    }
}

/// One VM as its provider sees it.
#[derive(Clone, Debug)]
pub struct ProviderVm {
    /// The VM's instance type.
    pub kind: TypeName,
    /// Market in which the VM was bought.
    pub market: Market,
    /// Greatest price per hour that the user pays; `None`: unlimited.
    pub bid: Option<Price>,
    /// The host that carries the VM.
    pub host: HostId,
    /// Stage of the VM's life.
    pub state: ProviderVmState,
    /// Instant at which the VM was requested.
    pub launched: Time,
    /// Time at which the VM was first usable; `None`: it has not booted.
    pub usable: Option<Time>,
    pub(crate) size: ResourceVector,
    /// True if the VM counts against the limit of VMs of its type.
    pub(crate) limited: bool,
    /// True if the provider has announced the VM's end.
    pub(crate) has_notice: bool,
    /// True if the VM hibernates to make room for another, so that the provider resumes it.
    pub(crate) is_displaced: bool,
    /// Whether the VM hibernates whenever it is interrupted (`true`), or ends (`false`); `None`:
    /// the kind of each interruption decides.
    pub(crate) hibernates: Option<bool>,
    pub(crate) tariff: TariffName,
    pub(crate) meter: BillingMeter,
    /// Money owed for the VM's surplus credits.
    pub(crate) surcharge: Money,
}

impl ProviderVm {
    /// True if the VM is not terminated.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.state, ProviderVmState::Terminated { .. })
    }

    /// True if the VM hibernates to make room for another.
    #[must_use]
    pub const fn is_displaced(&self) -> bool {
        self.is_displaced
    }

    /// Money owed for the VM up to `now`.
    #[must_use]
    pub fn owed_at(&self, now: Time) -> Money {
        self.meter.owed_at(now, self.tariff) + self.surcharge
    }

    /// Price of the VM now, per hour.
    #[must_use]
    pub const fn price(&self) -> Price {
        self.meter.price()
    }

    /// Time at which the VM was first charged; `None`: not yet.
    #[must_use]
    pub fn charged_from(&self) -> Option<Time> {
        self.meter.first_started()
    }

    /// The completed charged intervals, in order of time.
    #[must_use]
    pub fn charges(&self) -> &[ChargedInterval] {
        self.meter.charges()
    }
}
