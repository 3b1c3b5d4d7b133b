//! Starting a cell: its directory with the user data, and its first process.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::{self, Write as _},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use dormouse_proto::v1;
use dormouse_tasks::{
    cell_init::{self, CellFile, CellOrder},
    supervisor::WORK,
};

use super::{
    files::{FilesAbsence, FoundFiles, clear_for_boot},
    find_ssh_server,
    network::CellNetwork,
    ssh,
};

use crate::{
    agent::{
        gate::LaunchPass,
        host::{LifeHost, limit},
        report::explain_error,
    },
    cgroup::{TierSlot, VmGroups},
    directory,
    jail::{self, ProgramBounds},
    process::{ChildProcess, ProgramCommand},
    workspace::{self, TaskName},
};

/// Name of the order's file in a cell's directory.
const ORDER: &str = "order.json";
/// Name of the user data's file in a cell's directory.
const USER_DATA: &str = "user-data";
/// Folders in which programs are searched for, after that of the commands of a shutdown.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Name of the file of the program that starts the ssh server, in a cell's directory.
const SSH: &str = "ssh-server";
/// Most bytes of a cell's program: quotes make the commands of #cloud-config longer.
const PROGRAM_BYTES: usize = 80 << 10;
/// Most bytes of all files that a cell's boot writes, and of all keys that may log in.
const CONFIG_BYTES: usize = 32 << 10;
/// Most further names of a cell's user, and most files that its boot writes.
const CONFIG_ITEMS: usize = 64;
/// Names in a cell's directory that each boot makes anew.
const MADE_AT_BOOT: [&str; 6] = [ORDER, USER_DATA, SSH, cell_init::COMMANDS, "stdout", "stderr"];
/// Time beyond the limit of a shutdown after which an earlier VM of an instance should have left the instance's files.
const MORE: Duration = Duration::from_secs(10);
/// Names that the user of a cell has besides that of a task's user: those of common images.
const USER_NAMES: [&str; 3] = ["ubuntu", "ec2-user", "admin"];
/// Most bytes of the coordinator's reason why an instance's files are not there.
const ABSENCE_BYTES: usize = 256;
/// Longest time limit of a cell's shutdown, in real milliseconds.
const LONGEST_SHUTDOWN_MS: u32 = 60_000;

/// Order to start a cell.
#[derive(Clone, Debug)]
pub struct CellLaunch {
    /// Number of the cell's VM.
    pub vm: u32,
    /// Name of the cell's folder.
    pub name: TaskName,
    /// The coordinator's description of the cell.
    pub cell: v1::InstanceCell,
    /// Variables by which programs find the VM's metadata.
    pub env: Vec<(String, String)>,
    /// Most bytes of the cell's files.
    pub directory_bytes: u64,
    /// Permission to start processes on the VM; it can be revoked, and blocks while the VM is frozen.
    pub pass: LaunchPass,
}

/// Makes the name of the folder of an instance's files, which its first VM names.
///
/// # Errors
///
/// The run's name can't be that of a folder.
pub(crate) fn folder_name(run: &str, first_vm: u32) -> workspace::Result<TaskName> {
    TaskName::new(run, format!("instance-{first_vm}"))
}

/// Checks that a cell is one that a run can need.
///
/// # Errors
///
/// In words, what no run needs.
pub(crate) fn check_cell(cell: &v1::InstanceCell) -> Result<(), String> {
    let bytes = cell.user_data.as_ref().map_or(0, String::len);
    if bytes > PROGRAM_BYTES {
        return Err(format!("user data of {bytes} bytes; a worker accepts {PROGRAM_BYTES}"));
    }
    check_config(cell)?;
    check_ways(cell)?;
    if cell.core_ppm == 0 {
        return Err("a cell without any share of a core".to_owned());
    }
    if cell.files_absent.len() > ABSENCE_BYTES || cell.files_absent.chars().any(char::is_control) {
        return Err("a reason for absent files that is no short line".to_owned());
    }
    match cell.shutdown_real_ms {
        0..=LONGEST_SHUTDOWN_MS => Ok(()),
        ms => Err(format!("a shutdown of {ms} ms; a worker accepts {LONGEST_SHUTDOWN_MS}")),
    }
}

