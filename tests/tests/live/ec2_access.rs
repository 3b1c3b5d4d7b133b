//! Ways into and out of an instance that runs: its role, its user data, ssh, and what it must not reach.
//!
//! The live tests need what the other live tests need (`whole_runs.rs`); one needs an ssh server (Debian's dropbear-bin, or
//! openssh-server) and OpenSSH's client.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use dormouse_tests::{
    checks_and_replays, nothing_is_left_but, shared_live_turn, summary, traces, wait_for,
};
use dormouse_worker::agent::find_ssh_server;

use super::ec2_live::{Served, element};

/// Types of which spot instances of the first hibernate for some seconds, and those of the second are taken after a notice.
const CLOUD: &str = r#"name = "access"
seed = 5
[cloud]
boot = "2s"
tariff = "ec2"
hibernation = "1s"
preemption-notice = "20s"
zones = ["us-east-1a"]
[[cloud.type]]
name = "c5.large"
vcpus = 2
memory = "256 MiB"
spot = 0.034
on-demand = 0.085
[[cloud.type]]
name = "m5.large"
vcpus = 1
memory = "128 MiB"
spot = 0.036
on-demand = 0.096
[[interruption]]
model = "schedule"
acts = [
  { at = "6s", action = "preempt", type = "m5.large@us-east-1a" },
  { at = "30s", action = "hibernate", type = "c5.large@us-east-1a" },
  { at = "36s", action = "resume", type = "c5.large@us-east-1a" },
]
[live]
share = 0.15
"#;

