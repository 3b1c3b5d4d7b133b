//! Tests of volumes and snapshots: records that come and go with instances, or by themselves.

use dormouse_ec2_wire::WireValue;

use crate::testing::{Client, ids, text};

const LAUNCH: &str = "InstanceType=c5.large&MinCount=1&MaxCount=1";

fn new_volume(api: &mut Client, query: &str) -> String {
    let answer = api.ok(&format!("CreateVolume&AvailabilityZone=us-east-1a&{query}"));
    text(&answer, &["VolumeId"])
}

fn devices(api: &mut Client, instance: &str) -> Vec<(String, String)> {
    let instance = api.instance(instance);
    let devices = instance.list("BlockDeviceMappings").iter();
    devices.map(|it| (text(it, &["DeviceName"]), text(it, &["Ebs", "VolumeId"]))).collect()
}

fn volumes(api: &mut Client) -> Vec<String> {
    ids(api.ok("DescribeVolumes").list("Volumes"), "VolumeId")
}

#[test]
fn an_instance_has_the_volumes_that_its_launch_names_and_takes_with_it_what_ends_with_it() {
    let mut api = Client::new();
    let id = api
        .run(&format!(
            "{LAUNCH}&BlockDeviceMapping.1.DeviceName=/dev/sda1&BlockDeviceMapping.1.Ebs.VolumeSize=30\
             &BlockDeviceMapping.2.DeviceName=/dev/sdb&BlockDeviceMapping.2.Ebs.VolumeSize=100\
             &BlockDeviceMapping.2.Ebs.VolumeType=io2&BlockDeviceMapping.2.Ebs.Iops=400"
        ))
        .remove(0);
    let all = devices(&mut api, &id);
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["/dev/sda1", "/dev/sdb"]);
    let sizes = api.ok("DescribeVolumes");
    let sizes: Vec<Option<i64>> =
        sizes.list("Volumes").iter().map(|it| it.integer("Size")).collect();
    assert_eq!(sizes, [Some(30), Some(100)]);
    api.at(60);
    api.ok(&format!("TerminateInstances&InstanceId.1={id}"));
    assert_eq!(volumes(&mut api), [all[1].1.clone()], "the second one does not end with it");
    for (device, code) in [
        ("DeviceName=/dev/sdb&BlockDeviceMapping.1.VirtualName=ephemeral0", "UnsupportedOperation"),
        ("DeviceName=/dev/sdb", "MissingParameter"),
        (
            "DeviceName=/dev/sdb&BlockDeviceMapping.1.Ebs.SnapshotId=snap-0",
            "InvalidSnapshot.NotFound",
        ),
        ("DeviceName=/dev/sdb&BlockDeviceMapping.1.Ebs.VolumeType=io1", "MissingParameter"),
    ] {
        let query =
            format!("RunInstances&ImageId=ami-12345678&{LAUNCH}&BlockDeviceMapping.1.{device}");
        assert_eq!(api.code(&query), code, "{query}");
    }
    assert_eq!(volumes(&mut api).len(), 1, "what was refused has left no volume");
}

#[test]
fn volumes_are_attached_in_their_zone_to_one_instance_at_a_time() {
    let mut api = Client::new();
    let two = api.run("InstanceType=c5.large&MinCount=2&MaxCount=2");
    api.at(60);
    let volume = new_volume(&mut api, "Size=10");
    let attach = |instance: &str, device: &str| {
        format!("AttachVolume&VolumeId={volume}&InstanceId={instance}&Device={device}")
    };
    // What was answered before the volume was attached is not answered afterwards.
    assert_eq!(devices(&mut api, &two[0]).len(), 1);
    api.ok(&attach(&two[0], "/dev/sdh"));
    assert_eq!(devices(&mut api, &two[0])[1], ("/dev/sdh".to_owned(), volume.clone()));
    assert_eq!(api.code(&attach(&two[1], "/dev/sdh")), "VolumeInUse");
    assert_eq!(api.code(&format!("DeleteVolume&VolumeId={volume}")), "VolumeInUse");
    let wrong = format!("DetachVolume&VolumeId={volume}&InstanceId={}", two[1]);
    assert_eq!(api.code(&wrong), "InvalidAttachment.NotFound");
    let root = devices(&mut api, &two[0])[0].1.clone();
    assert_eq!(api.code(&format!("DetachVolume&VolumeId={root}")), "OperationNotPermitted");
    api.ok(&format!("DetachVolume&VolumeId={volume}"));
    assert_eq!(devices(&mut api, &two[0]).len(), 1);
    assert_eq!(api.code(&attach(&two[0], "/dev/sda1")), "InvalidParameterValue");
    api.ok(&format!("DeleteVolume&VolumeId={volume}"));
    assert_eq!(api.code(&attach(&two[0], "/dev/sdh")), "InvalidVolume.NotFound");
}

