//! A Chromium without a screen, driven over WebDriver; it and its driver end with their test,
//! however that ends.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use thirtyfour::error::WebDriverResult;
use thirtyfour::extensions::query::ElementQueryable as _;
use thirtyfour::{
    By, CapabilitiesHelper as _, ChromiumLikeCapabilities as _, DesiredCapabilities, WebDriver,
};
use tokio::runtime::Runtime;

use crate::{is_on_path, wait_for};

const PROGRAMS: [&str; 2] = ["chromedriver", "chromium"];
/// Time within which a page has to be as a test wants it, unless the test says otherwise.
const SOON: Duration = Duration::from_secs(20);

/// A page in a browser of its own.
#[derive(Debug)]
pub struct Browser {
    runtime: Runtime,
    driver: Option<WebDriver>,
    process: Child,
    profile: tempfile::TempDir,
}

impl Browser {
    /// A browser, or `None`, having said why, where there is no Chromium; with `CI=true` that fails.
    ///
    /// # Panics
    ///
    /// The browser or its driver does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let missing: Vec<_> = PROGRAMS.into_iter().filter(|program| !is_on_path(program)).collect();
        if !missing.is_empty() {
            let why = format!("{} not found: scripts/test installs it", missing.join(" and "));
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
            println!("skipped: {why}");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new(PROGRAMS[0])
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut says = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = says
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, port) = line.split_once("started successfully on port ")?;
                port.trim_end_matches('.').parse::<u16>().ok()
            })
            .expect("the driver says on which port it listens");
        // A pipe that nobody reads would make it wait.
        std::thread::spawn(move || says.count());

        let mut wanted = DesiredCapabilities::chrome();
        let folder = format!("--user-data-dir={}", profile.path().display());
        // Without its sandbox, which root has no use of, and without the 64 MB of shared memory that containers have.
        for word in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", &folder] {
            wanted.add_arg(word).unwrap();
        }
        wanted.add_arg("--window-size=1500,1000").unwrap();
        wanted.set("goog:loggingPrefs", json!({ "browser": "ALL" })).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut browser = Self { runtime, driver: None, process, profile };
        // Its client of HTTP is built without one where the client of a bucket is built beside it, and speaks in clear.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let address = format!("http://127.0.0.1:{port}");
        browser.driver = Some(browser.runtime.block_on(WebDriver::new(address, wanted)).unwrap());
        Some(browser)
    }

    fn wait<T>(&self, what: impl Future<Output = WebDriverResult<T>>) -> T {
        self.runtime.block_on(what).unwrap()
    }

    fn driver(&self) -> &WebDriver {
        self.driver.as_ref().expect("it is there until the browser ends")
    }

    /// Opens an address.
    pub fn open(&self, address: &str) {
        self.wait(self.driver().goto(address));
    }

    /// Loads the page anew.
    pub fn reload(&self) {
        self.wait(self.driver().refresh());
    }

    /// Runs a script, and returns its result.
    #[must_use]
    pub fn script(&self, text: &str, arguments: &[Value]) -> Value {
        self.wait(self.driver().execute(text, arguments.to_vec())).json().clone()
    }

    /// Runs a script, and returns what it gives to its last argument, a function.
    #[must_use]
    pub fn script_until(&self, text: &str, arguments: &[Value]) -> Value {
        self.wait(self.driver().set_script_timeout(Duration::from_secs(120)));
        self.wait(self.driver().execute_async(text, arguments.to_vec())).json().clone()
    }

    /// Clicks what a selector finds, as a mouse does: it has to be seen.
    pub fn click(&self, css: &str) {
        self.wait(async { self.driver().find(By::Css(css)).await?.click().await });
    }

    /// Types into what a selector finds, as soon as that is shown.
    pub fn type_into(&self, css: &str, text: &str) {
        self.wait(async {
            let field = self.driver().query(By::Css(css)).and_displayed().single().await?;
            field.send_keys(text).await
        });
    }

    /// The page's width and height in pixels, and whether its reader wants it dark.
    pub fn look(&self, size: (u32, u32), is_dark: bool) {
        self.look_as(size, is_dark, false);
    }

    /// The page's width and height in pixels, whether its reader wants it dark, and whether it is laid out for paper.
    pub fn look_as(&self, (width, height): (u32, u32), is_dark: bool, is_printed: bool) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        let scheme = if is_dark { "dark" } else { "light" };
        let media = if is_printed { "print" } else { "screen" };
        let media = json!({
            "media": media,
            "features": [{ "name": "prefers-color-scheme", "value": scheme }],
        });
        self.command("Emulation.setDeviceMetricsOverride", size);
        self.command("Emulation.setEmulatedMedia", media);
    }

    /// A script that runs before those of every page that is opened from now on.
    pub fn before_pages(&self, text: &str) {
        self.command("Page.enable", json!({}));
        self.command("Page.addScriptToEvaluateOnNewDocument", json!({ "source": text }));
    }

    /// A picture of these pixels of the window as PNG: left, top, width and height.
    #[must_use]
    pub fn picture(&self, [x, y, width, height]: [u32; 4]) -> Vec<u8> {
        let clip = json!({ "x": x, "y": y, "width": width, "height": height, "scale": 1 });
        let wanted = json!({ "format": "png", "clip": clip });
        let told = self.command("Page.captureScreenshot", wanted);
        BASE64.decode(told["data"].as_str().unwrap_or_default()).unwrap()
    }

    /// Sends the browser a command of its own protocol, and returns the answer.
    fn command(&self, name: &str, words: Value) -> Value {
        self.wait(self.driver().cdp().send_raw(name, words))
    }

    /// A data attribute of the page's body, by which the page tells its state; empty where it is missing.
    #[must_use]
    pub fn told(&self, name: &str) -> String {
        let value = self.script("return document.body.dataset[arguments[0]] ?? ''", &[name.into()]);
        value.as_str().unwrap_or_default().to_owned()
    }

    /// A number that the page tells of itself; 0 where it tells none yet.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        self.told(name).parse().unwrap_or(0.0)
    }

    /// Waits until a script returns true.
    pub fn until(&self, what: &str, script: &str, arguments: &[Value]) {
        self.until_within(what, SOON, script, arguments);
    }

    /// Waits no longer than this until a script returns true.
    pub fn until_within(&self, what: &str, limit: Duration, script: &str, arguments: &[Value]) {
        wait_for(what, limit, || match self.script(script, arguments) {
            Value::Bool(true) => Ok(()),
            other => Err(format!("it returns {other}; {}", self.state())),
        });
    }

    /// All data attributes of the page's body, as JSON.
    #[must_use]
    pub fn state(&self) -> String {
        self.script("return JSON.stringify(document.body.dataset)", &[]).to_string()
    }

    /// The errors that the browser's console has had since this was last asked.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        let log = self.wait(self.driver().browser_log());
        log.into_iter().filter(|entry| entry.level == "SEVERE").map(|entry| entry.message).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take() {
            // What goes wrong here is mended below.
            let _ = self.runtime.block_on(driver.quit());
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        for process in processes_of(self.profile.path()) {
            let _ = kill(process, Signal::SIGKILL);
        }
    }
}

/// The browser's processes, known by the folder of its profile.
fn processes_of(profile: &Path) -> Vec<Pid> {
    let profile = profile.display().to_string();
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let id = process.file_name().to_string_lossy().parse();
        if let (true, Ok(id)) = (words.contains(&profile), id) {
            found.push(Pid::from_raw(id));
        }
    }
    found
}