/// Calls the API with the credentials of its role, and ends itself when it reads its notice. Every other way to call is refused.
const MANAGER: &str = r#"#!/bin/sh
imds=http://169.254.169.254/latest
curl -s -o /dev/null -w 'without a token %{http_code}\n' $imds/meta-data/instance-id
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 600' $imds/api/token)
meta() { curl -sf -H "X-aws-ec2-metadata-token: $token" "$imds/meta-data/$1"; }
id=$(meta instance-id)
role=$(meta iam/security-credentials/)
meta "iam/security-credentials/$role" >credentials
field() { sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" credentials; }
call() {
  curl -s --aws-sigv4 "aws:amz:$AWS_REGION:ec2" --user "$2" -H "X-Amz-Security-Token: $(field Token)" \
    -d "Version=2016-11-15&Action=$1" "$AWS_ENDPOINT_URL/"
}
own="$(field AccessKeyId):$(field SecretAccessKey)"
echo "role $role in $AWS_REGION"
echo "unsigned: $(curl -s -d 'Version=2016-11-15&Action=DescribeInstances' $AWS_ENDPOINT_URL/ | grep -o AuthFailure)"
echo "another account: $(call DescribeInstances 111122223333:secret | grep -o AuthFailure)"
echo "a guess: $(call DescribeInstances "$(field AccessKeyId):guess" | grep -o AuthFailure)"
echo "the clock: $(curl -s -d '{"by": 9}' $AWS_ENDPOINT_URL/_dormouse/advance | grep -o AuthFailure)"
echo "described: $(call "DescribeInstances&InstanceId.1=$id" "$own" | grep -o '<instanceId>[^<]*')"
until meta spot/instance-action; do sleep 0.2; done
echo
call "TerminateInstances&InstanceId.1=$id" "$own" | grep -o shutting-down
sleep 600
"#;

#[test]
fn a_program_reads_its_notice_and_ends_its_instance_by_the_api() {
    let Some(_turn) = shared_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let (file, out) = (folder.path().join("access.toml"), folder.path().join("run"));
    fs::write(&file, CLOUD).unwrap();
    let mut cloud = Served::begin(&file, &out);
    let options = "&InstanceMarketOptions.MarketType=spot&MetadataOptions.HttpTokens=required";
    let role = "&IamInstanceProfile.Name=manager";
    let id = cloud.launch("m5.large", MANAGER, &format!("{options}{role}"));
    let console = cloud.await_text(&id, r#"{"action":"terminate","time":""#);
    for line in [
        "without a token 401",
        "role manager in us-east-1",
        "unsigned: AuthFailure",
        "another account: AuthFailure",
        "a guess: AuthFailure",
        "the clock: AuthFailure",
        &format!("described: <instanceId>{id}"),
    ] {
        assert!(console.lines().any(|said| said == line), "{line}: {console}");
    }
    cloud.await_state(&id, "terminated");
    let described = cloud.call(&format!("DescribeInstances&InstanceId.1={id}"));
    // It was its own call, and not the provider at the end of the notice.
    assert!(described.contains("Client.UserInitiatedShutdown"), "{described}");
    cloud.end_run();
    nothing_is_left_but(&before);
    checks_and_replays(&out);
    assert_eq!(summary(&out)["counts"]["preemptions"], 0, "{:#}", summary(&out));
    // Credentials are in no file of the run.
    let kept = Command::new("grep").args(["-rlE", "ASIA[A-Z2-7]{16}"]).arg(&out).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "");
}

/// Functions by which user data call the API with the credentials of their role.
const CALLS: &str = r#"#!/bin/sh
imds=http://169.254.169.254/latest/meta-data
id=$(curl -sf $imds/instance-id)
curl -sf $imds/iam/security-credentials/manager >credentials
field() { sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" credentials; }
call() {
  curl -s -m 20 --aws-sigv4 "aws:amz:$AWS_REGION:ec2" --user "$(field AccessKeyId):$(field SecretAccessKey)" \
    -H "X-Amz-Security-Token: $(field Token)" -d "Version=2016-11-15&Action=$1" "$AWS_ENDPOINT_URL/"
}
"#;

/// Counts, and calls the API now and then.
const VICTIM: &str = r#"
echo mine >/tmp/mine
n=0
while :; do
  n=$((n+1)); echo "tick $$ $n"; sleep 0.5
  [ $((n % 4)) = 0 ] && call "DescribeInstances&InstanceId.1=$id" | grep -q "$id" && echo "answered $n"
done
"#;

/// Tries to reach its neighbour (at `NEIGHBOUR`), the host (whose API is at `PORT`) and the worker. A line that begins with OUT
/// says what it should not have been able to do.
const ATTACKER: &str = r#"
own=$(dirname "$HOME")
# Files of others.
others=$(ls -A "$(dirname "$own")" "$(dirname "$own")/instance-0" /run/dormouse/tasks 2>/dev/null | grep -v "$(basename "$own")")
[ -z "$others" ] || echo "OUT: it sees other cells: $others"
ls /tmp | grep -q mine && echo "OUT: it sees another /tmp"
for file in /etc/shadow /proc/kcore /proc/1/environ /proc/1/mem /proc/1/root/etc/shadow /run/dormouse/key; do
  [ "$(head -c 1 $file 2>/dev/null | wc -c)" = 0 ] || echo "OUT: it reads $file"
done
for file in /etc/passwd /usr/bin/env /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/fs/cgroup/cgroup.procs /dev/mem; do
  (echo x >>$file) 2>/dev/null && echo "OUT: it writes $file"
done
# Processes of others, and other namespaces.
ps=$(ls /proc | grep -c '^[0-9]')
[ "$ps" -lt 12 ] || echo "OUT: it sees $ps processes"
kill -9 1 2>/dev/null; sleep 1
unshare -r true 2>/dev/null && echo "OUT: it has a user namespace"
unshare -n true 2>/dev/null && echo "OUT: it has another network"
nsenter -t 1 -m true 2>/dev/null && echo "OUT: it enters namespaces"
chroot / true 2>/dev/null && echo "OUT: it changes its root"
mknod /tmp/device b 8 0 2>/dev/null && echo "OUT: it makes devices"
# Addresses of others.
curl -s -m 3 -o /dev/null http://127.0.0.1:PORT/ && echo "OUT: it reaches the API of the host"
[ ! -e /dev/net/tun ] || echo "OUT: it makes network devices"
for at in NEIGHBOUR:80 NEIGHBOUR:22 NEIGHBOUR:2222 NEIGHBOUR:7382 127.80.0.4:22 10.0.0.1:80 1.1.1.1:80; do
  curl -s -m 3 -o /dev/null http://$at/ && echo "OUT: it reaches $at"
done
perl -MSocket -e 'for my $port (1 .. 65535) { socket(my $s, PF_INET, SOCK_STREAM, 0);
  # A socket that was given the port it asks for reaches itself.
  connect($s, pack_sockaddr_in($port, inet_aton("127.0.0.1"))) and getsockname($s) ne getpeername($s)
    and print "OUT: it reaches port $port\n" }'
curl -s $imds/instance-id | grep -qx "$id" || echo "OUT: its metadata are another's"
curl -s -m 3 -H "X-Forwarded-For: NEIGHBOUR" $imds/instance-id | grep -qx "$id" || echo "OUT: they are forged"
call "TerminateInstances&InstanceId.1=i-00000000000000000" | grep -q InvalidInstanceID || echo "OUT: it ends others"
# More of everything than there is.
perl -e 'my $n = 0; while ($n < 3000 and defined(my $pid = fork)) { if (!$pid) { sleep 3; exit } $n++ }
  print $n < 140 ? "forked enough\n" : "OUT: it has $n processes\n"'
sleep 4
dd if=/dev/zero of=/tmp/full bs=1M count=1000 2>/dev/null
[ "$(stat -c %s /tmp/full)" -lt 134217728 ] || echo "OUT: it writes more than its memory"
rm -f /tmp/full
perl -MSocket -e '$| = 1; my @all; for my $port (80, 7382) { for (1 .. 200) { socket(my $s, PF_INET, SOCK_STREAM, 0);
  connect($s, pack_sockaddr_in($port, inet_aton("169.254.169.254"))); syswrite($s, "GET / HTTP/1.1\r\nX: "); push @all, $s } }
  sleep 600' &