/// Checks the keys, names and files of a cell.
fn check_config(cell: &v1::InstanceCell) -> Result<(), String> {
    let keys: usize = cell.ssh_keys.iter().map(|key| key.len() + 1).sum();
    if keys > CONFIG_BYTES || cell.ssh_keys.iter().any(|key| key.chars().any(char::is_control)) {
        return Err("keys that are too long, or are not lines of text".to_owned());
    }
    let Some(config) = &cell.config else { return Ok(()) };
    let is_name = |name: &String| {
        let plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        (1..=32).contains(&name.len()) && name.bytes().all(plain) && name != "root"
    };
    if config.users.len() > CONFIG_ITEMS || !config.users.iter().all(is_name) {
        return Err("too many names of users, or one that can't be a name".to_owned());
    }
    let bytes: usize = config.files.iter().map(|file| file.path.len() + file.content.len()).sum();
    let is_right =
        |file: &v1::ConfigFile| file.mode <= 0o777 && Path::new(&file.path).is_absolute();
    if config.files.len() > CONFIG_ITEMS
        || bytes > CONFIG_BYTES
        || !config.files.iter().all(is_right)
    {
        return Err(format!("files that are not right, or of {bytes} bytes"));
    }
    Ok(())
}

/// Checks the addresses and the network by which a cell is reached, and by which it reaches the API.
fn check_ways(cell: &v1::InstanceCell) -> Result<(), String> {
    let of_api = cell.api.as_ref().map(|api| api.address.parse::<SocketAddr>());
    let is_allowed =
        |api: SocketAddr| api.ip().is_loopback() || (api.ip().is_unspecified() && api.port() > 0);
    if of_api.is_some_and(|api| !api.is_ok_and(is_allowed)) {
        let why = "an API that is neither on this host's loopback nor on the coordinator's host";
        return Err(why.to_owned());
    }
    let public = cell.public_address.as_ref().map(|address| address.parse::<Ipv4Addr>());
    let is_ours = |address: Ipv4Addr| address.octets().starts_with(&[127, 80]);
    if public.is_some_and(|public| !public.is_ok_and(is_ours)) {
        return Err("a public address that is not in 127.80.0.0/16".to_owned());
    }
    cell.network.as_ref().map_or(Ok(()), |network| CellNetwork::read(network).map(drop))
}

/// Gives the folder of an instance's files to the instance's VM, once an earlier VM of the instance has left it.
///
/// # Errors
///
/// In words: the earlier VM does not leave it, or the cell is not wanted any more.
pub(crate) async fn claim_folder(
    host: &LifeHost,
    launch: &CellLaunch,
) -> Result<FoundFiles, String> {
    let CellLaunch { vm, name, cell, .. } = launch;
    let patience = Duration::from_millis(cell.shutdown_real_ms.into()) + MORE;
    let found = host.folders.claim(name, *vm, patience).await?;
    // Its VM may have ended meanwhile, and has left the folder to nobody then.
    if let Err(unwanted) = launch.pass.check_wanted() {
        host.release_folder(name, *vm, true);
        return Err(explain_error(&unwanted));
    }
    Ok(found)
}

