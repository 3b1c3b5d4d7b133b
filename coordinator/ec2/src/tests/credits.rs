//! Tests of CPU credits on the bill. A t3.micro here has two vCPUs, earns 12 credits an hour and holds at most 288; its price is
//! $0.0104 an hour on demand, and a surplus vCPU-hour costs $0.05.

use dormouse_cloud::{Interruption, InterruptionAction, InterruptionModel, InterruptionTarget};
use dormouse_model::{Effect, Step};
use dormouse_units::{Credits, Money, Ppm, Span, Time};

use crate::testing::{Client, ids, setup, text};
use crate::{DeskConfig, Ec2Session};

const HOUR: u64 = 3_600;

/// Launches a t3.micro in this mode whose programs use this part of each vCPU; it runs from second 60 on.
fn launch(api: &mut Client, mode: &str, part: &str) -> String {
    let id = api.run(&format!(
        "InstanceType=t3.micro&MinCount=1&MaxCount=1&CreditSpecification.CpuCredits={mode}\
         &TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=dormouse:vcpu-use\
         &TagSpecification.1.Tag.1.Value={part}"
    ));
    id.into_iter().next().expect("one is launched")
}

fn tag(api: &mut Client, id: &str, part: &str) {
    api.ok(&format!("CreateTags&ResourceId.1={id}&Tag.1.Key=dormouse:vcpu-use&Tag.1.Value={part}"));
}

fn set_mode(api: &mut Client, id: &str, mode: &str) {
    let of = "InstanceCreditSpecification.1";
    let answer = api.ok(&format!(
        "ModifyInstanceCreditSpecification&{of}.InstanceId={id}&{of}.CpuCredits={mode}"
    ));
    assert_eq!(ids(answer.list("SuccessfulInstanceCreditSpecifications"), "InstanceId"), [id]);
}

/// Dollars owed for the only instance, in thousandths of a cent.
fn owed(api: &Client) -> i64 {
    let bills = api.session.bills();
    assert_eq!(bills.len(), 1);
    bills[0].owed.as_nanos() / 10_000
}

/// Ends the run, and has its log checked by an account of its own.
fn close(mut api: Client) -> Vec<Step> {
    api.session.close();
    let steps = api.session.take_steps();
    let setup = Ec2Session::setup_of(setup());
    let violations = dormouse_analysis::check_bag(&setup, &steps, Span::ZERO, true);
    assert!(violations.is_empty(), "{violations:?}");
    steps
}

#[test]
fn surplus_credits_are_charged_when_the_instance_ends() {
    let mut api = Client::new();
    let id = launch(&mut api, "unlimited", "0.5");
    api.at(60 + 3 * HOUR);
    api.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    // 60 credits an hour are spent and 12 earned: 144 in 3 h, 2.4 vCPU-hours, $.12; and 3 x $.0104.
    assert_eq!(owed(&api), 15_120);
    let steps = close(api);
    let charged = steps.iter().flat_map(|step| &step.effects).find_map(|effect| match effect {
        Effect::SurplusCharged { credits, cost, .. } => Some((*credits, *cost)),
        _ => None,
    });
    assert_eq!(charged, Some((Credits::whole_credits(144), Money::from_nanos(120_000_000))));
    // A charge for other credits, at their price, is found.
    let mut wrong = steps;
    for effect in wrong.iter_mut().flat_map(|step| &mut step.effects) {
        match effect {
            Effect::SurplusCharged { credits, cost, .. } => {
                (*credits, *cost) = (Credits::whole_credits(120), Money::from_nanos(100_000_000));
            }
            Effect::VmEnded { cost, .. } => *cost = Money::from_nanos(131_200_000),
            _ => {}
        }
    }
    let setup = Ec2Session::setup_of(setup());
    let violations = dormouse_analysis::check_bag(&setup, &wrong, Span::ZERO, true);
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(violations[0].what.contains("its use leads to 144"), "{}", violations[0].what);
}

#[test]
fn a_change_to_standard_mode_charges_the_surplus_so_far() {
    let mut api = Client::new();
    let id = launch(&mut api, "standard", "0.5");
    api.at(60 + HOUR);
    set_mode(&mut api, &id, "unlimited");
    api.at(60 + 2 * HOUR);
    set_mode(&mut api, &id, "standard");
    api.at(60 + 5 * HOUR);
    api.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    // Only the second hour has a surplus: 48 credits, .8 vCPU-hours, $.04; and 5 x $.0104.
    assert_eq!(owed(&api), 9_200);
    close(api);
}