sleep 8
yes "a long line of nothing" | head -c 3000000
"#;

/// Leaves links to a folder of the host where the worker looks.
const LINKS: &str = r#"
# Until then the worker has read what it reads of the console.
sleep 8
cd "$own" || exit
for name in stdout order.json bin home tmp user-data; do mv $name was-$name; ln -s CANARY $name; done
ln -s CANARY/file was-link
sleep 600
"#;

#[test]
fn what_is_tried_from_inside_an_instance_reaches_nothing_outside() {
    let Some(_turn) = shared_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let (file, out) = (folder.path().join("access.toml"), folder.path().join("run"));
    let canary = folder.path().join("canary");
    fs::create_dir(&canary).unwrap();
    fs::write(canary.join("file"), "the host's").unwrap();
    fs::set_permissions(&canary, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(&file, CLOUD).unwrap();
    let mut cloud = Served::begin(&file, &out);
    let role = "&IamInstanceProfile.Name=manager";
    let victim = cloud.launch("c5.large", &format!("{CALLS}{VICTIM}"), role);
    let described = cloud.call(&format!("DescribeInstances&InstanceId.1={victim}"));
    let neighbour = element(&described, "privateIpAddress").to_owned();
    let attacks = format!("{CALLS}{ATTACKER}{LINKS}").replace("NEIGHBOUR", &neighbour);
    let attacks = attacks.replace("PORT", &cloud.port().to_string());
    let attacks = attacks.replace("CANARY", canary.to_str().unwrap());
    let attacker = cloud.launch("m5.large", &attacks, role);

    let kept = out.join(format!("instances/{attacker}.log"));
    let said = wait_for("all is tried", Duration::from_secs(180), || {
        let said = fs::read_to_string(&kept).unwrap_or_default();
        // Once its console is full, nothing more of it is heard.
        if said.contains("the console is full") { Ok(said) } else { Err(said) }
    });
    let wrong: Vec<&str> = said.lines().filter(|line| line.starts_with("OUT")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(said.contains("forked enough\n"), "{said}");
    // Its neighbour goes on, and is answered while it holds all the connections that it can have.
    let last = |console: &str, word: &str| {
        let of = |line: &str| line.strip_prefix(word)?.split(' ').next_back()?.parse().ok();
        console.lines().filter_map(of).next_back().unwrap_or(0_u32)
    };
    let then = cloud.console(&victim);
    wait_for("the neighbour counts and is answered", Duration::from_secs(60), || {
        let now = cloud.console(&victim);
        let more = |word| last(&now, word) > last(&then, word);
        if more("tick ") && more("answered ") { Ok(()) } else { Err(now) }
    });
    assert_eq!(cloud.state(&attacker), "running");
    cloud.call(&format!("TerminateInstances&InstanceId.1={attacker}"));
    cloud.await_state(&attacker, "terminated");
    cloud.end_run();
    nothing_is_left_but(&before);
    checks_and_replays(&out);
    assert_eq!(fs::read_to_string(canary.join("file")).unwrap(), "the host's");
    assert_eq!(fs::read_dir(&canary).unwrap().count(), 1, "nothing was put there");
}

/// User data that write files, run commands, and add a user.
const CONFIG: &str = r#"#cloud-config
users: [default, {name: ana}]
write_files:
  - path: /home/ana/count.sh
    permissions: '0755'
    content: |
      #!/bin/sh
      n=0
      while :; do n=$((n+1)); echo "$$ $n" >>/tmp/count; sleep 0.2; done
runcmd:
  - cd /home/ubuntu
  - [ echo, "it's", "$(pwd)" ]
  - echo "in $(pwd), $(stat -c %a count.sh)"
"#;

/// Server of texts at two ports, of which the group opens the first.
const SERVER: &str = r#"perl -MIO::Socket -e 'for my $port (8000, 8001) { if (!fork) {
my $s = IO::Socket::INET->new(Listen => 5, LocalPort => $port, ReuseAddr => 1) or die;
while (my $c = $s->accept) { print $c "hello from $port\n"; close $c } } } wait'"#;

