//! Calls and parameters that would matter to programs on an instance and are not played where instances run.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::cells::read_user_data;
use crate::cloud_config::{self, CloudConfig};
use crate::credit_terms::USE_TAG;
use crate::desk::ApiDesk;
use crate::key_fingerprint::login_line;
use crate::launch_spec::LaunchSpec;
use crate::resource_tags::gives_tag;

/// Beginnings of the kinds of user data that cloud-init knows besides programs, which are not played.
const OTHER_USER_DATA: [&str; 8] = [
    "#cloud-config-archive",
    "#cloud-boothook",
    "#include",
    "#part-handler",
    "#upstart-job",
    "## template: jinja",
    "Content-Type: multipart",
    "MIME-Version:",
];

/// Remedy for a host on which nobody can log in to instances.
const NO_SSH: &str = "leave it out, or install openssh-server on this host and begin the run anew";

/// Whether the key of a call can't be one with which somebody logs in. What is not base64 is judged elsewhere.
fn is_of_no_login(input: &WireValue) -> bool {
    let text = String::from_utf8_lossy(input.bytes("PublicKeyMaterial").unwrap_or_default());
    text.trim_start().starts_with("MII") && login_line(&text).is_none()
}

/// The error for a call or parameter that isn't played live, by its name, with the remedy.
fn not_live(what: &str, remedy: &str) -> ApiError {
    ApiError::new("UnsupportedOperation", format!("{what} is not played live; {remedy}"))
}

impl ApiDesk {
    /// Refuses a launch with a parameter that would matter to programs on the instance and isn't played live.
    ///
    /// # Errors
    ///
    /// `UnsupportedOperation` with the parameter's name, or the error of user data that are not base64.
    pub(crate) fn check_runs(&self, spec: &LaunchSpec) -> Result<(), ApiError> {
        if !self.config.runs_programs {
            return Ok(());
        }
        if spec.key.is_some() && !self.config.has_ssh {
            return Err(not_live("KeyName", NO_SSH));
        }
        if !spec.devices.is_empty() {
            return Err(not_live("BlockDeviceMappings", "leave it out: instances have no volumes"));
        }
        if spec.hibernation {
            let remedy = "leave it out: only EC2 hibernates, spot instances";
            return Err(not_live("HibernationOptions.Configured", remedy));
        }
        if spec.cpu_credits.as_deref() == Some("unlimited") {
            return Err(not_live("CreditSpecification.CpuCredits=unlimited", "take standard"));
        }
        let Some(data) = &spec.user_data else { return Ok(()) };
        let text = read_user_data(data)?;
        if let Some(kind) = OTHER_USER_DATA.into_iter().find(|kind| text.starts_with(kind)) {
            let what = format!("UserData that begin with '{kind}'");
            return Err(not_live(&what, "send a program that begins with #!, or #cloud-config"));
        }
        if text.starts_with(cloud_config::BEGINNING) {
            let config = CloudConfig::read(&text)?;
            if !config.ssh_keys.is_empty() && !self.config.has_ssh {
                return Err(not_live("#cloud-config with 'ssh_authorized_keys'", NO_SSH));
            }
        }
        Ok(())
    }

    /// Refuses a call that would matter to programs on an instance and isn't played live.
    ///
    /// # Errors
    ///
    /// `UnsupportedOperation` with the call's name.
    pub(crate) fn check_call_runs(&self, action: &str, input: &WireValue) -> Result<(), ApiError> {
        if !self.config.runs_programs {
            return Ok(());
        }
        match action {
            action if gives_tag(action, input, USE_TAG) => {
                let remedy = "leave it out: what programs use of their vCPUs is measured";
                Err(not_live(&format!("The tag {USE_TAG}"), remedy))
            }
            "RebootInstances" => Err(not_live("RebootInstances", "stop and start the instances")),
            "AttachVolume" => {
                Err(not_live("AttachVolume", "leave it out: instances have no volumes"))
            }
            "StopInstances" if input.flag("Hibernate") == Some(true) => {
                Err(not_live("StopInstances.Hibernate", "only EC2 hibernates, spot instances"))
            }
            "TerminateInstances" | "StopInstances"
                if input.flag("SkipOsShutdown") == Some(true) =>
            {
                Err(not_live("SkipOsShutdown", "leave it out: processes have five seconds to end"))
            }
            "StopInstances" if input.flag("Force") == Some(true) => Err(not_live(
                "StopInstances.Force",
                "leave it out: processes have five seconds to end",
            )),
            "CreateKeyPair" if input.text("KeyType") != Some("ed25519") => {
                Err(not_live("CreateKeyPair.KeyType=rsa", "take ed25519, or import a key"))
            }
            "CreateKeyPair" if input.text("KeyFormat") == Some("ppk") => {
                Err(not_live("CreateKeyPair.KeyFormat=ppk", "take pem"))
            }
            "ImportKeyPair" if is_of_no_login(input) => Err(not_live(
                "ImportKeyPair of a key in another form than OpenSSH's",
                "import the file that ends in .pub",
            )),
            "ModifyInstanceCreditSpecification" => {
                Err(not_live("ModifyInstanceCreditSpecification", "credits are standard"))
            }
            "ModifyInstanceMetadataOptions" => {
                Err(not_live("ModifyInstanceMetadataOptions", "give MetadataOptions at the launch"))
            }
            _ => Ok(()),
        }
    }
}