/// Prepares the directory of a cell, in which these files were found, and starts the cell's first process.
///
/// # Errors
///
/// In words, what went wrong; no process is left then.
pub(crate) fn begin_cell(
    host: &LifeHost,
    groups: &Arc<VmGroups>,
    launch: &CellLaunch,
    found: &FoundFiles,
) -> Result<ChildProcess, String> {
    let CellLaunch { vm, name, directory_bytes, pass, .. } = launch;
    let has_files = *found == FoundFiles::Kept;
    let fits = prepare_directory(host, launch, has_files)?;
    let mut notes: Vec<String> = note_of_files(&launch.cell, found).into_iter().collect();
    if !fits {
        notes.push(format!(
            "the files take nearly all of the {} MiB that this type has for them, or more: little can be added before some are removed",
            directory_bytes >> 20
        ));
    }
    let folder = host.workspace().task_directory(name);
    let has_root = groups.cell().is_some_and(|cell| cell.has_root());
    let wants_ssh = !launch.cell.ssh_keys.is_empty();
    let server = find_ssh_server(&host.prepared.mounts).filter(|_| wants_ssh);
    if wants_ssh && server.is_none() {
        return Err("this host has no ssh server: install openssh-server".to_owned());
    }
    let written = write_order(&folder, launch, (has_files, notes), (has_root, server));
    written.map_err(|e| format!("its order: {e}"))?;
    let entry = groups.slot_groups(0, TierSlot::A).map_err(|e| explain_error(&e))?;
    pass.check_wanted().map_err(|e| explain_error(&e))?;
    let begun = ProgramCommand::new(host.task_program(), &folder)
        .args([cell_init::KIND, "--order"])
        .arg(folder.join(ORDER))
        .bounds(ProgramBounds { file_bytes: *directory_bytes, processes: None })
        .user_names(user_names(&launch.cell))
        .start_task(&entry, limit::BIRTH)
        .map_err(|e| explain_error(&e))?;
    host.folders.note_begun(name, *vm);
    Ok(begun)
}

/// Returns what the console says of an instance whose files from before its last stop are not there; `None`: nothing.
fn note_of_files(cell: &v1::InstanceCell, found: &FoundFiles) -> Option<String> {
    let why = match found {
        FoundFiles::Kept | FoundFiles::Absent(Some(FilesAbsence::NeverBegun)) => return None,
        _ if !cell.has_files => return None,
        _ if !cell.files_absent.is_empty() => cell.files_absent.clone(),
        FoundFiles::Absent(Some(absence)) => format!("were not kept: {absence}"),
        FoundFiles::Absent(None) => "are not on this worker".to_owned(),
    };
    Some(format!("the instance's files from before its stop {why}; it begins as at its first boot"))
}

/// Makes the directory of a cell, unless it is there with files from before the instance's last stop. Returns whether these files
/// have room in the directory, whose size is that of the instance's type.
fn prepare_directory(
    host: &LifeHost,
    launch: &CellLaunch,
    has_files: bool,
) -> Result<bool, String> {
    let CellLaunch { name, directory_bytes, .. } = launch;
    let workspace = host.workspace();
    let folder = workspace.task_directory(name);
    if has_files {
        let cleared = clear_for_boot(&folder, &MADE_AT_BOOT);
        cleared.map_err(|e| format!("its files from before its stop: {e}"))?;
        return workspace.resize_task(name, *directory_bytes).map_err(|e| explain_error(&e));
    }
    workspace.remove_task(name).map_err(|e| explain_error(&e))?;
    workspace.create_task(name).map_err(|e| explain_error(&e))?;
    workspace.bound_task(name, *directory_bytes).map_err(|e| explain_error(&e))?;
    let nothing = host.contents().hold_contents([]).map_err(|e| explain_error(&e))?;
    directory::make_directory(&folder, &[], &nothing).map_err(|e| explain_error(&e))?;
    Ok(true)
}

/// Returns the names of a cell's user besides that of a task's user.
fn user_names(cell: &v1::InstanceCell) -> Vec<String> {
    let of_config = cell.config.iter().flat_map(|config| config.users.iter().cloned());
    USER_NAMES.into_iter().map(str::to_owned).chain(of_config).collect()
}

