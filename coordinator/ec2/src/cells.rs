//! Instances as the hosts of a live run know them: what runs on an instance's VM, its console, and its own shutdown.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_ec2_wire::{ApiError, ApiRequest, WireValue};
use dormouse_model::{ApiCall, Decision, Event};
use dormouse_units::{Time, VmId};
use serde_json::json;

use crate::call_json::value_to_json;
use crate::calls::is_change;
use crate::cloud_config::{self, CloudConfig};
use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::desk_records::KeptFiles;
use crate::ec2_instance::Ec2Instance;
use crate::run_secret::{RoleKey, RunSecret};
use crate::traffic_rules::PrivateNetwork;

/// The call of an instance whose own processes have shut it down. No client can make this call: EC2's model has no
/// such action.
pub(crate) const SHUTDOWN: &str = "InstanceShutdown";
/// Most bytes of a console that GetConsoleOutput returns: the last 64 KiB.
const CONSOLE_BYTES: usize = 64 << 10;
/// Most tags that metadata show, as many as an instance has at EC2.
const SHOWN_TAGS: usize = 50;

/// An instance as the worker of its VM has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceFacts {
    /// Id of the instance.
    pub instance: String,
    /// Id of the image that the instance was launched from.
    pub image: String,
    /// Private address of the instance; `None`: it has none.
    pub address: Option<Ipv4Addr>,
    /// User data; `None`: there are none.
    pub user_data: Option<String>,
    /// Tags that the instance's metadata show.
    pub tags: BTreeMap<String, String>,
    /// True if the instance has a metadata endpoint.
    pub has_endpoint: bool,
    /// True if requests of metadata need a token.
    pub tokens_required: bool,
    /// Number of network hops that an answer of the endpoint may pass; `None`: the system's number.
    pub hop_limit: Option<u8>,
    /// The region that the instance is in.
    pub region: String,
    /// Key pair of the launch: its name, and its public key in OpenSSH's form; `None`: there was none.
    pub login_key: Option<(String, String)>,
    /// What user data of the kind `#cloud-config` ask for; `None`: they are of another kind.
    pub config: Option<CloudConfig>,
    /// The address of the instance's host at which the instance's open ports are reached; `None`: they can't be.
    pub public_address: Option<Ipv4Addr>,
    /// The private network of the instance; `None`: the instance has no address.
    pub network: Option<PrivateNetwork>,
    /// The first VM of the instance.
    pub first_vm: VmId,
    /// Whether files of the instance were kept at its last stop.
    pub has_files: bool,
    /// Why these files are not where the instance runs now, as the end of a sentence about them; empty: they are there.
    pub files_absent: &'static str,
    /// The role of the instance; `None`: it has none.
    pub role: Option<GrantedRole>,
}

/// The role of an instance, whose programs call the API with the role's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantedRole {
    /// Name of the role: that of the instance profile.
    pub name: String,
    /// ARN of the instance profile.
    pub profile: String,
    /// The credentials.
    pub key: RoleKey,
    /// Address at which the API answers instances: on the instance's host, or with an unspecified IP on the coordinator's.
    pub api: SocketAddr,
}

impl InstanceFacts {
    /// The program that the instance runs at its boot: its user data, or the commands of `#cloud-config`.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let own = || self.user_data.as_deref().filter(|text| text.starts_with("#!"));
        self.config.as_ref().map_or_else(own, |config| config.commands.as_deref())
    }

    /// Public keys that may log in to the instance.
    #[must_use]
    pub fn ssh_keys(&self) -> Vec<String> {
        let of_launch = self.login_key.iter().map(|(_, key)| key.clone());
        let of_config = self.config.iter().flat_map(|config| config.ssh_keys.iter().cloned());
        of_launch.chain(of_config).collect()
    }
}

/// The last output of an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct InstanceConsole {
    /// The VM that has written the output.
    vm: Option<VmId>,
    text: String,
    /// Time of the last output; `None`: there was none.
    at: Option<Time>,
}

