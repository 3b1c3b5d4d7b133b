//! Tests of the provider with calls one after the other.

mod room;

use super::*;
use crate::{
    ChargedInterval, InstanceType, Placement, PlacerName, PriceTrace, SpotPlaces, VmLimits,
};
use crate::{Interruption, InterruptionAction, InterruptionTarget};
use dormouse_units::Span;

fn provider() -> Provider {
    let kind = InstanceType {
        name: "c3.large".into(),
        vcpus: 2,
        memory: Bytes::new(1 << 30),
        disk: Bytes::ZERO,
        mflops: 22_090,
        on_demand: None,
        spot: Some(Price::from_nanos_per_hour(29_700_000)),
        limits: VmLimits { spot: 2, on_demand: 0 },
        burstable: None,
    };
    let catalogue = Catalogue {
        types: [(kind.name.clone(), kind)].into(),
        boot: Span::from_secs(180),
        hibernation: Span::from_secs(180),
    };
    let mut provider = Provider::new(catalogue, &ProviderTerms::default());
    provider.host_joined(HostId::new(0), ResourceVector::new(8, Bytes::new(1 << 34)));
    provider
}

fn launch(
    provider: &mut Provider,
    now: Time,
    id: VmId,
    kind: &TypeName,
    (market, bid): (Market, Option<Price>),
) -> Result<GrantedLaunch, LaunchError> {
    provider.launch_vm(now, id, &LaunchRequest { kind, market, bid, limited: true })
}

#[test]
fn only_time_between_boot_and_end_and_outside_hibernation_is_charged() {
    let (mut p, vm, s) = (provider(), VmId::new(1), Time::from_secs);
    let launched =
        launch(&mut p, s(0), vm, &"c3.large".into(), (Market::Spot, None)).expect("granted");
    assert_eq!((launched.ready_at, launched.victims), (Some(s(180)), vec![]));
    assert!(p.vm_booted(s(180), vm) && !p.vm_booted(s(181), vm));
    assert!(p.hibernate_vm(vm) && !p.hibernate_vm(vm));
    assert!(p.vm_hibernated(s(1_180), vm));
    let back = |at| Interruption {
        at,
        target: InterruptionTarget::Vm(vm),
        action: InterruptionAction::Resume,
    };
    assert_eq!(p.hit_by(s(1_300), &back(s(1_300))), []);
    assert_eq!(p.hit_by(s(1_400), &back(s(1_400))), [vm]);
    assert!(p.resume_vm(vm) && p.vm_resumed(s(2_000), vm));
    assert!(
        p.vm_terminated(s(2_800), vm, EndedBy::User)
            && !p.vm_terminated(s(2_900), vm, EndedBy::User)
    );
    let charged: Span =
        p.find_vm(vm).expect("it").charges().iter().map(ChargedInterval::duration).sum();
    assert_eq!(charged, Span::from_secs(1_800));
    assert_eq!(p.owed_at(s(9_999)), Money::from_nanos(14_850_000));
}

#[test]
fn a_hibernated_vm_leaves_its_vcpus_to_others_and_resumes_once_they_are_free() {
    let (mut p, s) = (provider(), Time::from_secs);
    p.host_joined(HostId::new(0), ResourceVector::new(2, Bytes::new(1 << 34)));
    let (first, second, kind) = (VmId::new(1), VmId::new(2), TypeName::from("c3.large"));
    assert!(
        launch(&mut p, s(0), first, &kind, (Market::Spot, None)).is_ok()
            && p.vm_booted(s(9), first)
    );
    assert!(launch(&mut p, s(10), second, &kind, (Market::Spot, None)).is_err());
    assert!(p.hibernate_vm(first) && p.vm_hibernated(s(20), first));
    assert!(launch(&mut p, s(30), second, &kind, (Market::Spot, None)).is_ok());
    assert!(!p.resume_vm(first), "its vCPUs are taken");
    assert!(p.vm_terminated(s(40), second, EndedBy::User) && p.resume_vm(first));
    assert!(launch(&mut p, s(50), VmId::new(3), &kind, (Market::Spot, None)).is_err());
    assert!(p.vm_terminated(s(60), first, EndedBy::User));
    assert!(launch(&mut p, s(70), VmId::new(3), &kind, (Market::Spot, None)).is_ok());
}

#[test]
fn requests_that_cannot_be_are_refused_and_change_nothing() {
    let (mut p, kind, now) = (provider(), TypeName::from("c3.large"), Time::ZERO);
    let ask = |p: &mut Provider, id, kind: &TypeName, market| {
        launch(p, now, VmId::new(id), kind, (market, None))
    };
    assert!(matches!(
        ask(&mut p, 1, &"c9".into(), Market::Spot),
        Err(LaunchError::UnknownType { .. })
    ));
    assert!(matches!(ask(&mut p, 1, &kind, Market::OnDemand), Err(LaunchError::NotOffered { .. })));
    assert!(ask(&mut p, 1, &kind, Market::Spot).is_ok());
    assert!(matches!(ask(&mut p, 1, &kind, Market::Spot), Err(LaunchError::UsedId(_))));
    assert!(ask(&mut p, 2, &kind, Market::Spot).is_ok());
    assert!(matches!(
        ask(&mut p, 3, &kind, Market::Spot),
        Err(LaunchError::Limit { limit: 2, .. })
    ));
    assert_eq!(p.host_lost(now, HostId::new(0)), [VmId::new(1), VmId::new(2)]);
    assert!(matches!(ask(&mut p, 3, &kind, Market::Spot), Err(LaunchError::NoCapacity { .. })));
}

