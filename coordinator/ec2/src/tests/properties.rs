//! Properties that hold for any sequence of calls.

use std::collections::BTreeMap;

use dormouse_model::Step;
use proptest::prelude::*;

use crate::testing::{Client, ids, setup};
use crate::{DeskConfig, Ec2Session};

#[derive(Clone, Debug)]
enum Act {
    Run {
        kind: usize,
        spot: bool,
        count: u32,
        token: u8,
    },
    Request {
        kind: usize,
        persistent: bool,
        behavior: usize,
        price: u32,
    },
    Terminate(usize),
    Stop(usize),
    Start(usize),
    Cancel(usize),
    /// Declares the use of an instance's vCPUs in eighths, and chooses the mode of its credits.
    Use {
        n: usize,
        eighths: u32,
        unlimited: bool,
    },
    Advance(u64),
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_usize..3, any::<bool>(), 1_u32..4, 0_u8..6)
            .prop_map(|(kind, spot, count, token)| Act::Run { kind, spot, count, token }),
        (0_usize..3, any::<bool>(), 0_usize..3, 1_u32..10).prop_map(
            |(kind, persistent, behavior, price)| Act::Request {
                kind,
                persistent,
                behavior,
                price
            }
        ),
        (0_usize..20).prop_map(Act::Terminate),
        (0_usize..20).prop_map(Act::Stop),
        (0_usize..20).prop_map(Act::Start),
        (0_usize..20).prop_map(Act::Cancel),
        (0_usize..20, 0_u32..9, any::<bool>()).prop_map(|(n, eighths, unlimited)| Act::Use {
            n,
            eighths,
            unlimited
        }),
        (1_u64..4_000).prop_map(Act::Advance),
    ]
}

/// Result of a sequence of calls: its log, its bills and the instances of each token.
fn play(acts: &[Act]) -> (Vec<Step>, String, BTreeMap<u8, Vec<String>>) {
    let mut api = Client::new();
    let (mut had, mut requests, mut tokens) = (Vec::new(), Vec::new(), BTreeMap::new());
    for act in acts {
        let kinds = ["c5.large", "m5.large", "t3.micro"];
        match *act {
            Act::Run { kind, spot, count, token } => {
                let spot = if spot { "&InstanceMarketOptions.MarketType=spot" } else { "" };
                let query = format!(
                    "RunInstances&ImageId=ami-12345678&InstanceType={}&MinCount=1&MaxCount={count}&ClientToken=t{token}{spot}",
                    kinds[kind]
                );
                if let Ok(answer) = api.call(&query) {
                    let own = ids(answer.list("Instances"), "InstanceId");
                    let known = tokens.entry(token).or_insert_with(|| own.clone());
                    assert_eq!(*known, own, "a token has its instances");
                    had.extend(own);
                }
            }
            Act::Request { kind, persistent, behavior, price } => {
                let behavior =
                    ["terminate", "stop", "hibernate"][if persistent { behavior } else { 0 }];
                let kinds = kinds[kind];
                let persistent = if persistent { "persistent" } else { "one-time" };
                requests.push(api.request(&format!(
                    "LaunchSpecification.InstanceType={kinds}&SpotPrice=0.0{price}&Type={persistent}&InstanceInterruptionBehavior={behavior}"
                )));
            }
            Act::Cancel(n) if n < requests.len() => {
                api.ok(&format!(
                    "CancelSpotInstanceRequests&SpotInstanceRequestId.1={}",
                    requests[n]
                ));
            }
            Act::Use { n, eighths, unlimited } if n < had.len() => {
                let part = f64::from(eighths) / 8.0;
                let mode = if unlimited { "unlimited" } else { "standard" };
                let (own, of) = (&had[n], "InstanceCreditSpecification.1");
                // Only an instance of a burstable type has a mode, and only one that exists has tags.
                let _ = api.call(&format!(
                    "ModifyInstanceCreditSpecification&{of}.InstanceId={own}&{of}.CpuCredits={mode}"
                ));
                let _ = api.call(&format!(
                    "CreateTags&ResourceId.1={own}&Tag.1.Key=dormouse:vcpu-use&Tag.1.Value={part}"
                ));
            }
            Act::Advance(seconds) => {
                let to = api.session.now() + dormouse_units::Span::from_secs(seconds);
                api.session.advance_to(to);
            }
            Act::Terminate(n) | Act::Stop(n) | Act::Start(n) if n < had.len() => {
                let action = match act {
                    Act::Terminate(_) => "TerminateInstances",
                    Act::Stop(_) => "StopInstances",
                    _ => "StartInstances",
                };
                // Not every instance can be.
                let _ = api.call(&format!("{action}&InstanceId.1={}", had[n]));
            }
            _ => {}
        }
        // No request has two instances, and none that is active has none.
        for request in &requests {
            let wire = api.spot_request(request);
            if wire.text("State") == Some("active") {
                let id = wire.text("InstanceId").expect("it has one").to_owned();
                let state = api.state(&id);
                assert!(["pending", "running"].contains(&state.as_str()), "{id} is {state}");
            }
        }
    }
    api.session.close();
    let bills = format!("{:?}", api.session.bills());
    (api.session.take_steps(), bills, tokens)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_same_calls_make_the_same_bytes_and_a_replay_the_same_steps(
        acts in prop::collection::vec(acts(), 1..60),
    ) {
        let (steps, bills, tokens) = play(&acts);
        let again = play(&acts);
        prop_assert_eq!((&steps, &bills, &tokens), (&again.0, &again.1, &again.2));
        // No policy has decided what it can't have.
        for step in &steps {
            for effect in &step.effects {
                prop_assert!(!matches!(effect, dormouse_model::Effect::Rejected { .. }), "{:?}", step);
            }
        }
        // Every rule holds that holds of VMs and bills, by those who reckon without the engine.
        let violations = dormouse_analysis::check_bag(
            &Ec2Session::setup_of(setup()),
            &steps,
            dormouse_units::Span::ZERO,
            true,
        );
        prop_assert!(violations.is_empty(), "{violations:?}");
        // From its log alone, as it is read from its lines.
        let config = DeskConfig { begins_unix_us: crate::testing::BEGINS, ..DeskConfig::default() };
        let (mut run, _) = Ec2Session::run_of(Ec2Session::setup_of(setup()), config);
        for step in &steps {
            let line = serde_json::to_string(step).expect("JSON");
            let read: Step = serde_json::from_str(&line).expect("a step");
            let (made, _) = run.handle_again(&read);
            prop_assert_eq!(&made, step);
        }
    }
}