impl InstanceConsole {
    fn add(&mut self, now: Time, vm: VmId, text: &str) {
        if self.vm.is_some_and(|newest| newest > vm) {
            // The output of a boot that is over.
            return;
        }
        if self.vm != Some(vm) {
            // A console begins anew with each boot.
            (self.vm, self.text) = (Some(vm), String::new());
        }
        self.text.push_str(text);
        let excess = self.text.len().saturating_sub(CONSOLE_BYTES);
        let cut = (excess..=self.text.len()).find(|at| self.text.is_char_boundary(*at));
        self.text.drain(..cut.unwrap_or(0));
        self.at = Some(now);
    }
}

/// The event of a call that changes something; `None` for a call that reads.
#[must_use]
pub fn call_event(account: &str, region: &str, request: &ApiRequest) -> Option<Event> {
    let ApiRequest { action, version, input } = request;
    if !is_change(action) {
        return None;
    }
    let call = ApiCall {
        account: account.to_owned(),
        region: region.to_owned(),
        action: action.clone(),
        version: version.clone(),
        input: value_to_json(input),
    };
    let token = input.text("ClientToken").map(Into::into);
    Some(Event::Called { token, call: call.into() })
}

impl ApiDesk {
    /// The instance that runs, or ran, on a VM.
    pub(crate) fn instance_of_vm(&self, vm: VmId) -> Option<&Ec2Instance> {
        let now = self.by_vm.get(&vm).and_then(|index| self.instances.get(*index));
        now.or_else(|| self.instances.iter().find(|it| it.vms.contains(&vm)))
    }

    /// What the worker of a VM has to know of the VM's instance; `None` if the VM is not an instance's.
    #[must_use]
    pub fn cell_of(&self, vm: VmId) -> Option<InstanceFacts> {
        let it = self.instance_of_vm(vm)?;
        let options = it.spec.metadata.as_ref();
        let option = |name: &str| options.and_then(|options| options.text(name));
        let shows_tags = option("InstanceMetadataTags") == Some("enabled");
        let hops = options.and_then(|options| options.integer("HttpPutResponseHopLimit"));
        let user_data = it.spec.user_data.as_deref().and_then(|data| read_user_data(data).ok());
        let config = user_data.as_deref().filter(|text| text.starts_with(cloud_config::BEGINNING));
        Some(InstanceFacts {
            instance: it.id.clone(),
            image: it.spec.image.clone(),
            address: it.seat.as_ref().map(|seat| seat.private_ip),
            config: config.and_then(|text| CloudConfig::read(text).ok()),
            user_data,
            region: it.scope.region.clone(),
            login_key: it.login_key.clone(),
            public_address: it.reached_at(),
            network: self.private_network(it),
            first_vm: it.vms.first().copied().unwrap_or(vm),
            has_files: self.kept_files.contains_key(&it.id),
            files_absent: self.kept_files.get(&it.id).map_or("", KeptFiles::absence),
            role: self.role_of(it),
            tags: it.tags.iter().filter(|_| shows_tags).take(SHOWN_TAGS).cloned().collect(),
            has_endpoint: option("HttpEndpoint") != Some("disabled"),
            tokens_required: option("HttpTokens") == Some("required"),
            hop_limit: hops.and_then(|hops| u8::try_from(hops).ok()),
        })
    }

    /// The role of an instance with an instance profile, if the run has credentials.
    fn role_of(&self, it: &Ec2Instance) -> Option<GrantedRole> {
        let profile = it.profile_arn()?;
        let name = profile.rsplit('/').next().unwrap_or_default().to_owned();
        let key = self.secret.as_ref()?.role_key(&it.scope.account, &it.id);
        Some(GrantedRole { name, profile, key, api: self.inner_api? })
    }