/// Writes the user data, the start of the ssh server (if there is one), and the order of a cell into the cell's directory. What an
/// instance does at its first boot alone is left out if it `has_files` from before a stop.
fn write_order(
    folder: &Path,
    launch: &CellLaunch,
    (has_files, notes): (bool, Vec<String>),
    (has_root, server): (bool, Option<PathBuf>),
) -> io::Result<()> {
    let write = |name: &str, mode, bytes: &[u8]| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(folder.join(name))?;
        // Whatever the worker's umask is.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        file.write_all(bytes)
    };
    let user_data = match &launch.cell.user_data {
        Some(text) if !has_files => {
            write(USER_DATA, 0o755, text.as_bytes())?;
            Some(folder.join(USER_DATA))
        }
        _ => None,
    };
    let env = make_environment(folder, &launch.env, has_root);
    let ssh = match server {
        Some(server) => {
            write(SSH, 0o755, ssh::start_script(&server, &env).as_bytes())?;
            Some(folder.join(SSH))
        }
        None => None,
    };
    let names = [jail::NAME.to_owned()].into_iter().chain(user_names(&launch.cell));
    let files = launch.cell.config.iter().flat_map(|config| &config.files);
    let order = CellOrder {
        user_data,
        ssh,
        names: names.collect(),
        keys: if has_files { Vec::new() } else { launch.cell.ssh_keys.clone() },
        files: files.filter(|_| !has_files).map(cell_file).collect(),
        notes,
        env,
        shutdown_ms: launch.cell.shutdown_real_ms.into(),
    };
    write(ORDER, 0o644, &serde_json::to_vec(&order)?)
}

fn cell_file(file: &v1::ConfigFile) -> CellFile {
    let v1::ConfigFile { path, content, mode, appends } = file;
    CellFile { path: path.into(), content: content.to_vec(), mode: *mode, appends: *appends }
}

