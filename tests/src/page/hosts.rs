//! The hosts of a page: network namespaces on this machine that reach each other by name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::Error;

/// The network of a page's hosts, and a state folder for each host. Dropping this removes the network.
#[derive(Debug)]
pub(super) struct Network {
    /// The prefix of the names of the network's namespaces.
    prefix: String,
    hosts: Vec<String>,
    /// Path of a file with the hosts' names, in the format of `/etc/hosts`.
    names: PathBuf,
    /// Folder that has a folder for each host, which that host sees as `/var/lib/dormouse`.
    states: PathBuf,
}

/// Folder in which workers keep their files.
const STATE: &str = "/var/lib/dormouse";

/// Suffix of the name of the bridge's namespace.
const SWITCH: &str = ".switch";

impl Network {
    /// Makes a bridge in a namespace of its own, free of this machine's packet filters, and a namespace for each host,
    /// with an address on the bridge.
    ///
    /// # Errors
    /// `ip` cannot make them: it needs root.
    pub(super) fn new(hosts: &[String], folder: &Path) -> Result<Self, Error> {
        let prefix = format!("dm{}", std::process::id());
        let (names, states) = (folder.join("hosts"), folder.join("states"));
        let network = Self { prefix, hosts: hosts.to_vec(), names, states };
        let switch = network.namespace(SWITCH);
        ip(&["netns", "add", &switch])?;
        ip(&["-n", &switch, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", &switch, "link", "set", "bridge", "up"])?;
        fs::create_dir_all(STATE).map_err(Error::file("make", STATE))?;
        let mut text = String::from("127.0.0.1 localhost\n");
        for (number, host) in (1..).zip(hosts) {
            let space = network.namespace(host);
            let (inside, outside) = ("eth0", format!("port{number}"));
            let address = address(number);
            ip(&["netns", "add", &space])?;
            let pair = ["link", "add", inside, "netns", &space, "type", "veth"];
            ip(&[&["-n", &switch][..], &pair, &["peer", "name", &outside]].concat())?;
            ip(&["-n", &switch, "link", "set", &outside, "master", "bridge", "up"])?;
            ip(&["-n", &space, "address", "add", &format!("{address}/24"), "dev", inside])?;
            ip(&["-n", &space, "link", "set", inside, "up"])?;
            ip(&["-n", &space, "link", "set", "lo", "up"])?;
            text += &format!("{address} {host}\n");
            let state = network.states.join(host);
            fs::create_dir_all(&state).map_err(Error::file("make", state))?;
        }
        fs::write(&network.names, text).map_err(Error::file("write", &network.names))?;
        Ok(network)
    }

    /// A command that runs on a host whatever program is appended to it: in the host's network, with its name, its
    /// state and the names of all hosts, on one core of this machine.
    pub(super) fn on(&self, host: &str) -> Command {
        let cores = std::thread::available_parallelism().map_or(1, Into::into);
        let number = self.hosts.iter().position(|known| known == host).unwrap_or_default();
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(host)));
        command.args(["unshare", "--mount", "--uts", "sh", "-ec"]);
        // The host's other mounts are left as they are, control groups among them.
        let enter = "mount --bind \"$1\" /etc/hosts; mount --bind \"$2\" \"$3\"; hostname \"$4\"; shift 4; exec taskset -c \"$@\"";
        command.args([enter, "sh"]).args([&self.names, &self.states.join(host), Path::new(STATE)]);
        command.arg(host);
        command.arg((number % cores).to_string());
        command
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.prefix)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // With a namespace its interfaces go. One that was not made can't be removed, which is no matter.
        for host in self.hosts.iter().map(String::as_str).chain([SWITCH]) {
            let _ = ip(&["netns", "delete", &self.namespace(host)]);
        }
    }
}

fn address(number: usize) -> String {
    // Of the block for benchmarks of networks (RFC 2544), which no host should have.
    format!("198.19.117.{number}")
}

fn ip(arguments: &[&str]) -> Result<(), Error> {
    let failed = |problem: String| Error::Command {
        command: format!("ip {}", arguments.join(" ")),
        problem,
    };
    let done = Command::new("ip").args(arguments).output().map_err(|e| failed(e.to_string()))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}
