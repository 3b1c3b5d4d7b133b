//! Instances of EC2's API that run their user data as real processes on the workers of a live run.
//!
//! The live tests need what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dormouse_tests::{
    checks_and_replays, dormouse, is_faithful, nothing_is_left_but, summary, timed_live_turn,
    traces, wait_for,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Two types: spot instances of the first hibernate for some seconds, one of the second is taken after a notice. A vCPU is a tenth
/// of a core.
const CLOUD: &str = r#"name = "instances"
seed = 3
[cloud]
boot = "2s"
tariff = "ec2"
hibernation = "1s"
preemption-notice = "6s"
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
  { at = "14s", action = "hibernate", type = "c5.large@us-east-1a" },
  { at = "30s", action = "resume", type = "c5.large@us-east-1a" },
  { at = "16s", action = "preempt", type = "m5.large@us-east-1a" },
]
[live]
share = 0.1
"#;

/// Counts, each time with its own PID, and says when it is told to end.
const COUNTER: &str = r#"#!/bin/sh
trap 'echo "told to end at $n"; exit 0' TERM
echo "I am $$, below $PPID, in $(hostname) as $(id -un), with $(ls /proc | grep -c '^[0-9]') processes"
n=0
while :; do n=$((n+1)); echo "tick $$ $n"; sleep 0.2; done
"#;

/// Tries to leave its cell, and reads its metadata until it is told of its end. `PORT` is that of the API on the host.
const WATCHER: &str = r#"#!/bin/sh
at=http://169.254.169.254/latest
[ "$(id -u)" = 0 ] && echo "OUT: it is root"
[ -r /etc/shadow ] && echo "OUT: it reads shadow"
ls /root /sys/fs/cgroup 2>/dev/null | grep -q . && echo "OUT: it sees the host"
touch /usr/bin/x 2>/dev/null && echo "OUT: it writes programs"
cat /proc/1/environ >/dev/null 2>&1 && echo "OUT: it reads the first process"
kill -9 1 2>/dev/null && sleep 1 && ! kill -0 1 2>/dev/null && echo "OUT: it kills the first process"
mount -t tmpfs none /tmp 2>/dev/null && echo "OUT: it mounts"
for port in PORT 22; do curl -s -m 2 -o /dev/null http://127.0.0.1:$port && echo "OUT: it reaches the host"; done
ls /proc | grep '^[0-9]' | while read -r pid; do grep -q dormouse-worker /proc/$pid/cmdline 2>/dev/null && echo "OUT: it sees $pid"; done
echo "id $(curl -s $at/meta-data/instance-id)"
echo "ip $(curl -s $at/meta-data/local-ipv4)"
curl -s $at/user-data | head -1
until curl -sf $at/meta-data/spot/instance-action; do sleep 0.2; done
echo
sleep 60
"#;

/// Leaves files and a program for the next boot, and ends by itself; what it started goes on, and shuts the instance down.
const LEAVER: &str = r#"#!/bin/sh
mkdir per-boot
echo "of the first boot" >kept
touch /tmp/lost
printf '#!/bin/sh\necho "again: $(cat ~/kept), in /tmp $(ls /tmp | wc -l)"\n' >per-boot/again
chmod +x per-boot/again
(sleep 2; echo "the last one"; shutdown -h now; sleep 60) &
echo "gone"
exit 7
"#;

/// The server, which is killed when its test ends, however that is.
pub(super) struct Served {
    process: Child,
    port: u16,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Served {
    pub(super) fn begin(file: &Path, out: &Path) -> Self {
        let mut process = Command::new(dormouse())
            .args([
                "ec2",
                file.to_str().unwrap(),
                "--clock",
                "live",
                "--listen",
                "127.0.0.1:0",
                "--quiet",
                "--out",
            ])
            .arg(out)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("AWS_ENDPOINT_URL=http://127.0.0.1:").map(str::parse);
        let Some(Ok(port)) = port else { panic!("{line:?}, {:?}", process.wait()) };
        Self { process, port }
    }

    /// The answer to a call, with its status.
    pub(super) fn ask(&self, query: &str) -> (u16, String) {
        let body = format!("Version=2016-11-15&Action={query}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    pub(super) fn call(&self, query: &str) -> String {
        let (status, answer) = self.ask(query);
        assert_eq!(status, 200, "{query}: {answer}");
        answer
    }

    /// Launches an instance with these user data; returns its id.
    pub(super) fn launch(&self, kind: &str, user_data: &str, more: &str) -> String {
        let data = STANDARD.encode(user_data).replace('+', "%2B").replace('=', "%3D");
        let call = "RunInstances&MinCount=1&MaxCount=1&ImageId=ami-12345678";
        let answer = self.call(&format!("{call}&InstanceType={kind}&UserData={data}{more}"));
        element(&answer, "instanceId").to_owned()
    }

    pub(super) fn console(&self, id: &str) -> String {
        let answer = self.call(&format!("GetConsoleOutput&InstanceId={id}"));
        String::from_utf8(STANDARD.decode(element(&answer, "output")).unwrap()).unwrap()
    }

    pub(super) fn state(&self, id: &str) -> String {
        let answer = self.call(&format!("DescribeInstances&InstanceId.1={id}"));
        let state = answer.split_once("<instanceState>").unwrap().1;
        element(state, "name").to_owned()
    }

    pub(super) fn await_state(&self, id: &str, wanted: &str) {
        wait_for(&format!("{id} is {wanted}"), Duration::from_secs(30), || {
            let state = self.state(id);
            if state == wanted { Ok(()) } else { Err(format!("{state}: {}", self.console(id))) }
        });
    }

    /// Waits until the console has a text; returns the console.
    pub(super) fn await_text(&self, id: &str, wanted: &str) -> String {
        wait_for(&format!("{id} says {wanted}"), Duration::from_secs(30), || {
            let console = self.console(id);
            if console.contains(wanted) { Ok(console) } else { Err(console) }
        })
    }
}

impl Served {
    /// The port of the API on the host.
    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Ends the run by a signal, and waits for its results.
    pub(super) fn end_run(&mut self) {
        let id = Pid::from_raw(self.process.id().cast_signed());
        kill(id, Signal::SIGINT).unwrap();
        let status = wait_for("the run ends", Duration::from_secs(40), || {
            self.process.try_wait().unwrap().ok_or_else(|| "it runs".to_owned())
        });
        assert!(status.success(), "{status}");
    }
}

/// The text of the first element of this name.
pub(super) fn element<'a>(xml: &'a str, name: &str) -> &'a str {
    let (_, rest) = xml.split_once(&format!("<{name}>")).unwrap_or(("", "</"));
    rest.split_once("</").unwrap().0
}

