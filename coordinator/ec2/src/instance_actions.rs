//! TerminateInstances, StopInstances, StartInstances, RebootInstances.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Decision;

use crate::announcements::AnnouncedChange;
use crate::calls::end_dry_run;
use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::ec2_instance::{InstanceStage, StoppedBy};
use crate::listing::refuse_others;
use crate::spot_request::SpotState;

/// An element of an answer that shows the change of an instance's stage.
fn change(id: &str, before: InstanceStage, now: WireValue) -> WireValue {
    WireValue::structure()
        .with("InstanceId", id)
        .with("PreviousState", before.to_wire())
        .with("CurrentState", now)
}

fn state(code: i64, name: &str) -> WireValue {
    WireValue::structure().with("Code", code).with("Name", name)
}

impl ApiDesk {
    /// The instances that a call names, each once.
    ///
    /// # Errors
    ///
    /// `InvalidParameterCombination` if the call names none; the error for the first instance that the caller does not
    /// have.
    pub(crate) fn named_instances(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<Vec<usize>, ApiError> {
        let mut named = Vec::new();
        for index in self.all_instances(scope, &input.texts("InstanceIds"))? {
            if !named.contains(&index) {
                named.push(index);
            }
        }
        if named.is_empty() {
            return Err(ApiError::new("InvalidParameterCombination", "No instances specified"));
        }
        Ok(named)
    }

    pub(crate) fn terminate_instances(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others(
            "TerminateInstances",
            input,
            &["InstanceIds", "DryRun", "Force", "SkipOsShutdown"],
        )?;
        let named = self.named_instances(scope, input)?;
        end_dry_run(input)?;
        for instance in named.iter().filter_map(|index| self.instances.get(*index)) {
            if instance.spec.keeps_from_termination && instance.is_alive() {
                let text = format!(
                    "The instance '{}' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.",
                    instance.id
                );
                return Err(ApiError::new("OperationNotPermitted", text));
            }
        }
        let changes = named.into_iter().map(|index| self.terminate(index, out)).collect::<Vec<_>>();
        Ok(PendingAnswer::Ready(WireValue::structure().with("TerminatingInstances", changes)))
    }

    /// EC2's text for a change that a user wants now.
    fn user_initiated(&self) -> String {
        let at = self.time_text(self.now).replace('T', " ");
        format!("User initiated ({} GMT)", at.split('.').next().unwrap_or_default())
    }

    /// Terminates an instance as its user wants; returns the change of its stage.
    pub(crate) fn terminate(&mut self, index: usize, out: &mut Vec<Decision>) -> WireValue {
        let (now, said) = (self.now, self.user_initiated());
        let Some(instance) = self.instances.get_mut(index) else { return WireValue::structure() };
        let before = instance.stage;
        if !instance.is_alive() {
            return change(&instance.id, before, before.to_wire());
        }
        if let Some(vm) = instance.vm.take() {
            out.push(Decision::Terminate { vm, reason: None });
            self.by_vm.remove(&vm);
        }
        (instance.stage, instance.stopped_by) = (InstanceStage::Terminated(now), None);
        instance.reason = Some((
            "Client.UserInitiatedShutdown",
            "Client.UserInitiatedShutdown: User initiated shutdown",
        ));
        instance.transition = said;
        let (answer, request) = (
            change(&instance.id, before, state(32, "shutting-down")),
            instance.spot_request.clone(),
        );
        self.with_vm.remove(&index);
        self.waiting.remove(&index);
        self.leave_seat(index);
        self.end_volumes(index);
        self.announce(index, AnnouncedChange::State("shutting-down"));
        self.announce(index, AnnouncedChange::State("terminated"));
        if let Some(request) = request {
            self.request_lost_instance(&request, "instance-terminated-by-user");
        }
        answer
    }

    /// Handles that the instance of a request is gone for good: a persistent request opens again.
    pub(crate) fn request_lost_instance(&mut self, id: &str, code: &'static str) {
        let Some(request) = self.request_by_id.get(id).and_then(|index| self.requests.get(*index))
        else {
            return;
        };
        let is_late = request.valid_until.is_some_and(|until| until <= self.now);
        let state = match request.state {
            SpotState::Cancelled => SpotState::Cancelled,
            _ if request.is_persistent && !is_late => SpotState::Open,
            _ => SpotState::Closed,
        };
        self.settle_request(id, state, code);
    }

    pub(crate) fn stop_instances(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["InstanceIds", "Hibernate", "DryRun", "Force", "SkipOsShutdown"];
        refuse_others("StopInstances", input, &played)?;
        let named = self.named_instances(scope, input)?;
        end_dry_run(input)?;
        let hibernates = input.flag("Hibernate") == Some(true);
        for index in &named {
            self.check_stop(*index, hibernates)?;
        }
        let mut changes = Vec::new();
        for index in named {
            changes.push(self.stop(index, hibernates, out));
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("StoppingInstances", changes)))
    }

