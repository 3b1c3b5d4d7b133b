//! Launches as clients send them, with the parameters that say nothing.

use crate::testing::Client;

#[test]
fn terraform_and_skypilot_launch_with_parameters_that_say_nothing() {
    let mut api = Client::new();
    let terraform = "InstanceType=c5.large&MinCount=1&MaxCount=1&DisableApiTermination=false&EbsOptimized=false\
        &HibernationOptions.Configured=false&Monitoring.Enabled=false&Placement.AvailabilityZone=\
        &InstanceMarketOptions.MarketType=spot&InstanceMarketOptions.SpotOptions.MaxPrice=0.05\
        &InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent\
        &InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=hibernate&UserData=IyEvYmluL3NoCg";
    assert_eq!(api.run(terraform).len(), 1);
    let skypilot = "InstanceType=m5.large&MinCount=2&MaxCount=2&InstanceMarketOptions.MarketType=spot\
        &CapacityReservationSpecification.CapacityReservationPreference=open&IamInstanceProfile.Name=p\
        &BlockDeviceMapping.1.DeviceName=/dev/sda1&BlockDeviceMapping.1.Ebs.VolumeSize=64\
        &TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b\
        &NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.AssociatePublicIpAddress=true";
    assert_eq!(api.run(skypilot).len(), 2);
    api.ok("CreateLaunchTemplate&LaunchTemplateName=lt&LaunchTemplateData.ImageId=ami-12345678\
         &LaunchTemplateData.InstanceType=c5.large&LaunchTemplateData.UserData=");
    let fleet = "CreateFleet&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=lt\
        &LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=1\
        &LaunchTemplateConfigs.1.Overrides.1.InstanceType=c5.large&SpotOptions.AllocationStrategy=price-capacity-optimized\
        &SpotOptions.InstanceInterruptionBehavior=terminate&SpotOptions.MinTargetCapacity=0\
        &SpotOptions.SingleAvailabilityZone=false&SpotOptions.SingleInstanceType=false\
        &TargetCapacitySpecification.DefaultTargetCapacityType=spot&TargetCapacitySpecification.TotalTargetCapacity=2&Type=instant";
    assert_eq!(api.ok(fleet).list("Instances").len(), 1);
    let matters = fleet.replace("SingleInstanceType=false", "SingleInstanceType=true");
    assert_eq!(api.code(&matters), "UnsupportedOperation");
    assert_eq!(
        api.code("GetInstanceUefiData&InstanceId=ami-12345678"),
        "InvalidInstanceID.NotFound"
    );
}
