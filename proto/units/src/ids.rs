//! Ids and names of a run's parts. A part that can end and return under the same name also has the number of its
//! incarnation.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
            JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The id with this number.
            #[must_use]
            pub const fn new(n: u32) -> Self {
                Self(n)
            }

            /// The number of this id.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// The id after this one; the largest id is its own successor.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<u32> for $name {
            fn from(n: u32) -> Self {
                Self(n)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// Id of a virtual machine, assigned by the scheduler that requests the VM; never reused within a run.
    VmId, "vm"
);
id!(
    /// Id of a task: its index in the workload.
    TaskId, "task"
);
id!(
    /// Id of a request for a VM by a customer of the provider: its index in the stream of requests.
    RequestId, "request"
);
id!(
    /// Id of a tenant: its index among the tenants that share a run.
    TenantId, "tenant"
);
id!(
    /// Id of a host that carries VMs: a worker in a live run, a modelled host in virtual time.
    HostId, "host"
);
id!(
    /// Id of an injected fault: its index among the experiment's faults, ordered by time.
    FaultId, "fault"
);
id!(
    /// Number of an attempt at a task: every start of the task on a VM is a new attempt.
    Attempt, "attempt"
);
id!(
    /// Number of one session of a worker, or of one life of a VM, that can end and begin again under the same name.
    Incarnation, "life"
);
id!(
    /// Number of a checkpoint of a task, from 1 in the order in which the task's checkpoints were commanded.
    CheckpointSeq, "ckpt"
);

/// Defines a type for names that is cheap to clone.
macro_rules! name {
    ($(#[$doc:meta])* $Name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name(Arc<str>);

        impl $Name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $Name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $Name {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl std::borrow::Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from).map(Self::from)
            }
        }
    };
}

name! {
    /// The name of an instance type, such as `c3.large`; where its provider has zones, with the zone
    /// behind it: `c3.large@us-east-1a`.
    TypeName
}

name! {
    /// The name of a zone, such as `us-east-1a`.
    ZoneName
}

impl TypeName {
    /// The type of this name in a zone.
    #[must_use]
    pub fn in_zone(&self, zone: &ZoneName) -> Self {
        Self::from(format!("{self}@{zone}"))
    }

    /// The zone of the type; `None`: its provider has no zones.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.0.rsplit_once('@').map(|(_, zone)| zone)
    }

    /// The name of the type without its zone.
    #[must_use]
    pub fn without_zone(&self) -> &str {
        self.0.rsplit_once('@').map_or(&self.0, |(name, _)| name)
    }
}
