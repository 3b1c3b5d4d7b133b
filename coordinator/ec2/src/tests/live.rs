//! Instances that run programs: what their hosts are told of them, their consoles, their own shutdown, and what is refused.

use dormouse_ec2_wire::WireValue;
use dormouse_model::{ApiCall, Event, Notice};
use dormouse_units::{HostId, Time, VmId};

use crate::testing::{Client, setup, text};
use crate::{AllowedTraffic, ApiDesk, RunSecret, TrafficPeer};

const LAUNCH: &str =
    "RunInstances&ImageId=ami-12345678&InstanceType=c5.large&MinCount=1&MaxCount=1";
/// `#!/bin/sh` and `echo hello`.
const PROGRAM: &str = "IyEvYmluL3NoCmVjaG8gaGVsbG8K";
/// `#cloud-config` with a key that may log in, and the command `echo hi`.
const CONFIG: &str = "I2Nsb3VkLWNvbmZpZwpzc2hfYXV0aG9yaXplZF9rZXlzOiBbc3NoLWVkMjU1MTkgQUFBQV0KcnVuY21kOgotIFtlY2hvLCBoaV0K";

fn live() -> Client {
    Client::of(setup(), &[], |config| config.runs_programs = true)
}

fn launched(client: &mut Client, more: &str) -> String {
    let answer = client.ok(&format!("{LAUNCH}{more}"));
    let instance = answer.list("Instances").first().expect("one was launched");
    instance.text("InstanceId").expect("it has an id").to_owned()
}

fn state(client: &mut Client, id: &str) -> (String, String) {
    let answer = client.ok(&format!("DescribeInstances&InstanceId.1={id}"));
    let reservation = answer.list("Reservations").first().cloned().expect("it is there");
    let instance = reservation.list("Instances").first().cloned().expect("it is there");
    let text = |path: &[&str]| {
        instance.at(path).and_then(WireValue::as_text).unwrap_or_default().to_owned()
    };
    (text(&["State", "Name"]), text(&["StateReason", "Code"]))
}

#[test]
fn a_host_is_told_what_an_instance_runs_and_shows() {
    let mut client = live();
    let options = "&MetadataOptions.HttpTokens=required&MetadataOptions.InstanceMetadataTags=enabled&\
                   TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=team&\
                   TagSpecification.1.Tag.1.Value=weather";
    let id = launched(&mut client, &format!("&UserData={PROGRAM}{options}"));
    let cell = client.session.cell_of(VmId::new(0)).expect("the VM is an instance's");
    assert_eq!((cell.instance.as_str(), cell.image.as_str()), (id.as_str(), "ami-12345678"));
    assert_eq!(cell.program(), Some("#!/bin/sh\necho hello\n"));
    assert!(cell.tokens_required && cell.has_endpoint && cell.address.is_some());
    assert_eq!(cell.tags.get("team").map(String::as_str), Some("weather"));
    // `a=b`: data that nothing runs.
    launched(&mut client, "&UserData=YT1i&MetadataOptions.HttpEndpoint=disabled");
    let cell = client.session.cell_of(VmId::new(1)).expect("the VM is an instance's");
    assert_eq!((cell.program(), cell.user_data.as_deref()), (None, Some("a=b")));
    assert!(!cell.has_endpoint && cell.tags.is_empty() && !cell.tokens_required);
    assert_eq!(client.session.cell_of(VmId::new(2)), None);
}

/// A run whose instances can be reached, and call the API.
fn reachable() -> Client {
    let client = Client::of(setup(), &[], |config| {
        (config.runs_programs, config.has_ssh, config.public_block) = (true, true, Some(3));
    });
    client.session.with_desk(|desk| {
        desk.set_secret(RunSecret::new([5; 32]));
        desk.set_inner_api(([127, 0, 0, 1], 7000).into());
    });
    client
}