/// A provider of one type of 2 vCPUs at these spot prices: pairs of a second and the price in cents
/// an hour from then on.
fn at_prices(prices: &[(u64, u64)], tariff: TariffName) -> Provider {
    let mut catalogue = provider().catalogue().clone();
    for kind in catalogue.types.values_mut() {
        kind.on_demand = Some(cents(50));
        kind.limits = VmLimits { spot: 9, on_demand: 9 };
        kind.disk = Bytes::new(10);
    }
    let trace = prices.iter().map(|&(at, price)| (Time::from_secs(at), cents(price))).collect();
    let prices = [(TypeName::from("c3.large"), PriceTrace::new(trace))].into();
    let placement = Placement::Named(PlacerName::Preempting);
    let mut provider = Provider::new(
        catalogue,
        &ProviderTerms { placement, tariff, prices, ..ProviderTerms::default() },
    );
    let offer =
        ResourceVector { disk: Bytes::new(20), ..ResourceVector::new(4, Bytes::new(1 << 34)) };
    provider.host_joined(HostId::new(0), offer);
    provider
}

const fn cents(n: u64) -> Price {
    Price::from_nanos_per_hour(n * 10_000_000)
}

#[test]
fn a_spot_vm_pays_what_it_costs_and_ends_when_that_is_more_than_its_bid() {
    let (s, kind) = (Time::from_secs, TypeName::from("c3.large"));
    for (tariff, owed) in [(TariffName::Second, 36 + 9), (TariffName::Hour, 36)] {
        let mut p = at_prices(&[(0, 36), (3_600, 72), (9_000, 12)], tariff);
        assert_eq!(p.next_price_change(), None, "nobody pays it");
        let vm = VmId::new(1);
        let too_low = launch(&mut p, s(0), vm, &kind, (Market::Spot, Some(cents(35))));
        assert!(matches!(too_low, Err(LaunchError::Outbid { price, .. }) if price == cents(36)));
        let launched =
            launch(&mut p, s(0), vm, &kind, (Market::Spot, Some(cents(36)))).expect("granted");
        assert_eq!(launched.price, cents(36));
        let on_demand =
            launch(&mut p, s(0), VmId::new(2), &kind, (Market::OnDemand, Some(cents(50))));
        assert_eq!(on_demand.expect("granted").price, cents(50));
        assert!(p.vm_booted(s(0), vm));
        assert_eq!((p.next_price_change(), p.change_prices(s(3_599))), (Some(s(3_600)), vec![]));
        let change = PriceChange { kind: kind.clone(), price: cents(72), outbid: vec![vm] };
        assert_eq!(p.change_prices(s(3_600)), [change]);
        // The VM has its notice, a quarter of an hour, and is charged its bid.
        assert_eq!(p.next_price_change(), Some(s(9_000)));
        assert!(p.vm_terminated(s(4_500), vm, EndedBy::Provider));
        assert_eq!(p.next_price_change(), None);
        assert_eq!(p.owed_at(s(9_999)).as_nanos(), owed * 10_000_000, "{tariff:?}");
        assert!(launch(&mut p, s(9_000), VmId::new(3), &kind, (Market::Spot, None)).is_ok());
    }
}

#[test]
fn an_on_demand_vm_waits_for_the_room_of_a_spot_vm_that_ends() {
    let (mut p, s) = (at_prices(&[(0, 10)], TariffName::Second), Time::from_secs);
    let kind = TypeName::from("c3.large");
    let [a, b, c, d] = [1, 2, 3, 4].map(VmId::new);
    for spot in [a, b] {
        assert!(
            launch(&mut p, s(0), spot, &kind, (Market::Spot, None))
                .is_ok_and(|l| l.victims.is_empty())
        );
    }
    // 4 vCPUs are there, and disk for two.
    assert!(matches!(
        launch(&mut p, s(1), c, &kind, (Market::Spot, None)),
        Err(LaunchError::NoCapacity { room, .. }) if room.disk == Bytes::new(10)
    ));
    let waits = launch(&mut p, s(1), c, &kind, (Market::OnDemand, None)).expect("granted");
    assert_eq!((waits.ready_at, waits.victims), (None, vec![b]));
    let waits = launch(&mut p, s(2), d, &kind, (Market::OnDemand, None)).expect("granted");
    assert_eq!(waits.victims, [a], "nobody ends for two");
    assert_eq!(p.take_placed(), []);
    assert!(p.vm_terminated(s(121), b, EndedBy::Provider));
    assert_eq!(p.take_placed(), [c]);
    // The user of `d` gives up waiting.
    assert!(
        p.vm_terminated(s(121), d, EndedBy::User) && p.vm_terminated(s(122), a, EndedBy::Provider)
    );
    assert_eq!(p.take_placed(), []);
    assert!(launch(&mut p, s(123), VmId::new(5), &kind, (Market::Spot, None)).is_ok());
    assert_eq!(p.alive_vms().map(|(id, _)| id.get()).collect::<Vec<_>>(), [3, 5]);
}