    fn check_stop(&self, index: usize, hibernates: bool) -> Result<(), ApiError> {
        let Some(instance) = self.instances.get(index) else { return Ok(()) };
        let id = &instance.id;
        if instance.market == Market::Spot && hibernates {
            let text = format!(
                "The spot instance '{id}' can't be hibernated by its user: only EC2 hibernates spot instances"
            );
            return Err(ApiError::new("UnsupportedOperation", text));
        }
        let request = instance.spot_request.as_ref().and_then(|id| self.request_by_id.get(id));
        let request = request.and_then(|index| self.requests.get(*index));
        if instance.market == Market::Spot && request.is_none_or(|request| !request.is_persistent) {
            let text = format!(
                "You can't stop the Spot Instance '{id}' because it is associated with a one-time Spot Instance request. \
                 You can only stop Spot Instances associated with persistent Spot Instance requests."
            );
            return Err(ApiError::new("UnsupportedOperation", text));
        }
        if hibernates && !instance.spec.hibernation {
            let text =
                format!("The instance '{id}' was launched without HibernationOptions.Configured");
            return Err(ApiError::new("UnsupportedHibernationConfiguration", text));
        }
        if instance.spec.keeps_from_stop {
            let text = format!(
                "The instance '{id}' may not be stopped. Modify its 'disableApiStop' instance attribute and try again."
            );
            return Err(ApiError::new("OperationNotPermitted", text));
        }
        match instance.stage {
            InstanceStage::Running | InstanceStage::Stopped | InstanceStage::Stopping => Ok(()),
            stage => {
                let (_, name) = stage.code_and_name();
                let text = format!(
                    "The instance '{id}' is not in a state from which it can be stopped: it is {name}."
                );
                Err(ApiError::new("IncorrectInstanceState", text))
            }
        }
    }

    pub(crate) fn stop(
        &mut self,
        index: usize,
        hibernates: bool,
        out: &mut Vec<Decision>,
    ) -> WireValue {
        let said = self.user_initiated();
        let Some(instance) = self.instances.get_mut(index) else { return WireValue::structure() };
        let before = instance.stage;
        if before != InstanceStage::Running {
            return change(&instance.id, before, before.to_wire());
        }
        if let Some(vm) = instance.vm.take() {
            out.push(Decision::Terminate { vm, reason: None });
            self.by_vm.remove(&vm);
        }
        (instance.stage, instance.stopped_by) = (InstanceStage::Stopped, Some(StoppedBy::User));
        instance.reason = Some(if hibernates {
            (
                "Client.UserInitiatedHibernate",
                "Client.UserInitiatedHibernate: User initiated hibernate",
            )
        } else {
            (
                "Client.UserInitiatedShutdown",
                "Client.UserInitiatedShutdown: User initiated shutdown",
            )
        });
        instance.transition = said;
        let (answer, request) =
            (change(&instance.id, before, state(64, "stopping")), instance.spot_request.clone());
        self.with_vm.remove(&index);
        self.announce(index, AnnouncedChange::State("stopping"));
        self.announce(index, AnnouncedChange::State("stopped"));
        if let Some(request) = request {
            self.settle_request(&request, SpotState::Disabled, "instance-stopped-by-user");
        }
        answer
    }