#[test]
fn a_host_is_told_who_may_log_in_and_at_which_address() {
    let mut client = reachable();
    for refused in ["&KeyType=rsa", "", "&KeyType=ed25519&KeyFormat=ppk"] {
        assert_eq!(
            client.code(&format!("CreateKeyPair&KeyName=k{refused}")),
            "UnsupportedOperation"
        );
    }
    let made = client.ok("CreateKeyPair&KeyName=k&KeyType=ed25519");
    let private = made.text("KeyMaterial").expect("a key");
    assert!(private.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n"), "{private}");
    let group = client.ok("CreateSecurityGroup&GroupName=g&GroupDescription=d");
    let group = group.text("GroupId").expect("an id").to_owned();
    for rule in [
        "IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=22&IpPermissions.1.ToPort=22&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0",
        "IpPermissions.1.IpProtocol=udp&IpPermissions.1.FromPort=53&IpPermissions.1.ToPort=53&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0/0",
    ] {
        client.ok(&format!("AuthorizeSecurityGroupIngress&GroupId={group}&{rule}"));
    }
    let id =
        launched(&mut client, &format!("&KeyName=k&SecurityGroupId.1={group}&UserData={CONFIG}"));
    let cell = client.session.cell_of(VmId::new(0)).expect("the VM is an instance's");
    let (name, key) = cell.login_key.clone().expect("a key");
    assert!(name == "k" && key.starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"), "{key}");
    assert_eq!(cell.ssh_keys(), [key, "ssh-ed25519 AAAA".to_owned()]);
    assert_eq!(cell.program(), Some("#!/bin/sh\n'echo' 'hi'\n"));
    let network = cell.network.clone().expect("it has an address");
    assert_eq!((Some(network.address), network.prefix_bits), (cell.address, 16));
    assert_eq!(network.groups, [(group.clone(), "g".to_owned())]);
    let rule = |is_egress, protocol, ports| AllowedTraffic {
        is_egress,
        protocol,
        ports,
        peer: TrafficPeer::Block("0.0.0.0/0".to_owned()),
    };
    let all = rule(true, None, (0, 65_535));
    assert_eq!(
        network.rules,
        [all, rule(false, Some(6), (22, 22)), rule(false, Some(17), (53, 53))]
    );
    let address = cell.public_address.expect("an address").to_string();
    assert_eq!((address.as_str(), &cell.role), ("127.80.3.4", &None));
    assert_eq!(text(&client.instance(&id), &["PublicIpAddress"]), address);
    // The default group lets its own instances in and nobody else, and a launch without a key opens nothing.
    launched(&mut client, "");
    let cell = client.session.cell_of(VmId::new(1)).expect("the VM is an instance's");
    assert!(cell.ssh_keys().is_empty(), "{cell:?}");
    let network = cell.network.expect("it has an address");
    assert_eq!(network.groups.first().map(|(_, name)| name.as_str()), Some("default"));
    let inwards: Vec<_> = network.rules.into_iter().filter(|rule| !rule.is_egress).collect();
    let own = TrafficPeer::Group(network.groups.into_iter().map(|(id, _)| id).collect());
    let from_own = AllowedTraffic { peer: own, ..rule(false, None, (0, 65_535)) };
    assert_eq!(inwards, [from_own]);
}

#[test]
fn calls_that_change_groups_concern_the_instances_of_their_account() {
    let mut client = reachable();
    launched(&mut client, "");
    let rewired = |account: &str, action: &str| {
        let call = ApiCall {
            account: account.to_owned(),
            region: "us-east-1".to_owned(),
            action: action.to_owned(),
            version: String::new(),
            input: serde_json::Value::Null,
        };
        client.session.with_desk(|desk| desk.rewired_by(&call))
    };
    for action in ["AuthorizeSecurityGroupIngress", "ModifyInstanceAttribute"] {
        assert_eq!(rewired("AKIA", action), [VmId::new(0)]);
        assert_eq!(rewired("AKIB", action), []);
    }
    assert_eq!(rewired("AKIA", "CreateSecurityGroup"), []);
}

#[test]
fn the_files_of_an_instance_outlive_its_stops_and_not_its_end() {
    let mut client = live();
    let (host, other) = (HostId::new(1), HostId::new(2));
    let id = launched(&mut client, "");
    client.session.advance_to(Time::from_secs(100));
    let desk = |client: &Client, look: fn(&mut ApiDesk) -> Vec<(VmId, HostId)>| {
        client.session.with_desk(look)
    };
    let destroyed = |client: &Client, vm, host| {
        client.session.with_desk(|desk| desk.note_destroyed(VmId::new(vm), host))
    };
    let absence = |client: &Client, vm| {
        let cell = client.session.cell_of(VmId::new(vm)).expect("it is an instance's");
        cell.files_absent
    };
    let has_files = |client: &Client, vm| {
        let cell = client.session.cell_of(VmId::new(vm)).expect("it is an instance's");
        (cell.first_vm, cell.has_files)
    };
    assert_eq!(has_files(&client, 0), (VmId::new(0), false));
    client.ok(&format!("StopInstances&InstanceId.1={id}"));
    assert!(destroyed(&client, 0, host));
    client.ok(&format!("StartInstances&InstanceId.1={id}"));
    client.session.advance_to(Time::from_secs(200));
    assert_eq!(has_files(&client, 1), (VmId::new(0), true));
    let created = |client: &Client, host| {
        client.session.with_desk(|desk| desk.note_created(VmId::new(1), host))
    };
    assert_eq!(created(&client, host), None, "it is where its files are");
    assert_eq!(absence(&client, 1), "");
    assert_eq!(created(&client, other), Some((VmId::new(0), host)), "these are not used any more");
    assert_eq!(created(&client, other), None);
    assert_eq!(absence(&client, 1), "were left on another worker of this run");
    client.ok(&format!("StopInstances&InstanceId.1={id}"));
    assert!(destroyed(&client, 1, other));
    assert_eq!(desk(&client, ApiDesk::take_forgotten), []);
    client.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    assert_eq!(desk(&client, ApiDesk::take_forgotten), [(VmId::new(0), other)]);
    assert_eq!(desk(&client, ApiDesk::take_forgotten), []);
    // One that ends for good keeps none.
    let id = launched(&mut client, "");
    client.session.advance_to(Time::from_secs(300));
    client.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    assert!(!destroyed(&client, 2, host));
    // One that EC2 takes keeps them if EC2 stops it.
    let spot = "&InstanceMarketOptions.MarketType=spot";
    let stops = "&InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent&\
                 InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=stop";
    launched(&mut client, &format!("{spot}{stops}"));
    launched(&mut client, spot);
    client.session.advance_to(Time::from_secs(400));
    assert!(destroyed(&client, 3, host) && !destroyed(&client, 4, host));
}

#[test]
fn files_stay_where_they_are_if_a_boot_is_broken_off_and_go_with_their_host() {
    let mut client = live();
    let (host, other) = (HostId::new(1), HostId::new(2));
    let spot = "&InstanceMarketOptions.MarketType=spot\
                &InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent&\
                 InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=stop";
    let destroyed = |client: &Client, vm, host| {
        client.session.with_desk(|desk| desk.note_destroyed(VmId::new(vm), host))
    };
    let id = launched(&mut client, spot);
    let cell = |client: &Client, vm| client.session.cell_of(VmId::new(vm)).expect("it is there");
    assert!(!destroyed(&client, 0, host), "it has not booted");
    assert!(!cell(&client, 0).has_files);
    client.session.advance_to(Time::from_secs(100));
    client.ok(&format!("StopInstances&InstanceId.1={id}"));
    assert!(destroyed(&client, 0, host));
    client.ok(&format!("StartInstances&InstanceId.1={id}"));
    // EC2 takes the next VM before its boot is over, from another host: there are no files of the instance.
    assert!(!destroyed(&client, 1, other));
    assert_eq!((cell(&client, 1).has_files, cell(&client, 1).files_absent), (true, ""));
    client.session.with_desk(|desk| desk.note_host_lost(other));
    assert_eq!(cell(&client, 1).files_absent, "");
    client.session.with_desk(|desk| desk.note_host_lost(host));
    assert_eq!(cell(&client, 1).files_absent, "were on a worker that is gone");
    client.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    assert_eq!(client.session.with_desk(ApiDesk::take_forgotten), []);
}

#[test]
fn the_credentials_of_a_role_are_valid_while_its_instance_is_up() {
    let mut client = reachable();
    let id = launched(&mut client, "&IamInstanceProfile.Name=team/manager");
    let cell = client.session.cell_of(VmId::new(0)).expect("the VM is an instance's");
    let role = cell.role.expect("it has a role");
    assert_eq!((role.name.as_str(), role.api.port()), ("manager", 7000));
    assert!(role.profile.ends_with(":instance-profile/team/manager"), "{}", role.profile);
    let found = |client: &Client, key: &str| client.session.with_desk(|desk| desk.role_key(key));
    assert_eq!(found(&client, &role.key.access_key), Some(role.key.clone()));
    assert_eq!(found(&client, "ASIAAAAAAAAAAAAAAAAA"), None);
    client.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    assert_eq!(found(&client, &role.key.access_key), None);
    // An instance without a profile has no credentials.
    launched(&mut client, "");
    let cell = client.session.cell_of(VmId::new(1)).expect("the VM is an instance's");
    assert_eq!(cell.role, None);
}

#[test]
fn a_private_key_is_not_recognised_in_what_the_log_keeps() {
    let digest = |secret: [u8; 32]| {
        let mut client = reachable();
        client.session.with_desk(|desk| desk.set_secret(RunSecret::new(secret)));
        client.ok("CreateKeyPair&KeyName=k&KeyType=ed25519");
        format!("{:?}", client.session.take_steps())
    };
    let log = digest([1; 32]);
    assert!(log.contains("CreateKeyPair") && log == digest([2; 32]), "{log}");
}

#[test]
fn a_console_holds_the_last_output_of_the_last_boot() {
    let mut client = live();
    let id = launched(&mut client, "");
    let read = |client: &mut Client| {
        let answer = client.ok(&format!("GetConsoleOutput&InstanceId={id}"));
        answer.text("Output").unwrap_or_default().to_owned()
    };
    assert_eq!(read(&mut client), "");
    let said = client.session.add_console(Time::from_secs(3), VmId::new(0), "hello\n");
    assert_eq!((said.as_deref(), read(&mut client).as_str()), (Some(id.as_str()), "aGVsbG8K"));
    client.session.add_console(Time::from_secs(4), VmId::new(0), &"x".repeat(65_536));
    // 64 KiB in base64.
    assert!(read(&mut client).starts_with("eHh4") && read(&mut client).len() == 87_384);
    assert_eq!(client.session.add_console(Time::ZERO, VmId::new(9), "?"), None);
}

#[test]
fn an_instance_that_shuts_itself_down_is_stopped_or_ended_as_its_launch_says() {
    for (more, expected) in [
        ("", "stopped"),
        ("&InstanceInitiatedShutdownBehavior=terminate", "terminated"),
        ("&InstanceMarketOptions.MarketType=spot", "terminated"),
    ] {
        let mut client = live();
        let id = launched(&mut client, more);
        client.session.advance_to(Time::from_secs(100));
        let call = client.session.shutdown_call(VmId::new(0)).expect("it runs");
        assert!(matches!(&call, Event::Called { call, .. } if call.action == "InstanceShutdown"));
        client.session.repeat(&call);
        let reason = "Client.InstanceInitiatedShutdown".to_owned();
        assert_eq!(state(&mut client, &id), (expected.to_owned(), reason), "{more}");
        assert_eq!(client.session.shutdown_call(VmId::new(0)), None, "it is over");
    }
}

#[test]
fn an_instance_that_ec2_hibernates_as_it_shuts_itself_down_stops_for_ec2s_reason() {
    let (mut client, vm) = (live(), VmId::new(0));
    let options = "InstanceMarketOptions.SpotOptions";
    let id = launched(
        &mut client,
        &format!(
            "&InstanceMarketOptions.MarketType=spot&{options}.SpotInstanceType=persistent\
             &{options}.InstanceInterruptionBehavior=hibernate"
        ),
    );
    client.session.advance_to(Time::from_secs(100));
    let call = client.session.shutdown_call(vm).expect("it runs");
    client.session.hear(&Notice::VmHibernating { vm });
    client.session.repeat(&call);
    assert_eq!(state(&mut client, &id), ("stopping".to_owned(), String::new()));
    client.session.hear(&Notice::VmHibernated { vm });
    let reason = "Server.SpotInstanceShutdown".to_owned();
    assert_eq!(state(&mut client, &id), ("stopped".to_owned(), reason));
}

#[test]
fn what_is_not_played_live_is_refused_by_its_name_and_only_there() {
    // `packages: [htop]`, and a key that may log in to a host without an ssh server.
    let packages = "I2Nsb3VkLWNvbmZpZwpwYWNrYWdlczogW2h0b3BdCg%3D%3D";
    let keys = CONFIG;
    let long = "YWFh".repeat(5_462);
    let mut virtually = Client::new();
    virtually.ok("CreateKeyPair&KeyName=k");
    for (more, name) in [
        ("&KeyName=k".to_owned(), "KeyName"),
        ("&BlockDeviceMapping.1.DeviceName=/dev/xvda".to_owned(), "BlockDeviceMappings"),
        ("&HibernationOptions.Configured=true".to_owned(), "HibernationOptions.Configured"),
        ("&CreditSpecification.CpuCredits=unlimited".to_owned(), "CpuCredits=unlimited"),
        (format!("&UserData={packages}"), "'packages'"),
        (format!("&UserData={keys}"), "'ssh_authorized_keys'"),
        ("&UserData=I2Nsb3VkLWNvbmZpZy1hcmNoaXZlCg%3D%3D".to_owned(), "'#cloud-config-archive'"),
        ("&UserData=I2Nsb3VkLWNvbmZpZwotIHgK".to_owned(), "not a list of keys"),
        ("&UserData=H4sIAAAAAAAA".to_owned(), "not text"),
        (format!("&UserData={long}"), "limited to 16384"),
        (
            "&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=dormouse:vcpu-use"
                .to_owned(),
            "The tag dormouse:vcpu-use",
        ),
    ] {
        let error = live().call(&format!("{LAUNCH}{more}")).expect_err(name);
        assert!(error.message.contains(name), "{}", error.message);
    }
    virtually.ok(&format!("{LAUNCH}&KeyName=k&UserData={packages}"));
    let mut client = live();
    let id = launched(&mut client, "");
    client.session.advance_to(Time::from_secs(100));
    for call in [
        format!("RebootInstances&InstanceId.1={id}"),
        format!("StopInstances&InstanceId.1={id}&Hibernate=true"),
        format!("StopInstances&InstanceId.1={id}&Force=true"),
        format!("TerminateInstances&InstanceId.1={id}&SkipOsShutdown=true"),
        format!("ModifyInstanceMetadataOptions&InstanceId={id}&HttpTokens=required"),
        format!("CreateTags&ResourceId.1={id}&Tag.1.Key=dormouse:vcpu-use&Tag.1.Value=0.4"),
    ] {
        let error = client.call(&call).expect_err(&call);
        assert_eq!(error.code, "UnsupportedOperation", "{call}: {}", error.message);
    }
    assert_eq!(state(&mut client, &id).0, "running");
}