#[test]
fn properties_of_volumes_go_together_or_are_refused() {
    let mut api = Client::new();
    for (query, code) in [
        ("Size=10&VolumeType=gp2&Throughput=200", "InvalidParameterDependency"),
        ("Size=10&VolumeType=gp3&MultiAttachEnabled=true", "InvalidParameterDependency"),
        ("Size=10&Encrypted=false&KmsKeyId=key", "InvalidParameterDependency"),
        ("Size=10&VolumeType=io2", "MissingParameter"),
        ("Size=0", "InvalidParameterValue"),
        ("VolumeType=gp3", "MissingParameter"),
        ("Size=10&OutpostArn=arn", "UnsupportedOperation"),
    ] {
        let query = format!("CreateVolume&AvailabilityZone=us-east-1a&{query}");
        assert_eq!(api.code(&query), code, "{query}");
    }
    assert_eq!(api.code("CreateVolume&AvailabilityZone=mars-1a&Size=1"), "InvalidZone.NotFound");
    let volume = new_volume(&mut api, "Size=10");
    let change = api.ok(&format!("ModifyVolume&VolumeId={volume}&Size=20&VolumeType=gp3"));
    let change = change.member("VolumeModification").cloned().unwrap_or(WireValue::structure());
    assert_eq!(
        (change.integer("OriginalSize"), change.integer("TargetSize")),
        (Some(10), Some(20))
    );
    let smaller = format!("ModifyVolume&VolumeId={volume}&Size=5");
    assert_eq!(api.code(&smaller), "InvalidParameterValue");
    let all = api.ok("DescribeVolumesModifications");
    assert_eq!(ids(all.list("VolumesModifications"), "TargetVolumeType"), ["gp3"]);
    let provisioned = api.ok(&format!("ModifyVolume&VolumeId={volume}&VolumeType=io2"));
    let of_type = provisioned.member("VolumeModification").expect("it is changed");
    assert_eq!(of_type.integer("TargetIops"), Some(3_000), "without a number");
}

#[test]
fn snapshots_have_the_size_and_the_key_of_their_volume() {
    let mut api = Client::new();
    let volume = new_volume(&mut api, "Size=10&Encrypted=true");
    let snapshot = text(&api.ok(&format!("CreateSnapshot&VolumeId={volume}")), &["SnapshotId"]);
    api.ok(&format!("CreateTags&ResourceId.1={snapshot}&Tag.1.Key=a&Tag.1.Value=b"));
    let found = api.ok("DescribeSnapshots&Filter.1.Name=tag:a&Filter.1.Value.1=b");
    assert_eq!(ids(found.list("Snapshots"), "SnapshotId"), std::slice::from_ref(&snapshot));
    assert_eq!(found.list("Snapshots")[0].flag("Encrypted"), Some(true));
    api.ok(&format!("DeleteVolume&VolumeId={volume}"));
    let again = new_volume(&mut api, &format!("SnapshotId={snapshot}"));
    let all = api.ok("DescribeVolumes");
    let it = &all.list("Volumes")[0];
    assert_eq!((text(it, &["VolumeId"]), it.integer("Size")), (again, Some(10)));
    let user = "OperationType=add&UserId.1=210987654321";
    api.ok(&format!("ModifySnapshotAttribute&SnapshotId={snapshot}&{user}"));
    let attribute =
        format!("DescribeSnapshotAttribute&SnapshotId={snapshot}&Attribute=createVolumePermission");
    let users = api.ok(&attribute);
    assert_eq!(ids(users.list("CreateVolumePermissions"), "UserId"), ["210987654321"]);
    let copy = format!("CopySnapshot&SourceRegion=us-east-1&SourceSnapshotId={snapshot}");
    let copy = text(&api.ok(&copy), &["SnapshotId"]);
    api.ok(&format!("DeleteSnapshot&SnapshotId={snapshot}"));
    let left = api.ok("DescribeSnapshots&Owner.1=self");
    assert_eq!(ids(left.list("Snapshots"), "SnapshotId"), [copy]);
}