#[test]
fn who_has_its_notice_gets_no_second_one() {
    let (mut p, vm, s) = (provider(), VmId::new(1), Time::from_secs);
    assert!(launch(&mut p, s(0), vm, &"c3.large".into(), (Market::Spot, None)).is_ok());
    assert!(p.vm_booted(s(180), vm));
    let act = |target| Interruption { at: s(200), target, action: InterruptionAction::Preempt };
    let (one, all) =
        (act(InterruptionTarget::Vm(vm)), act(InterruptionTarget::Type("c3.large".into())));
    assert_eq!((p.hit_by(s(200), &one), p.hit_by(s(200), &all)), (vec![vm], vec![vm]));
    p.given_notice(vm);
    assert_eq!((p.hit_by(s(210), &one), p.hit_by(s(210), &all)), (vec![], vec![]));
}

#[test]
fn spot_vms_in_the_background_take_nothing_of_the_foreground() {
    let mut catalogue = provider().catalogue().clone();
    for kind in catalogue.types.values_mut() {
        kind.on_demand = Some(cents(50));
        kind.limits = VmLimits { spot: 9, on_demand: 9 };
    }
    let terms = ProviderTerms { spot: SpotPlaces::Background, ..ProviderTerms::default() };
    let (mut p, s) = (Provider::new(catalogue, &terms), Time::from_secs);
    let (host, kind) = (HostId::new(0), TypeName::from("c3.large"));
    // Memory for seven, processors for two in each tier.
    p.host_joined(host, ResourceVector::new(4, Bytes::new(7 << 30)));
    let mut ask = |n, market| launch(&mut p, s(0), VmId::new(n), &kind, (market, None)).is_ok();
    assert!(ask(1, Market::Spot) && ask(2, Market::OnDemand) && ask(3, Market::OnDemand));
    assert!(!ask(4, Market::OnDemand), "every foreground is taken");
    assert!(ask(5, Market::Spot) && !ask(6, Market::Spot));
    let on = |p: &Provider, n| {
        p.tiers()
            .and_then(|tiers| tiers.vm_places(VmId::new(n)))
            .map(|it| (it.tier, it.processors.clone()))
    };
    assert_eq!(on(&p, 2), Some((Tier::Foreground, vec![2, 3])), "where nobody was");
    assert_eq!(on(&p, 1), Some((Tier::Background, vec![0, 1])));
    assert_eq!(on(&p, 5), Some((Tier::Background, vec![2, 3])));
    // A VM that hibernates leaves its places to others, and can't resume without any.
    let first = VmId::new(1);
    assert!(p.vm_booted(s(9), first) && p.hibernate_vm(first) && p.vm_hibernated(s(20), first));
    assert_eq!(on(&p, 1), None);
    assert!(launch(&mut p, s(30), VmId::new(7), &kind, (Market::Spot, None)).is_ok());
    assert!(!p.resume_vm(first), "its places are taken");
    assert!(p.vm_terminated(s(40), VmId::new(5), EndedBy::User) && p.resume_vm(first));
    assert_eq!(on(&p, 1), Some((Tier::Background, vec![2, 3])));
    assert_eq!(p.host_lost(s(50), host).len(), 4);
    assert_eq!(on(&p, 2), None);
}

#[test]
fn a_vm_goes_where_there_is_the_memory_that_it_fills() {
    let mut catalogue = provider().catalogue().clone();
    for kind in catalogue.types.values_mut() {
        kind.limits.spot = 9;
    }
    let kind = TypeName::from("c3.large");
    let filled = [(kind.clone(), Bytes::new(600))].into();
    let mut p = Provider::new(catalogue, &ProviderTerms::default()).with_filling(filled);
    let plenty = Bytes::new(u64::MAX);
    let host = |vcpus, filled| ResourceVector {
        filled: Bytes::new(filled),
        ..ResourceVector::new(vcpus, plenty)
    };
    p.host_joined(HostId::new(0), host(64, 599));
    p.host_joined(HostId::new(1), host(8, 1_300));
    let mut launch = |vm| {
        let launched = launch(&mut p, Time::ZERO, VmId::new(vm), &kind, (Market::Spot, None));
        launched.map(|launched| launched.host)
    };
    assert_eq!(launch(0), Ok(HostId::new(1)), "though the other has more vCPUs");
    assert_eq!(launch(1), Ok(HostId::new(1)));
    assert!(matches!(launch(2), Err(LaunchError::NoCapacity { .. })));
}
