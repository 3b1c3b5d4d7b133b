//! One VM, as its provider sees it.

use std::fmt;

use dormouse_units::{HostId, Money, Price, Time, TypeName};

use crate::{Charge, Host, Market, Meter, TariffName};

/// Where a VM is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmState {
    /// Requested, not usable yet; not charged unless [`crate::Billing`] says so.
    Booting,
    /// Usable and charged.
    Running,
    /// Told to hibernate; charged until it has.
    Hibernating,
    /// Frozen, its memory kept; not charged unless [`crate::Billing`] says so.
    Hibernated {
        /// When it took effect.
        since: Time,
    },
    /// Told to resume; charged from when it has.
    Resuming,
    /// Gone for good.
    Terminated {
        /// The emulated time at which it was gone.
        at: Time,
    },
}

impl fmt::Display for VmState {
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
pub struct Vm {
    /// The VM's instance type.
    pub kind: TypeName,
    /// How it was bought.
    pub market: Market,
    /// Most that its user pays; `None`: whatever it costs.
    pub bid: Option<Price>,
    /// The host that carries it.
    pub host: HostId,
    /// Where it is in its life.
    pub state: VmState,
    /// When it was requested.
    pub launched: Time,
    /// When it could first be used; `None`: it still boots.
    pub usable: Option<Time>,
    pub(crate) size: Host,
    /// It counts against the limit of VMs of its type.
    pub(crate) limited: bool,
    /// The provider has said that it will end it.
    pub(crate) has_notice: bool,
    /// It hibernates, or is hibernated, so that another has its room: the provider resumes it.
    pub(crate) is_displaced: bool,
    pub(crate) tariff: TariffName,
    pub(crate) meter: Meter,
}

impl Vm {
    /// Whether the VM is not terminated.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        !matches!(self.state, VmState::Terminated { .. })
    }

    /// Whether it hibernates, or is hibernated, so that another has its room.
    #[must_use]
    pub const fn is_displaced(&self) -> bool {
        self.is_displaced
    }

    /// What is owed for it up to `now`.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        self.meter.owed(now, self.tariff)
    }

    /// What it costs now.
    #[must_use]
    pub const fn price(&self) -> Price {
        self.meter.price()
    }

    /// Since when it is charged for; `None`: it is not yet.
    #[must_use]
    pub fn charged_from(&self) -> Option<Time> {
        self.meter.first_started()
    }

    /// The closed charged intervals.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        self.meter.charges()
    }
}
