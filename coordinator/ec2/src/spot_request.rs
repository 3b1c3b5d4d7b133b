//! Requests for spot instances: their states and status codes are those of EC2's page "spot-request-status".

use dormouse_units::{Price, Time};

use crate::desk_records::CallScope;
use crate::ec2_instance::InterruptionBehavior;
use crate::launch_spec::LaunchSpec;

/// State of a spot request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpotState {
    Open,
    Active,
    /// The request's instance is stopped or hibernated.
    Disabled,
    Closed,
    Cancelled,
}

impl SpotState {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Closed => "closed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A request for one spot instance.
#[derive(Clone, Debug)]
pub(crate) struct SpotRequest {
    pub(crate) id: String,
    pub(crate) scope: CallScope,
    pub(crate) created: Time,
    pub(crate) is_persistent: bool,
    /// The highest price per hour that is paid; `None`: any price.
    pub(crate) bid: Option<Price>,
    pub(crate) behavior: InterruptionBehavior,
    pub(crate) valid_from: Option<Time>,
    pub(crate) valid_until: Option<Time>,
    pub(crate) state: SpotState,
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
    pub(crate) updated: Time,
    /// The instance that the request has, or had last.
    pub(crate) instance: Option<String>,
    pub(crate) zone: Option<String>,
    pub(crate) spec: LaunchSpec,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) fleet: Option<String>,
}

impl SpotRequest {
    /// Changes the state and the status code. A request that is closed or cancelled stays so.
    pub(crate) fn becomes(&mut self, now: Time, state: SpotState, code: &'static str) {
        let is_over = matches!(self.state, SpotState::Closed | SpotState::Cancelled);
        let state = if is_over { self.state } else { state };
        if (self.state, self.code) != (state, code) {
            (self.state, self.code, self.message) = (state, code, message_of(code));
            self.updated = now;
        }
    }

    /// Whether the request still wants an instance now.
    pub(crate) fn wants_now(&self, now: Time) -> bool {
        self.state == SpotState::Open && self.valid_from.is_none_or(|from| from <= now)
    }
}

/// EC2's message for a status code.
pub(crate) fn message_of(code: &str) -> &'static str {
    match code {
        "pending-evaluation" => {
            "Your Spot request has been submitted for review, and is pending evaluation."
        }
        "pending-fulfillment" => "Your Spot request is pending fulfillment.",
        "fulfilled" => "Your Spot request is fulfilled.",
        "price-too-low" => {
            "Your Spot request price is lower than the minimum required Spot request fulfillment price."
        }
        "capacity-not-available" => {
            "There is no Spot capacity available that matches your request."
        }
        "constraint-not-fulfillable" => {
            "Your Spot request can't be fulfilled: no subnet has a free address for it."
        }
        "limit-exceeded" => "Your Spot request would exceed a limit of the account.",
        "not-scheduled-yet" => "Your Spot request will not be evaluated until the scheduled date.",
        "schedule-expired" => "Your Spot request expired before it was fulfilled.",
        "canceled-before-fulfillment" => "Your Spot request is canceled before it was fulfilled.",
        "request-canceled-and-instance-running" => {
            "Your Spot request is canceled, but your instance is still running."
        }
        "marked-for-stop" => "Your Spot instance is marked for stop, and will be stopped.",
        "marked-for-termination" => {
            "Your Spot instance is marked for termination, and will be terminated."
        }
        "instance-stopped-by-price" => {
            "Your Spot instance was stopped, as the Spot price exceeds your maximum price."
        }
        "instance-stopped-by-user" => "Your Spot instance was stopped by you.",
        "instance-stopped-no-capacity" => {
            "Your Spot instance was stopped, as there is no Spot capacity available."
        }
        "instance-terminated-by-price" => {
            "Your Spot instance was terminated, as the Spot price exceeds your maximum price."
        }
        "instance-terminated-by-user" => "Your Spot instance was terminated by you.",
        "instance-terminated-no-capacity" => {
            "Your Spot instance was terminated, as there is no Spot capacity available."
        }
        _ => "The status of your Spot request has changed.",
    }
}
