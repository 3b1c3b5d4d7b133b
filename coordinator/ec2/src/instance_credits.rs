//! CPU credits of burstable instances: their mode, and what the programs on them use of their vCPUs.

use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Decision;
use dormouse_units::{Ppm, Price};

use crate::credit_terms::{check_mode, declared_by};
use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::ec2_instance::Ec2Instance;
use crate::listing::{filter_by, refuse_others, take_page};

/// Prices of a surplus vCPU-hour at EC2, of t4g types and of others, for types to which the experiment gives none.
const SURPLUS: (Price, Price) =
    (Price::from_nanos_per_hour(40_000_000), Price::from_nanos_per_hour(50_000_000));

/// The error for an instance whose type has no credits.
fn no_credits() -> ApiError {
    let text = "Only instances of burstable types have credits.";
    ApiError::new("InstanceCreditSpecification.NotSupported", text)
}

impl ApiDesk {
    /// The mode of an instance's credits: the mode that its user chose, or the mode of the experiment's instance type; `None`: the
    /// instance is not burstable.
    fn credits_of(&self, it: &Ec2Instance) -> Option<String> {
        let burstable = self.market.offer(&it.pool.kind)?.burstable?;
        let of_type = if burstable.surplus.is_some() { "unlimited" } else { "standard" };
        Some(it.spec.cpu_credits.clone().unwrap_or_else(|| of_type.to_owned()))
    }

    /// Decides what the programs on a burstable instance use of its vCPUs from now on, and whether surplus credits are charged.
    /// Without any use there is no surplus, and nothing to decide; where programs run on instances, their use is measured.
    pub(crate) fn declare_use(&mut self, index: usize, out: &mut Vec<Decision>) {
        if self.config.runs_programs {
            return;
        }
        let Some(it) = self.instances.get(index) else { return };
        let (Some(vm), Some(mode)) = (it.vm, self.credits_of(it)) else { return };
        let by_tag = declared_by(&it.tags).ok().flatten();
        let used = by_tag.unwrap_or(self.config.vcpu_use);
        let of_type = self.market.offer(&it.pool.kind).and_then(|offer| offer.burstable);
        let of_family = if it.pool.name.starts_with("t4g") { SURPLUS.0 } else { SURPLUS.1 };
        let price = of_type.and_then(|of| of.surplus).unwrap_or(of_family);
        let wanted = (used, (mode == "unlimited").then_some(price));
        if it.declared.map_or(used == Ppm::ZERO, |known| known == wanted) {
            return;
        }
        if let Some(it) = self.instances.get_mut(index) {
            it.declared = Some(wanted);
        }
        out.push(Decision::SetVcpuUse { vm, used: wanted.0, surplus: wanted.1 });
    }

    pub(crate) fn describe_credits(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["InstanceIds", "Filters", "DryRun", "NextToken", "MaxResults"];
        refuse_others("DescribeInstanceCreditSpecifications", input, &played)?;
        let found = self.found_instances(scope, input)?.into_iter().filter(|it| it.is_alive());
        let found: Vec<&Ec2Instance> = found.collect();
        let named = !input.list("InstanceIds").is_empty();
        let has_none = |it: &&Ec2Instance| !self.has_credits(std::slice::from_ref(&it.pool));
        if named && found.iter().any(has_none) {
            return Err(no_credits());
        }
        let id_of =
            |it: &&Ec2Instance, name: &str| (name == "instance-id").then(|| vec![it.id.clone()]);
        let found = filter_by(found, input, id_of, &["instance-id"])?;
        let of = |it: &Ec2Instance| {
            // A type that is burstable by its name alone has no credits in the experiment.
            let credits = self.credits_of(it).or_else(|| named.then(|| "standard".to_owned()))?;
            let named = WireValue::structure().with("InstanceId", it.id.as_str());
            Some(named.with("CpuCredits", credits))
        };
        let found: Vec<WireValue> = found.into_iter().filter_map(of).collect();
        let (page, next) = take_page(found, input, (5, 1_000))?;
        Ok(WireValue::structure()
            .with("InstanceCreditSpecifications", WireValue::List(page))
            .with_some("NextToken", next))
    }

    /// Changes the modes of instances' credits. A change to standard mode charges the surplus until then.
    pub(crate) fn modify_credits(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["InstanceCreditSpecifications", "ClientToken", "DryRun"];
        refuse_others("ModifyInstanceCreditSpecification", input, &played)?;
        for mode in input.list("InstanceCreditSpecifications") {
            check_mode(mode.text("CpuCredits").unwrap_or_default())?;
        }
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for wanted in input.list("InstanceCreditSpecifications") {
            let id = wanted.text("InstanceId").unwrap_or_default();
            let mode = wanted.text("CpuCredits").unwrap_or_default();
            let answer = WireValue::structure().with("InstanceId", id);
            match self.set_mode(scope, id, mode, out) {
                Ok(()) => done.push(answer),
                Err(ApiError { code, message }) => {
                    let error = WireValue::structure().with("Code", code).with("Message", message);
                    failed.push(answer.with("Error", error));
                }
            }
        }
        Ok(PendingAnswer::Ready(
            WireValue::structure()
                .with("SuccessfulInstanceCreditSpecifications", done)
                .with("UnsuccessfulInstanceCreditSpecifications", failed),
        ))
    }

    fn set_mode(
        &mut self,
        scope: &CallScope,
        id: &str,
        mode: &str,
        out: &mut Vec<Decision>,
    ) -> Result<(), ApiError> {
        let index = self.instance_of(scope, id)?;
        if self.instances.get(index).and_then(|it| self.credits_of(it)).is_none() {
            return Err(no_credits());
        }
        if let Some(it) = self.instances.get_mut(index) {
            it.spec.cpu_credits = Some(mode.to_owned());
        }
        self.declare_use(index, out);
        Ok(())
    }
}
