//! A provider for tests, and a client that calls its API: by queries, with every answer written by the service model.

use std::collections::BTreeMap;

use dormouse_cloud::{
    BurstableTerms, InstanceType, InterruptionModel, PriceTrace, ResourceVector, SpotAvailability,
    TariffName, VmLimits,
};
use dormouse_ec2_wire::{ApiError, ServiceModel, WireValue, read_request, write_response};
use dormouse_model::{Setup, UsageInformation};
use dormouse_units::{Bytes, Credits, Money, Ppm, Price, Span, Time, TypeName};

use crate::{DeskConfig, Ec2Session};

/// The date of the run's beginning, 2026-11-27T00:00:00Z, in microseconds since 1970.
pub(crate) const BEGINS: i64 = 1_795_737_600_000_000;

fn price(milli_cents: u64) -> Price {
    Price::from_nanos_per_hour(milli_cents * 10_000)
}

fn kind(name: &str, vcpus: u32, on_demand: u64, spot: u64) -> InstanceType {
    InstanceType {
        name: TypeName::from(name),
        vcpus,
        memory: Bytes::new(4 << 30),
        disk: Bytes::ZERO,
        mflops: 10_000,
        on_demand: Some(price(on_demand)),
        spot: Some(price(spot)),
        limits: VmLimits { spot: 1_000, on_demand: 1_000 },
        burstable: None,
    }
}

/// A provider for tests. c5.large has a spot price of $0.03, $0.06 from the first hour on, and $0.03 from the second
/// on; m5.large costs $0.04, with two instances available in the first three hours, none in the next hour and five
/// later; t3.micro is burstable. VMs boot in 60 s, hibernation takes at least 120 s, and Amazon's tariff applies.
pub(crate) fn setup() -> Setup {
    let mut setup = Setup::of_jobs(1, UsageInformation::Exact, 7);
    let burstable = BurstableTerms::new(Ppm::new(100_000), Credits::from_vcpu_micros(720_000_000));
    let burst = InstanceType { burstable: Some(burstable), ..kind("t3.micro", 2, 1_040, 320) };
    let kinds = [kind("c5.large", 2, 8_500, 3_000), kind("m5.large", 2, 9_600, 4_000), burst];
    setup.catalogue.types = kinds.into_iter().map(|kind| (kind.name.clone(), kind)).collect();
    setup.catalogue.boot = Span::from_secs(60);
    setup.catalogue.hibernation = Span::from_secs(120);
    setup.preemption_notice = Span::from_secs(120);
    setup.terms.tariff = TariffName::Ec2;
    let at = Time::from_secs;
    let trace = PriceTrace::new(vec![
        (at(0), price(3_000)),
        (at(3_600), price(6_000)),
        (at(7_200), price(3_000)),
    ]);
    setup.terms.prices = BTreeMap::from([(TypeName::from("c5.large"), trace)]);
    let scarce = SpotAvailability::new(vec![(at(0), 2), (at(10_800), 0), (at(14_400), 5)]);
    setup.terms.availability = BTreeMap::from([(TypeName::from("m5.large"), scarce)]);
    setup
}

/// The API of a provider, and its one caller.
pub(crate) struct Client {
    pub(crate) session: Ec2Session,
    model: ServiceModel,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::of(setup(), &[], |_| {})
    }

    pub(crate) fn of(
        setup: Setup,
        hosts: &[ResourceVector],
        change: impl FnOnce(&mut DeskConfig),
    ) -> Self {
        let mut config = DeskConfig { begins_unix_us: BEGINS, ..DeskConfig::default() };
        change(&mut config);
        let model = ServiceModel::ec2().expect("it is built in");
        Self { session: Ec2Session::new(setup, hosts, config), model }
    }

    pub(crate) fn with_laws(laws: Vec<InterruptionModel>) -> Self {
        Self::of(Setup { interruptions: laws, ..setup() }, &[], |_| {})
    }

    /// Calls an action with these parameters.
    pub(crate) fn call(&mut self, query: &str) -> Result<WireValue, ApiError> {
        let request = read_request(&self.model, &format!("Version=2016-11-15&Action={query}"))?;
        let answer = self.session.call("AKIA", "us-east-1", &request)?;
        write_response(&self.model, &request.action, &answer, "id").expect("the model has it all");
        Ok(answer)
    }

    pub(crate) fn ok(&mut self, query: &str) -> WireValue {
        self.call(query).unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    pub(crate) fn code(&mut self, query: &str) -> String {
        self.call(query).expect_err(query).code
    }

    /// Calls RunInstances; returns the ids of the instances.
    pub(crate) fn run(&mut self, query: &str) -> Vec<String> {
        let answer = self.ok(&format!("RunInstances&ImageId=ami-12345678&{query}"));
        ids(answer.list("Instances"), "InstanceId")
    }

    /// Calls RequestSpotInstances; returns the id of the first spot request.
    pub(crate) fn request(&mut self, query: &str) -> String {
        let answer = self
            .ok(&format!("RequestSpotInstances&LaunchSpecification.ImageId=ami-12345678&{query}"));
        ids(answer.list("SpotInstanceRequests"), "SpotInstanceRequestId").remove(0)
    }

    pub(crate) fn at(&mut self, seconds: u64) {
        self.session.advance_to(Time::from_secs(seconds));
    }

    pub(crate) fn instance(&mut self, id: &str) -> WireValue {
        let answer = self.ok(&format!("DescribeInstances&InstanceId.1={id}"));
        answer.list("Reservations")[0].list("Instances")[0].clone()
    }

    pub(crate) fn state(&mut self, id: &str) -> String {
        text(&self.instance(id), &["State", "Name"])
    }

    /// State and status code of a spot request.
    pub(crate) fn status(&mut self, id: &str) -> (String, String) {
        let request = self.spot_request(id);
        (text(&request, &["State"]), text(&request, &["Status", "Code"]))
    }

    pub(crate) fn spot_request(&mut self, id: &str) -> WireValue {
        let answer = self.ok(&format!("DescribeSpotInstanceRequests&SpotInstanceRequestId.1={id}"));
        answer.list("SpotInstanceRequests")[0].clone()
    }

    /// The cost of an instance until now.
    pub(crate) fn owed(&self, id: &str) -> Money {
        let bills = self.session.bills();
        bills.iter().find(|bill| bill.instance == id).expect("it is billed").owed
    }
}

pub(crate) fn text(value: &WireValue, path: &[&str]) -> String {
    value.at(path).and_then(WireValue::as_text).unwrap_or_default().to_owned()
}

pub(crate) fn ids(list: &[WireValue], name: &str) -> Vec<String> {
    list.iter().filter_map(|it| it.text(name)).map(str::to_owned).collect()
}