    /// The credentials with this access key, if they are those of an instance that has a VM now.
    #[must_use]
    pub fn role_key(&self, access_key: &str) -> Option<RoleKey> {
        let secret = self.secret.as_ref()?;
        let with_vm = self.with_vm.iter().filter_map(|index| self.instances.get(*index));
        let with_role = with_vm.filter(|it| it.spec.profile.is_some());
        let mut keys = with_role.map(|it| secret.role_key(&it.scope.account, &it.id));
        keys.find(|key| key.access_key == access_key)
    }

    /// Sets the secret of a live run's keys and credentials.
    pub fn set_secret(&mut self, secret: RunSecret) {
        self.secret = Some(secret);
    }

    /// Sets the address at which the workers of a live run reach the API for instances: on their own host, or with an unspecified IP
    /// on the coordinator's host.
    pub fn set_inner_api(&mut self, address: SocketAddr) {
        self.inner_api = Some(address);
    }

    /// Keeps what the instance on a VM has written to its console; returns the id of the instance.
    pub fn add_console(&mut self, now: Time, vm: VmId, text: &str) -> Option<String> {
        let id = self.instance_of_vm(vm)?.id.clone();
        self.consoles.entry(id.clone()).or_default().add(now, vm, text);
        Some(id)
    }

    /// The last output of an instance, in base64 as EC2 sends it, and the time of it.
    pub(crate) fn console_text(&self, id: &str) -> (String, Option<Time>) {
        let console = self.consoles.get(id);
        let text = console.map_or("", |console| console.text.as_str());
        (STANDARD.encode(text), console.and_then(|console| console.at))
    }

    /// The call that an instance makes whose own processes have shut it down; `None` if the VM is not an instance's any
    /// more.
    #[must_use]
    pub fn shutdown_call(&self, vm: VmId) -> Option<Event> {
        let it = self.by_vm.get(&vm).and_then(|index| self.instances.get(*index))?;
        let call = ApiCall {
            account: it.scope.account.clone(),
            region: it.scope.region.clone(),
            action: SHUTDOWN.to_owned(),
            version: String::new(),
            input: json!({ "InstanceId": it.id }),
        };
        Some(Event::Called { token: None, call: call.into() })
    }

    /// Handles that the processes of an instance have shut it down: it is stopped or terminated, as its launch says. A spot
    /// instance of a one-time request is terminated, as it can't be stopped.
    pub(crate) fn shut_down(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let index = self.instance_of(scope, input.text("InstanceId").unwrap_or_default())?;
        let before = self.instances.get(index).map(|it| it.stage);
        let ends = self.instances.get(index).is_some_and(|it| {
            let request = it.spot_request.as_ref().and_then(|id| self.request_by_id.get(id));
            let request = request.and_then(|at| self.requests.get(*at));
            it.spec.shutdown_behavior.as_deref() == Some("terminate")
                || request.is_some_and(|request| !request.is_persistent)
        });
        let answer = if ends { self.terminate(index, out) } else { self.stop(index, false, out) };
        // An instance that EC2 hibernates meanwhile stops for EC2's reason.
        if let Some(it) = self.instances.get_mut(index).filter(|it| Some(it.stage) != before) {
            it.reason = Some((
                "Client.InstanceInitiatedShutdown",
                "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
            ));
        }
        Ok(PendingAnswer::Ready(answer))
    }
}

/// Reads user data as a client has sent them, in base64.
///
/// # Errors
///
/// `InvalidUserData.Malformed` for what is not base64; `UnsupportedOperation` for user data that are no text, such as
/// compressed ones.
pub(crate) fn read_user_data(data: &str) -> Result<String, ApiError> {
    let plain: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(plain).map_err(|_| {
        ApiError::new("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
    })?;
    String::from_utf8(bytes).map_err(|_| {
        let text = "UserData that are not text (UTF-8) are not played live; send them uncompressed";
        ApiError::new("UnsupportedOperation", text)
    })
}