/// Connects to an instance at its private address `OTHER`, at the ports of [`SERVER`] and that of ssh, as the groups allow it.
const CALLER: &str = r#"#!/bin/sh
try() { perl -MIO::Socket -e '$s = IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 1) or exit 1; print $s->getline' "$1"; }
groups() { curl -s http://169.254.169.254/latest/meta-data/security-groups; }
until try OTHER:8000; do sleep 0.2; done
try OTHER:22
try OTHER:8001 && echo "OUT: a port that no group opens"
try 127.80.0.4:22 && echo "OUT: an address of the host"
try 1.1.1.1:80 && echo "OUT: the internet"
echo "in $(groups)"
until try OTHER:8001; do sleep 0.2; done
while try OTHER:8000 >/dev/null; do sleep 0.2; done
echo "8000 is closed"
until groups | grep -q default; do sleep 0.2; done
echo "in $(groups | tr '\n' ' ')"
sleep 600
"#;

/// Two workers, each with room for one instance.
const TWO_WORKERS: &str = r#"name = "two-workers"
seed = 5
[cloud]
boot = "1s"
tariff = "ec2"
zones = ["us-east-1a"]
hosts = [{ vcpus = 2, memory = "2 GiB", count = 2 }]
[[cloud.type]]
name = "c5.large"
vcpus = 2
memory = "256 MiB"
on-demand = 0.085
[live]
share = 0.15
"#;

/// Leaves a file, and sends two megabytes to who connects.
const SENDER: &str = r#"#!/bin/sh
echo "began with $(ls | wc -l) files"
touch mine
exec perl -MIO::Socket -e 'my $s = IO::Socket::INET->new(Listen => 5, LocalPort => 8000, ReuseAddr => 1) or die;
while (my $c = $s->accept) { print $c "x" x 2_000_000; close $c }'
"#;

/// Reads what the instance at `OTHER` sends, for which its groups allow it to connect to instances of the group `g` alone.
const READER: &str = r#"#!/bin/sh
read_all() { perl -MIO::Socket -e '$s = IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 2) or exit 1; print <$s>' "$1" | wc -c; }
until [ "$(read_all OTHER:8000)" = 2000000 ]; do sleep 0.2; done
echo "read all"
"#;

#[test]
fn instances_of_two_workers_reach_each_other_and_files_stay_where_they_are() {
    let Some(_turn) = shared_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let (file, out) = (folder.path().join("two.toml"), folder.path().join("run"));
    fs::write(&file, TWO_WORKERS).unwrap();
    let mut cloud = Served::begin(&file, &out);
    let group = |name: &str| {
        let call = format!("CreateSecurityGroup&GroupName={name}&GroupDescription=d");
        element(&cloud.call(&call), "groupId").to_owned()
    };
    let (open, callers) = (group("open"), group("callers"));
    let rule = |group: &str, peer: &str| {
        format!(
            "GroupId={group}&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=8000&\
                 IpPermissions.1.ToPort=8000&IpPermissions.1.Groups.1.GroupId={peer}"
        )
    };
    cloud.call(&format!("AuthorizeSecurityGroupIngress&{}", rule(&open, &callers)));
    cloud.call(&format!("AuthorizeSecurityGroupEgress&{}", rule(&callers, &open)));
    cloud.call(&format!(
        "RevokeSecurityGroupEgress&GroupId={callers}&IpPermissions.1.IpProtocol=-1&\
                         IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0%2F0"
    ));
    let sender = cloud.launch("c5.large", SENDER, &format!("&SecurityGroupId.1={open}"));
    let described = cloud.call(&format!("DescribeInstances&InstanceId.1={sender}"));
    let reads = READER.replace("OTHER", element(&described, "privateIpAddress"));
    let reader = cloud.launch("c5.large", &reads, &format!("&SecurityGroupId.1={callers}"));
    cloud.await_text(&reader, "read all\n");

    // One that has to start on the other worker says that it begins anew.
    cloud.call(&format!("StopInstances&InstanceId.1={sender}"));
    let third = cloud.launch("c5.large", "#!/bin/sh\n", "");
    cloud.call(&format!("TerminateInstances&InstanceId.1={reader}"));
    cloud.await_state(&third, "running");
    cloud.call(&format!("StartInstances&InstanceId.1={sender}"));
    let left = "[dormouse: the instance's files from before its stop were left on another worker of this run;";
    let console = cloud.await_text(&sender, left);
    assert!(!console.contains("told to end"), "{console}");
    cloud.await_text(&sender, "began with 0 files\n");
    cloud.end_run();
    nothing_is_left_but(&before);
    checks_and_replays(&out);
}

/// An ssh client's key and address.
struct Login {
    key: PathBuf,
    address: String,
}

impl Login {
    const OPTIONS: [&str; 10] = [
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "LogLevel=ERROR",
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=20",
    ];

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(Self::OPTIONS).arg("-i").arg(&self.key);
        command
    }

    fn ssh(&self, user: &str, options: &[&str], what: &str) -> Output {
        let to = format!("{user}@{}", self.address);
        self.command("ssh").args(options).args([to.as_str(), what]).output().unwrap()
    }

    /// What a command prints that does well.
    fn run(&self, user: &str, what: &str) -> String {
        let ran = self.ssh(user, &[], what);
        assert!(ran.status.success(), "{what}: {ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    }

    fn copy(&self, from: &str, to: &str) {
        // Dropbear has no server of files of its own.
        let ran = self.command("scp").args(["-O", from, to]).output().unwrap();
        assert!(ran.status.success(), "{from} to {to}: {ran:?}");
    }
}

/// The last line of the count: its PID and its number.
fn last_count(login: &Login) -> (u32, u32) {
    let line = login.run("ubuntu", "tail -1 /tmp/count");
    let (pid, number) = line.trim().split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
    (pid.parse().unwrap(), number.parse().unwrap())
}

#[test]
fn somebody_logs_in_and_a_process_of_his_counts_on_after_a_hibernation() {
    let Some(_turn) = shared_live_turn() else { return };
    let lent = std::env::var_os("DORMOUSE_ALLOW_MOUNTS").unwrap_or_default();
    let lent: Vec<PathBuf> = std::env::split_paths(&lent).collect();
    if find_ssh_server(&lent).is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "install dropbear-bin");
        println!("skipped: this host has no ssh server; install dropbear-bin or openssh-server");
        return;
    }
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let (file, out) = (folder.path().join("access.toml"), folder.path().join("run"));
    fs::write(&file, CLOUD).unwrap();
    let mut cloud = Served::begin(&file, &out);
    let made = cloud.call("CreateKeyPair&KeyName=laptop&KeyType=ed25519");
    let key = folder.path().join("laptop.pem");
    fs::write(&key, element(&made, "keyMaterial").replace("&#xA;", "\n")).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let made = cloud.call("CreateSecurityGroup&GroupName=open&GroupDescription=d");
    let group = element(&made, "groupId").to_owned();
    for port in [22, 8000] {
        cloud.call(&format!(
            "AuthorizeSecurityGroupIngress&GroupId={group}&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort={port}&\
             IpPermissions.1.ToPort={port}&IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0%2F0"
        ));
    }
    let more = format!(
        "&KeyName=laptop&SecurityGroupId.1={group}&InstanceMarketOptions.MarketType=spot&\
         InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent&\
         InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=hibernate"
    );
    let id = cloud.launch("c5.large", CONFIG, &more);
    cloud.await_state(&id, "running");
    let described = cloud.call(&format!("DescribeInstances&InstanceId.1={id}"));
    let address = element(&described, "ipAddress").to_owned();
    assert!(address.starts_with("127.80."), "{address}");
    let login = Login { key, address: address.clone() };
    wait_for("ssh answers", Duration::from_secs(30), || {
        let ran = login.ssh("ubuntu", &[], "id -un");
        if ran.status.success() { Ok(()) } else { Err(format!("{ran:?} {}", cloud.console(&id))) }
    });
    // A process that outlives its session.
    login.run("ana", "setsid /home/ana/count.sh >/dev/null 2>&1 </dev/null &");
    let (pid, _) = wait_for("it counts", Duration::from_secs(10), || {
        let said = login.ssh("ubuntu", &[], "tail -1 /tmp/count");
        if said.stdout.is_empty() { Err(format!("{said:?}")) } else { Ok(last_count(&login)) }
    });

    // The same process counts on after the hibernation, in which ssh does not answer.
    cloud.await_state(&id, "stopped");
    let before_thaw = Command::new("timeout")
        .args(["2", "ssh", "-i"])
        .arg(&login.key)
        .args(Login::OPTIONS)
        .args([format!("ubuntu@{address}").as_str(), "true"])
        .output()
        .unwrap();
    cloud.await_state(&id, "running");
    assert!(!before_thaw.status.success(), "{before_thaw:?}");
    let (again, number) = last_count(&login);
    assert_eq!(again, pid);
    wait_for("it counts on", Duration::from_secs(10), || {
        let (same, then) = last_count(&login);
        if (same, then > number) == (pid, true) { Ok(()) } else { Err(format!("{same} {then}")) }
    });
    let all = login.run("ubuntu", "cat /tmp/count");
    let counts: Vec<_> = all.lines().enumerate().map(|(n, _)| format!("{pid} {}", n + 1)).collect();
    assert_eq!(all.lines().collect::<Vec<_>>(), counts, "no count is missing");

    // What the user data have done, and who one is.
    let console = cloud.console(&id);
    assert!(console.contains("it's $(pwd)\n") && console.contains(", 755\n"), "{console}");
    assert!(console.contains("-----BEGIN SSH HOST KEY KEYS-----\nssh-ed25519 AAAA"), "{console}");
    assert_eq!(login.run("ec2-user", "id -un; cd; pwd -P").lines().next(), Some("task"));
    let ran = login.ssh("root", &[], "id");
    assert!(!ran.status.success(), "{ran:?}");
    let tty = login.ssh("ubuntu", &["-tt"], "tty");
    assert!(String::from_utf8_lossy(&tty.stdout).contains("/dev/pts/"), "{tty:?}");

    // Files go there and come back.
    let (sent, back) = (folder.path().join("sent"), folder.path().join("back"));
    fs::write(&sent, vec![7; 300_000]).unwrap();
    let there = format!("ubuntu@{address}:/home/ana/sent");
    login.copy(sent.to_str().unwrap(), &there);
    login.copy(&there, back.to_str().unwrap());
    assert_eq!(fs::read(&back).unwrap(), fs::read(&sent).unwrap());

    // Ports that its group opens can be reached, and no others.
    login.run("ubuntu", &format!("setsid {SERVER} >/dev/null 2>&1 </dev/null &"));
    let at = |port: u16| TcpStream::connect((address.as_str(), port));
    wait_for("its port answers", Duration::from_secs(10), || {
        let read = at(8000).and_then(std::io::read_to_string).map_err(|e| e.to_string())?;
        if read == "hello from 8000\n" { Ok(()) } else { Err(read) }
    });
    at(8001).unwrap_err();
    let inside = login.run(
        "ubuntu",
        "perl -MIO::Socket -e 'print IO::Socket::INET->new(\"127.0.0.1:8001\")->getline'",
    );
    assert_eq!(inside, "hello from 8001\n", "it does listen");

    // Another instance of the network reaches the same ports at the private address, and what groups open later.
    let made = cloud.call("CreateSecurityGroup&GroupName=callers&GroupDescription=d");
    let callers = element(&made, "groupId").to_owned();
    let private = element(&described, "privateIpAddress");
    let calls = CALLER.replace("OTHER", private);
    let caller = cloud.launch("m5.large", &calls, &format!("&SecurityGroupId.1={callers}"));
    let console = cloud.await_text(&caller, "in callers\n");
    assert!(console.starts_with("hello from 8000\nSSH-2.0-"), "{console}");
    let port = |port: u16| {
        format!(
            "GroupId={group}&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort={port}&IpPermissions.1.ToPort={port}"
        )
    };
    let of_callers = format!("IpPermissions.1.Groups.1.GroupId={callers}");
    cloud.call(&format!("AuthorizeSecurityGroupIngress&{}&{of_callers}", port(8001)));
    cloud.await_text(&caller, "hello from 8001\n");
    let everywhere = "IpPermissions.1.IpRanges.1.CidrIp=0.0.0.0%2F0";
    cloud.call(&format!("RevokeSecurityGroupIngress&{}&{everywhere}", port(8000)));
    cloud.await_text(&caller, "8000 is closed\n");
    wait_for("the host can't reach it either", Duration::from_secs(5), || {
        at(8000).map_or(Ok(()), |_| Err("it can".to_owned()))
    });
    let network = cloud.call("DescribeSecurityGroups&GroupName.1=default");
    let default = element(&network, "groupId");
    cloud.call(&format!(
        "ModifyInstanceAttribute&InstanceId={caller}&GroupId.1={callers}&GroupId.2={default}"
    ));
    let console = cloud.await_text(&caller, "in callers default");
    assert!(!console.contains("OUT"), "{console}");

    // A key that is not the instance's opens nothing.
    let other = folder.path().join("other");
    keygen(&other);
    let stranger = Login { key: other, address: address.clone() };
    let ran = stranger.ssh("ubuntu", &["-o", "IdentitiesOnly=yes"], "id");
    assert!(!ran.status.success(), "{ran:?}");

    cloud.call(&format!("TerminateInstances&InstanceId.1={id}"));
    cloud.end_run();
    at(22).unwrap_err();
    nothing_is_left_but(&before);
    checks_and_replays(&out);
    assert_eq!(summary(&out)["counts"]["hibernations"], 1, "{:#}", summary(&out));
}

/// Makes a key pair in a file.
fn keygen(path: &Path) {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path);
    assert!(keygen.status().unwrap().success());
}