/// Makes the environment of a cell's user data, with the variables of its VM.
fn make_environment(
    folder: &Path,
    of_vm: &[(String, String)],
    has_root: bool,
) -> BTreeMap<String, String> {
    let home = folder.join(WORK).to_string_lossy().into_owned();
    let path = format!("{}:{PATH}", folder.join(cell_init::COMMANDS).display());
    let all = [("PATH", path.as_str()), ("LANG", "C.UTF-8"), ("HOME", &home), ("PWD", &home)];
    let user = [("USER", jail::NAME), ("LOGNAME", jail::NAME), ("SHELL", jail::SHELL)];
    let elsewhere = [("TMPDIR", home.as_str())];
    let user = if has_root { &user[..] } else { &elsewhere[..] };
    let all = all.iter().chain(user).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    all.chain(of_vm.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_no_run_needs_is_refused() {
        let cell = v1::InstanceCell { core_ppm: 1, ..v1::InstanceCell::default() };
        let refused = |cell: v1::InstanceCell| check_cell(&cell).expect_err("it is refused");
        assert_eq!(check_cell(&cell), Ok(()));
        let long = Some("x".repeat(PROGRAM_BYTES + 1));
        assert!(
            refused(v1::InstanceCell { user_data: long, ..cell.clone() }).contains("81921 bytes")
        );
        assert!(refused(v1::InstanceCell { core_ppm: 0, ..cell.clone() }).contains("share"));
        assert!(
            refused(v1::InstanceCell { shutdown_real_ms: 60_001, ..cell }).contains("60001 ms")
        );
    }

    #[test]
    fn a_cell_reaches_and_is_reached_only_where_it_may_be() {
        let cell = v1::InstanceCell { core_ppm: 1, ..v1::InstanceCell::default() };
        let api = |address: &str| {
            let api = v1::InstanceApi { address: address.to_owned(), region: String::new() };
            check_cell(&v1::InstanceCell { api: Some(api), ..cell.clone() })
        };
        assert_eq!(api("127.0.0.1:7000"), Ok(()));
        assert_eq!(api("0.0.0.0:7000"), Ok(()), "the coordinator's host");
        let elsewhere = ["10.0.0.1:22", "169.254.169.254:80", "localhost:1", "", "0.0.0.0:0"];
        for elsewhere in elsewhere.into_iter().chain(["[::ffff:10.0.0.1]:22"]) {
            api(elsewhere).expect_err(elsewhere);
        }
        let public = |address: &str| {
            let public_address = Some(address.to_owned());
            check_cell(&v1::InstanceCell { public_address, ..cell.clone() })
        };
        assert_eq!(public("127.80.0.4"), Ok(()));
        for other in ["0.0.0.0", "127.0.0.1", "10.0.0.1", "x"] {
            public(other).expect_err(other);
        }
        let network = Some(v1::InstanceNetwork::default());
        check_cell(&v1::InstanceCell { network, ..cell }).expect_err("it has no address");
    }

    #[test]
    fn what_a_boot_writes_is_bounded() {
        let cell = v1::InstanceCell { core_ppm: 1, ..v1::InstanceCell::default() };
        let keys = |key: &str| {
            let ssh_keys = vec![key.to_owned()];
            check_cell(&v1::InstanceCell { ssh_keys, ..cell.clone() })
        };
        assert_eq!(keys("ssh-ed25519 AAAA"), Ok(()));
        assert!(keys("a\nb").is_err() && keys(&"x".repeat(CONFIG_BYTES)).is_err());
        let config = |users: &[&str], path: &str, bytes| {
            let users = users.iter().map(|name| (*name).to_owned()).collect();
            let content = vec![0; bytes].into();
            let file =
                v1::ConfigFile { path: path.to_owned(), content, ..v1::ConfigFile::default() };
            let config = Some(v1::InstanceConfig { users, files: vec![file] });
            check_cell(&v1::InstanceCell { config, ..cell.clone() })
        };
        assert_eq!(config(&["ana"], "/tmp/x", 9), Ok(()));
        for wrong in [
            config(&["a:0:0"], "/tmp/x", 9),
            config(&["root"], "/tmp/x", 9),
            config(&[""], "/tmp/x", 9),
            config(&["ana"], "tmp/x", 9),
            config(&["ana"], "/tmp/x", CONFIG_BYTES),
            config(&["ana"; CONFIG_ITEMS + 1], "/tmp/x", 9),
        ] {
            wrong.expect_err("it is refused");
        }
    }

    #[test]
    fn the_console_says_why_files_are_not_there_and_where_they_are() {
        let note = |has_files, files_absent: &str, found: FoundFiles| {
            let files_absent = files_absent.to_owned();
            let cell = v1::InstanceCell { has_files, files_absent, ..v1::InstanceCell::default() };
            note_of_files(&cell, &found).unwrap_or_default()
        };
        let absent = |why| FoundFiles::Absent(why);
        assert_eq!(note(true, "", FoundFiles::Kept), "");
        assert_eq!(note(false, "", absent(None)), "", "it is its first boot");
        assert_eq!(note(true, "", absent(Some(FilesAbsence::NeverBegun))), "");
        let said = note(true, "", absent(None));
        assert!(said.contains("are not on this worker; it begins"), "{said}");
        let said = note(true, "", absent(Some(FilesAbsence::TooMany)));
        assert!(said.contains("were not kept: ") && said.contains("terminate some"), "{said}");
        let said = note(true, "are on another worker", absent(None));
        assert!(said.contains("stop are on another worker; it begins"), "{said}");
        let cell = v1::InstanceCell { core_ppm: 1, ..v1::InstanceCell::default() };
        for wrong in ["x\ny".to_owned(), "x".repeat(257)] {
            check_cell(&v1::InstanceCell { files_absent: wrong, ..cell.clone() })
                .expect_err("it is refused");
        }
    }

    #[test]
    fn the_commands_of_a_shutdown_are_found_first() {
        let of_vm = [("GCE_METADATA_IP".to_owned(), "169.254.169.254".to_owned())];
        let env = make_environment(Path::new("/tasks/r/vm7"), &of_vm, true);
        assert!(env["PATH"].starts_with("/tasks/r/vm7/bin:/usr/local/sbin:"), "{env:?}");
        assert_eq!((env["HOME"].as_str(), env["USER"].as_str()), ("/tasks/r/vm7/work", "task"));
        assert_eq!(env["GCE_METADATA_IP"], "169.254.169.254");
        let env = make_environment(Path::new("/t"), &[], false);
        assert_eq!((env.get("USER"), env["TMPDIR"].as_str()), (None, "/t/work"));
    }
}
