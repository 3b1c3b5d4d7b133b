//! A Chromium without a screen, driven over WebDriver. The browser and its driver end with their test, however that
//! ends.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::cell::RefCell;
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
/// The error by which Chromium says that it gave up a request, as a network of its host changed.
const NETWORK_CHANGED: &str = "net::ERR_NETWORK_CHANGED";
/// Time in which a page must reach the state that a test waits for, unless the test sets another limit.
const SOON: Duration = Duration::from_secs(60);

/// A page in a browser of its own.
#[derive(Debug)]
pub struct Browser {
    runtime: Runtime,
    driver: Option<WebDriver>,
    process: Child,
    profile: tempfile::TempDir,
    /// Errors in the console that were read and not asked for yet.
    errors: RefCell<Vec<String>>,
}

impl Browser {
    /// Starts a browser; `None`, after printing why, if there is no Chromium. With `CI=true` that fails instead.
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
        let mut browser =
            Self { runtime, driver: None, process, profile, errors: RefCell::default() };
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

    /// Opens the page at this address.
    pub fn open(&self, address: &str) {
        // What the address names is given up, too, when a network of the host changes.
        let opened = self.runtime.block_on(self.driver().goto(address));
        if opened.as_ref().is_err_and(|error| error.to_string().contains(NETWORK_CHANGED)) {
            self.wait(self.driver().goto(address));
        } else {
            opened.unwrap();
        }
        self.load_whole();
    }

    /// Loads the page again if Chromium gave up a part of it because a network of this host changed meanwhile, as the
    /// networks of containers do that are tested at the same time.
    fn load_whole(&self) {
        for _ in 0..5 {
            let (given_up, others): (Vec<_>, Vec<_>) =
                self.log_errors().into_iter().partition(|error| error.contains(NETWORK_CHANGED));
            self.errors.borrow_mut().extend(others);
            if given_up.is_empty() {
                return;
            }
            println!("loaded again, as a network changed: {}", given_up.join("; "));
            self.wait(self.driver().refresh());
        }
    }

    /// Reloads the page.
    pub fn reload(&self) {
        self.wait(self.driver().refresh());
        self.load_whole();
    }

    /// Runs a script, and returns its result.
    #[must_use]
    pub fn script(&self, text: &str, arguments: &[Value]) -> Value {
        self.wait(self.driver().execute(text, arguments.to_vec())).json().clone()
    }

    /// Runs a script that gets a callback as its last argument; returns what it passes to the callback.
    #[must_use]
    pub fn script_until(&self, text: &str, arguments: &[Value]) -> Value {
        self.wait(self.driver().set_script_timeout(Duration::from_secs(120)));
        self.wait(self.driver().execute_async(text, arguments.to_vec())).json().clone()
    }

    /// Clicks the element that a selector finds, which must be visible, as with a mouse.
    pub fn click(&self, css: &str) {
        self.wait(async { self.driver().find(By::Css(css)).await?.click().await });
    }

    /// Types into the element that a selector finds, as soon as it is visible.
    pub fn type_into(&self, css: &str, text: &str) {
        self.wait(async {
            let field = self.driver().query(By::Css(css)).and_displayed().single().await?;
            field.send_keys(text).await
        });
    }

    /// Sets the page's width and height in pixels, and whether its reader prefers a dark page.
    pub fn look(&self, size: (u32, u32), is_dark: bool) {
        self.look_as(size, is_dark, false);
    }

    /// Sets the page's width and height in pixels, whether its reader prefers a dark page, and whether it is laid out
    /// for paper.
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

    /// Adds a script that runs before the scripts of every page opened from now on.
    pub fn before_pages(&self, text: &str) {
        self.command("Page.enable", json!({}));
        self.command("Page.addScriptToEvaluateOnNewDocument", json!({ "source": text }));
    }

    /// A PNG picture of a rectangle of the window, in pixels: left, top, width and height.
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

    /// The value of a data attribute of the page's body, by which the page tells its state; empty if it is missing.
    #[must_use]
    pub fn told(&self, name: &str) -> String {
        let value = self.script("return document.body.dataset[arguments[0]] ?? ''", &[name.into()]);
        value.as_str().unwrap_or_default().to_owned()
    }

    /// The numeric value of a data attribute of the page's body; 0 if it is missing.
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        self.told(name).parse().unwrap_or(0.0)
    }

    /// Waits until a script returns true; `what` names the condition in the failure.
    pub fn until(&self, what: &str, script: &str, arguments: &[Value]) {
        self.until_within(what, SOON, script, arguments);
    }

    /// Waits until a script returns true, at most for `limit`; `what` names the condition in the failure.
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

    /// Errors in the browser's console since the last call.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        let mut errors = self.errors.take();
        errors.extend(self.log_errors());
        errors
    }

    fn log_errors(&self) -> Vec<String> {
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

/// The processes of a browser, found by its profile folder.
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
