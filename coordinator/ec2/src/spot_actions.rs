//! RequestSpotInstances and CancelSpotInstanceRequests.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Decision;
use dormouse_units::Span;

use crate::calls::end_dry_run;
use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::ec2_instance::{InstanceStage, InterruptionBehavior};
use crate::launch_spec::LaunchSpec;
use crate::listing::refuse_others;
use crate::names::check_id;
use crate::resource_tags::tags_for;
use crate::run_instances::{SpotWish, check_behavior, read_price};
use crate::spot_request::SpotState;

/// How long a one-time request is valid if its user does not say so.
const ONE_TIME_VALIDITY: Span = Span::from_secs(7 * 86_400);

impl ApiDesk {
    pub(crate) fn request_spot_instances(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "LaunchSpecification",
            "TagSpecifications",
            "InstanceInterruptionBehavior",
            "DryRun",
            "SpotPrice",
            "ClientToken",
            "InstanceCount",
            "Type",
            "ValidFrom",
            "ValidUntil",
        ];
        refuse_others("RequestSpotInstances", input, &played)?;
        let Some(launch) = input.member("LaunchSpecification") else {
            let text = "The request must contain the parameter LaunchSpecification";
            return Err(ApiError::new("MissingParameter", text));
        };
        let mut known = crate::launch_spec::PLAYED.to_vec();
        known.retain(|name| *name != "TagSpecifications");
        refuse_others("LaunchSpecification", launch, &known)?;
        let spec = LaunchSpec::default().overridden(launch)?.with_default_type();
        spec.check()?;
        self.check_runs(&spec)?;
        self.check_names(scope, &spec)?;
        self.pools_for(scope, &spec, Market::Spot)?;
        let wish = SpotWish {
            is_persistent: input.text("Type") == Some("persistent"),
            bid: input.text("SpotPrice").filter(|it| !it.is_empty()).map(read_price).transpose()?,
            behavior: InterruptionBehavior::from_name(input.text("InstanceInterruptionBehavior")),
            valid_until: input.instant("ValidUntil"),
        };
        check_behavior(&wish)?;
        let until = wish.valid_until.map(|until| self.time_of(until));
        if until.is_some_and(|until| until <= self.now) {
            let text = "ValidUntil has to be in the future";
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let count = input.integer("InstanceCount").unwrap_or(1);
        if !(1..=1_000).contains(&count) {
            let text = format!("InstanceCount {count} is not from 1 to 1000");
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        end_dry_run(input)?;
        let tags = tags_for(input, "spot-instances-request");
        let from = input.instant("ValidFrom").map(|from| self.time_of(from));
        let usual = || from.unwrap_or(self.now).max(self.now) + ONE_TIME_VALIDITY;
        let until = until.or_else(|| (!wish.is_persistent).then(usual));
        let mut answers = Vec::new();
        for _ in 0..count {
            let id = self.new_request(scope, &spec, (&wish, &tags, None));
            let index = self.request_by_id.get(&id).copied();
            if let Some(request) = index.and_then(|index| self.requests.get_mut(index)) {
                (request.valid_from, request.valid_until) = (from, until);
                if from.is_some_and(|from| from > self.now) {
                    request.becomes(self.now, SpotState::Open, "not-scheduled-yet");
                }
            }
            let request = index.and_then(|index| self.requests.get(index));
            answers.extend(request.map(|request| self.request_to_wire(request)));
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("SpotInstanceRequests", answers)))
    }

    pub(crate) fn cancel_spot_requests(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("CancelSpotInstanceRequests", input, &["SpotInstanceRequestIds", "DryRun"])?;
        let mut named = Vec::new();
        for id in input.texts("SpotInstanceRequestIds") {
            named.push(self.request_of(scope, id)?);
        }
        end_dry_run(input)?;
        let mut answers = Vec::new();
        for index in named {
            let Some(request) = self.requests.get(index) else { continue };
            let (id, state, instance) =
                (request.id.clone(), request.state, request.instance.clone());
            let becomes = match state {
                SpotState::Open => Some("canceled-before-fulfillment"),
                SpotState::Active => Some("request-canceled-and-instance-running"),
                SpotState::Disabled => Some("instance-terminated-by-user"),
                SpotState::Closed | SpotState::Cancelled => None,
            };
            if let Some(code) = becomes {
                self.settle_request(&id, SpotState::Cancelled, code);
            }
            // A stopped or hibernated instance ends with its request.
            let instance = instance.and_then(|id| self.by_id.get(&id).copied());
            let stopped = instance.filter(|index| {
                self.instances.get(*index).is_some_and(|it| {
                    matches!(it.stage, InstanceStage::Stopped | InstanceStage::Stopping)
                })
            });
            if let Some(instance) = stopped.filter(|_| state == SpotState::Disabled) {
                self.terminate(instance, out);
            }
            let said = if state == SpotState::Closed { "closed" } else { "cancelled" };
            answers
                .push(WireValue::structure().with("SpotInstanceRequestId", id).with("State", said));
        }
        Ok(PendingAnswer::Ready(
            WireValue::structure().with("CancelledSpotInstanceRequests", answers),
        ))
    }

    /// The index of a caller's spot request with this id.
    ///
    /// # Errors
    ///
    /// `InvalidSpotInstanceRequestID.Malformed` or `InvalidSpotInstanceRequestID.NotFound`.
    pub(crate) fn request_of(&self, scope: &CallScope, id: &str) -> Result<usize, ApiError> {
        check_id("InvalidSpotInstanceRequestID.Malformed", id, "sir-")?;
        let own = |index: &&usize| {
            let request = self.requests.get(**index);
            request.is_some_and(|it| it.scope == *scope)
        };
        let none = || {
            let text = format!("The spot instance request ID '{id}' does not exist");
            ApiError::new("InvalidSpotInstanceRequestID.NotFound", text)
        };
        self.request_by_id.get(id).filter(own).copied().ok_or_else(none)
    }
}