    pub(crate) fn start_instances(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("StartInstances", input, &["InstanceIds", "DryRun", "AdditionalInfo"])?;
        let named = self.named_instances(scope, input)?;
        end_dry_run(input)?;
        for index in &named {
            self.check_start(*index)?;
        }
        let (mut changes, mut started) = (Vec::new(), Vec::new());
        for index in named {
            let Some(instance) = self.instances.get_mut(index) else { continue };
            let before = instance.stage;
            if before != InstanceStage::Stopped {
                changes.push(change(&instance.id, before, before.to_wire()));
                continue;
            }
            changes.push(change(&instance.id, before, InstanceStage::Pending.to_wire()));
            let request = instance.spot_request.clone();
            self.begin_vm(index, out);
            if let Some(request) = request {
                self.settle_request(&request, SpotState::Active, "fulfilled");
            }
            started.push(index);
        }
        let answer = WireValue::structure().with("StartingInstances", changes);
        Ok(PendingAnswer::Started { instances: started, answer })
    }

    fn check_start(&self, index: usize) -> Result<(), ApiError> {
        let Some(instance) = self.instances.get(index) else { return Ok(()) };
        let id = &instance.id;
        match (instance.stage, instance.stopped_by) {
            (InstanceStage::Stopped, Some(StoppedBy::Provider { .. })) => {
                let text = format!(
                    "EC2 has interrupted the spot instance '{id}': only EC2 can start it again"
                );
                return Err(ApiError::new("IncorrectSpotRequestState", text));
            }
            (InstanceStage::Stopped, _) => {}
            (InstanceStage::Pending | InstanceStage::Running, _) => return Ok(()),
            (stage, _) => {
                let (_, name) = stage.code_and_name();
                let text = format!(
                    "The instance '{id}' is not in a state from which it can be started: it is {name}."
                );
                return Err(ApiError::new("IncorrectInstanceState", text));
            }
        }
        let request = instance.spot_request.as_ref().and_then(|id| self.request_by_id.get(id));
        if request
            .and_then(|at| self.requests.get(*at))
            .is_some_and(|it| it.state == SpotState::Cancelled)
        {
            let text = format!("The spot request of the instance '{id}' is cancelled");
            return Err(ApiError::new("IncorrectSpotRequestState", text));
        }
        let terms = (instance.market, instance.bid);
        match self.room_in(&instance.scope.account, &instance.pool, terms, 1) {
            Ok((0, refusal)) | Err(refusal) => {
                Err(Self::refusal_error(refusal, &instance.pool, terms))
            }
            Ok(_) => Ok(()),
        }
    }

    /// Completes a StartInstances call: instances for which no host had room are stopped as before.
    pub(crate) fn finish_start(
        &mut self,
        started: &[usize],
        answer: WireValue,
    ) -> Result<WireValue, ApiError> {
        let mut refused = None;
        for index in started {
            let Some(instance) = self.instances.get(*index) else { continue };
            if instance.stage == InstanceStage::Stopped {
                refused.get_or_insert_with(|| {
                    let text = "We currently do not have sufficient capacity of the type: no host has room for it.";
                    ApiError::new("InsufficientInstanceCapacity", text)
                });
                if let Some(request) = instance.spot_request.clone() {
                    self.settle_request(&request, SpotState::Disabled, "instance-stopped-by-user");
                }
            }
        }
        refused.map_or(Ok(answer), Err)
    }

    pub(crate) fn reboot_instances(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("RebootInstances", input, &["InstanceIds", "DryRun"])?;
        let named = self.named_instances(scope, input)?;
        end_dry_run(input)?;
        for index in named {
            let Some(instance) = self.instances.get(index) else { continue };
            // Requests to reboot terminated instances are ignored, by the API Reference.
            if matches!(instance.stage, InstanceStage::Stopped | InstanceStage::Stopping) {
                let (id, (_, name)) = (&instance.id, instance.stage.code_and_name());
                let text = format!(
                    "The instance '{id}' is not in a state from which it can be rebooted: it is {name}."
                );
                return Err(ApiError::new("IncorrectInstanceState", text));
            }
        }
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }
}
