//! Cells of instances on one worker.

use dormouse_proto::v1::{
    Announce, CreateVm, InstanceCell, InstanceNetwork, NetworkRule, Nothing, SecurityGroup,
    SetNetwork, VmRef, announce::What, command::Command, network_rule::OtherSide,
};

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::over,
};

/// Leaves a file, folders that are deeper than any path and a program for the next boot, and answers at a port.
const SERVER: &str = r#"#!/bin/sh
mkdir per-boot && printf '#!/bin/sh\ncat ~/kept\necho room $(df -k . | tail -1)\n' >per-boot/again && chmod +x per-boot/again
echo "kept since the first boot" >kept
perl -e 'chdir "/tmp"; for (1 .. 4000) { mkdir "d" and chdir "d" or die $! }; print "dug\n"' || exit
exec perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0);
bind($s, pack_sockaddr_in(8000, INADDR_ANY)) && listen($s, 5) or die;
while (accept(my $c, $s)) { syswrite $c, "hello\n"; close $c }'
"#;

/// Connects to the server until it answers, and then until it does not.
const CALLER: &str = r#"#!/bin/sh
exec perl -MSocket -e '$| = 1; my $to = pack_sockaddr_in(8000, inet_aton("10.0.0.1"));
sub call { my $got; eval { local $SIG{ALRM} = sub { die }; alarm 1; socket(my $s, PF_INET, SOCK_STREAM, 0);
  connect($s, $to) and $got = <$s>; alarm 0 }; $got }
my $said; 1 until $said = call(); print "it says $said"; select(undef, undef, undef, 0.1) while call(); print "no answer\n"; sleep 600'
"#;

/// Starts processes until it may not start another one.
const FORKER: &str = r#"#!/bin/sh
exec perl -e 'my $n = 0; while ($n < 999 and defined(my $pid = fork)) { if (!$pid) { sleep 600; exit } $n++ } print "forked $n\n"'
"#;

/// Begins more exchanges with an instance on another worker than an instance may have, and goes on for ever.
const FLOOD: &str = r#"#!/bin/sh
exec perl -MSocket -e '$| = 1; socket(my $s, PF_INET, SOCK_DGRAM, 0); my $to = inet_aton("10.0.0.77"); my $n = 0;
while (1) { send $s, "x", 0, pack_sockaddr_in(1 + $n++ % 65535, $to); print "flooded
" if $n == 100000 }'
"#;

fn announce(vm: u32, what: What) -> Command {
    Command::Announce(Announce { vm, what: Some(what) })
}

/// The network of the instance with this last number of its address, which may call every one, and which others may call if they
/// have the group `sg-2`.
fn network(last: u32, lets_in: bool) -> InstanceNetwork {
    let rule = |is_egress, peer| NetworkRule {
        is_egress,
        protocol: None,
        first_port: 1,
        last_port: 65_535,
        other_side: Some(peer),
    };
    let out = rule(true, OtherSide::Block("0.0.0.0/0".to_owned()));
    let inwards = rule(false, OtherSide::Group("sg-2".to_owned()));
    InstanceNetwork {
        id: "vpc-1".to_owned(),
        address: format!("10.0.0.{last}"),
        prefix_bits: 16,
        groups: vec![SecurityGroup { id: format!("sg-{last}"), name: format!("group{last}") }],
        rules: [out].into_iter().chain(lets_in.then_some(inwards)).collect(),
    }
}

/// Creates a VM with the cell of the instance whose first VM is `first_vm`, and boots it.
fn boot(seat: &mut Seat<'_>, vm: u32, first_vm: u32, user_data: &str) {
    seat.command(Command::CreateVm(CreateVm {
        vm,
        kind: "c5.large".to_owned(),
        vcpus: 3,
        // Each boot has another type.
        memory_bytes: Some((u64::from(vm) * 128) << 20),
        cell: Some(InstanceCell {
            core_ppm: 130_000,
            user_data: Some(user_data.to_owned()),
            shutdown_real_ms: 2_000,
            network: Some(network(first_vm, true)),
            first_vm,
            has_files: vm != first_vm,
            ..InstanceCell::default()
        }),
        ..CreateVm::default()
    }));
    await_report!(seat, VmCreated);
    seat.command(announce(vm, What::Booted(Nothing {})));
}

/// Waits until the console has a text; returns what the console has said since.
fn await_console(seat: &mut Seat<'_>, vm: u32, text: &str) -> String {
    let mut said = String::new();
    while !said.contains(text) {
        said.push_str(&await_report!(seat, VmConsole, it => it.vm == vm).text);
    }
    said
}

fn destroy(seat: &mut Seat<'_>, vm: u32) {
    seat.command(Command::DestroyVm(VmRef { vm }));
    await_report!(seat, VmDestroyed, it => it.vm == vm);
}

pub(crate) fn instances_call_each_other_and_keep_their_files() {
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    assert!(seat.ready().is_empty());
    boot(&mut seat, 1, 1, SERVER);
    await_console(&mut seat, 1, "dug");
    boot(&mut seat, 9, 9, FLOOD);
    await_console(&mut seat, 9, "flooded");
    boot(&mut seat, 2, 2, CALLER);
    await_console(&mut seat, 2, "it says hello");
    let closed = SetNetwork { vm: 1, network: Some(network(1, false)) };
    seat.command(Command::SetNetwork(closed));
    await_console(&mut seat, 2, "no answer");
    // A stop keeps the files, also for the next boot but one; what they do not need is gone once they are not needed.
    for vm in [3, 4] {
        let former = if vm == 3 { 1 } else { 3 };
        seat.command(announce(former, What::KeepFiles(Nothing {})));
        destroy(&mut seat, former);
        boot(&mut seat, vm, 1, SERVER);
        let size = (vm * 96) << 10;
        let room = format!("kept since the first boot\nroom dormouse-task {size} ");
        await_console(&mut seat, vm, &room);
    }
    seat.command(announce(4, What::KeepFiles(Nothing {})));
    seat.command(announce(1, What::ForgetFiles(Nothing {})));
    destroy(&mut seat, 4);
    boot(&mut seat, 5, 1, FORKER);
    let said = await_console(&mut seat, 5, "forked ");
    assert!(
        said.contains("files from before its stop are not on this worker; it begins"),
        "{said}"
    );
    // 64, and 64 for each vCPU; some of them run before its program.
    let forked = said.lines().find_map(|line| line.strip_prefix("forked ")?.parse::<u32>().ok());
    assert!(forked.is_some_and(|forked| (240..256).contains(&forked)), "{said}");
    over(agent, &seat);
}