#[test]
fn a_surplus_is_paid_back_by_what_is_earned_and_beyond_a_day_s_credits_charged() {
    let mut api = Client::new();
    let id = launch(&mut api, "unlimited", "0.5");
    api.at(60 + HOUR);
    tag(&mut api, &id, "0");
    // 48 credits are earned in 4 h.
    api.at(60 + 5 * HOUR);
    api.ok(&format!("StopInstances&InstanceId.1={id}"));
    assert_eq!(owed(&api), 5_200);
    close(api);
    // 108 credits an hour for 10 h: of 1,080 no more than 288 can be paid back.
    let mut api = Client::new();
    let id = launch(&mut api, "unlimited", "1");
    api.at(60 + 10 * HOUR);
    tag(&mut api, &id, "0");
    api.at(60 + 40 * HOUR);
    api.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    // 792 credits, 13.2 vCPU-hours, $.66; and 40 x $.0104.
    assert_eq!(owed(&api), 107_600);
}

#[test]
fn use_may_be_that_of_the_experiment() {
    let declare = |config: &mut DeskConfig| config.vcpu_use = Ppm::new(500_000);
    let mut api = Client::of(setup(), &[], declare);
    let id = launch(&mut api, "unlimited", "0.1");
    api.at(60 + HOUR);
    // At its baseline of a tenth it has no surplus; then the experiment's half holds for an hour.
    api.ok(&format!("DeleteTags&ResourceId.1={id}&Tag.1.Key=dormouse:vcpu-use"));
    api.at(60 + 2 * HOUR);
    api.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    assert_eq!(owed(&api), 2 * 1_040 + 4_000);
    close(api);
}

#[test]
fn a_hibernated_instance_neither_earns_nor_spends() {
    let act = |hour: u64, action| Interruption {
        at: Time::from_secs(60 + hour * HOUR),
        action,
        target: InterruptionTarget::All,
    };
    let acts = vec![act(1, InterruptionAction::Hibernate), act(3, InterruptionAction::Resume)];
    let laws = vec![InterruptionModel::Schedule { acts }];
    let setup = dormouse_model::Setup { interruptions: laws, ..setup() };
    let mut api = Client::of(setup.clone(), &[], |config| config.vcpu_use = Ppm::new(500_000));
    api.run(
        "InstanceType=t3.micro&MinCount=1&MaxCount=1&CreditSpecification.CpuCredits=unlimited\
         &InstanceMarketOptions.MarketType=spot&InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent\
         &InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=hibernate",
    );
    api.at(60 + 2 * HOUR);
    // Its first hour is free at the spot price, as EC2 has ended it; its surplus is not: 48 credits, $.04.
    let first = owed(&api);
    api.at(60 + 4 * HOUR);
    assert_eq!(first, owed(&api) - 320);
    api.session.close();
    // Another hour, and another 48 credits.
    assert_eq!(owed(&api), 320 + 8_000 + (first - 4_000));
    let steps = api.session.take_steps();
    let setup = Ec2Session::setup_of(setup);
    let violations = dormouse_analysis::check_bag(&setup, &steps, Span::ZERO, true);
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn credits_are_described_by_their_mode_and_wrong_ones_refused() {
    let mut api = Client::new();
    let own = [launch(&mut api, "unlimited", "0"), launch(&mut api, "standard", "0")];
    api.run("InstanceType=c5.large&MinCount=1&MaxCount=1");
    let modes = |api: &mut Client, query: &str| {
        let answer = api.ok(&format!("DescribeInstanceCreditSpecifications{query}"));
        let all = answer.list("InstanceCreditSpecifications").iter();
        all.map(|it| text(it, &["CpuCredits"])).collect::<Vec<_>>()
    };
    assert_eq!(modes(&mut api, ""), ["unlimited", "standard"]);
    let by_filter = format!("&Filter.1.Name=instance-id&Filter.1.Value.1={}", own[1]);
    assert_eq!(modes(&mut api, &by_filter), ["standard"]);
    assert_eq!(modes(&mut api, &format!("&InstanceId.1={}", own[0])), ["unlimited"]);
    let wrong = "RunInstances&ImageId=ami-12345678&InstanceType=t3.micro&MinCount=1&MaxCount=1";
    assert_eq!(
        api.code(&format!("{wrong}&CreditSpecification.CpuCredits=fast")),
        "InvalidParameterValue"
    );
    let id = &own[0];
    let tag = format!("CreateTags&ResourceId.1={id}&Tag.1.Key=dormouse:vcpu-use&Tag.1.Value=2");
    assert_eq!(api.code(&tag), "InvalidParameterValue");
    let of = "InstanceCreditSpecification.1";
    let fast = format!("ModifyInstanceCreditSpecification&{of}.InstanceId={id}&{of}.CpuCredits=x");
    assert_eq!(api.code(&fast), "InvalidParameterValue");
}