/// PID and number of each tick of a console.
fn ticks(console: &str) -> Vec<(u32, u32)> {
    let of = |line: &str| {
        let (pid, number) = line.strip_prefix("tick ")?.split_once(' ')?;
        Some((pid.parse().ok()?, number.parse().ok()?))
    };
    console.lines().filter_map(of).collect()
}

#[test]
fn instances_run_hibernate_go_on_and_end() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let (file, out) = (folder.path().join("instances.toml"), folder.path().join("run"));
    fs::write(&file, CLOUD).unwrap();
    let mut cloud = Served::begin(&file, &out);
    let spot = "&InstanceMarketOptions.MarketType=spot";
    let hibernates = "&InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent&\
                      InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=hibernate";
    let counter = cloud.launch("c5.large", COUNTER, &format!("{spot}{hibernates}"));
    let attempts = WATCHER.replace("PORT", &cloud.port.to_string());
    let watcher = cloud.launch("m5.large", &attempts, spot);
    let leaver = cloud.launch("c5.large", LEAVER, "");

    // The user data are the second process of a small Linux, whose first one is ours.
    let console = cloud.await_text(&counter, "tick 2 3");
    assert!(console.contains("I am 2, below 1, in vm0 as task, with "), "{console}");
    // The end of the user data ends nothing; a shutdown from inside stops the instance.
    let console = cloud.await_text(&leaver, "the last one");
    assert!(console.contains("gone\n[dormouse: the user data ended with status 7]\n"), "{console}");
    cloud.await_state(&leaver, "stopped");
    let described = cloud.call(&format!("DescribeInstances&InstanceId.1={leaver}"));
    assert!(described.contains("Client.InstanceInitiatedShutdown"), "{described}");
    assert!(cloud.console(&leaver).contains("[dormouse: the instance shuts itself down]"));

    // Its metadata are those of the API, and warn of the interruption.
    let console = cloud.await_text(&watcher, r#"{"action":"terminate","time":""#);
    let described = cloud.call(&format!("DescribeInstances&InstanceId.1={watcher}"));
    let address = element(&described, "privateIpAddress");
    // A line that begins with OUT comes before these.
    assert!(console.starts_with(&format!("id {watcher}\nip {address}\n#!/bin/sh\n")), "{console}");

    // Frozen, it does not count; thawed, the same process counts on.
    cloud.await_state(&counter, "stopped");
    let frozen = wait_for("its last words are there", Duration::from_secs(5), || {
        let first = ticks(&cloud.console(&counter));
        std::thread::sleep(Duration::from_millis(600));
        let then = ticks(&cloud.console(&counter));
        if first == then { Ok(then) } else { Err(format!("{then:?}")) }
    });
    let last = *frozen.last().unwrap();
    cloud.await_state(&counter, "running");
    let console = cloud.await_text(&counter, &format!("tick 2 {}", last.1 + 5));
    let all = ticks(&console);
    let expected: Vec<_> = (1..).map(|number| (2, number)).take(all.len()).collect();
    assert_eq!(all, expected, "the same process counts on");

    cloud.await_state(&watcher, "terminated");
    let (status, refused) = cloud.ask(&format!("RebootInstances&InstanceId.1={counter}"));
    assert!(status == 400 && refused.contains("RebootInstances is not played live"), "{refused}");
    cloud.call(&format!("TerminateInstances&InstanceId.1={counter}"));
    let console = cloud.await_text(&counter, "told to end at");
    assert!(console.contains("[dormouse: the instance is told to end]"), "{console}");

    // The one that had stopped starts again with its files, though its user data do not run again; the end of the run ends it.
    cloud.call(&format!("StartInstances&InstanceId.1={leaver}"));
    cloud.await_state(&leaver, "running");
    let console = cloud.await_text(&leaver, "per-boot/again ended with status 0");
    assert!(console.starts_with("again: of the first boot, in /tmp 0\n"), "{console}");
    cloud.end_run();
    nothing_is_left_but(&before);

    checks_and_replays(&out);
    let summary = summary(&out);
    is_faithful(&summary);
    assert_eq!(summary["counts"]["hibernations"], 1, "{summary:#}");
    assert_eq!(summary["counts"]["preemptions"], 1, "{summary:#}");
    let kept = fs::read_to_string(out.join(format!("instances/{counter}.log"))).unwrap();
    assert!(kept.contains("tick 2 1\n") && kept.contains("told to end at"), "{kept}");
    let vms = fs::read_to_string(out.join("vms.csv")).unwrap();
    // Three launches, a start, and the instance that the persistent request has asked for after the first was terminated.
    assert_eq!(vms.lines().count(), 1 + 5, "{vms}");
}
