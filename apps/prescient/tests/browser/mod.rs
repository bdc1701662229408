//! A headless Chromium, driven through `chromedriver` by the WebDriver protocol.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::common::answer;

/// A browser with one window.
pub struct Browser {
    driver: Child,
    host: String,
    session: String,
    profile: PathBuf,
}

impl Browser {
    /// Starts a browser with a new profile; `None` if there is no chromedriver.
    pub fn start(name: &str) -> Option<Self> {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let output = driver.stdout.take().expect("piped");
        let mut lines = BufReader::new(output)
            .lines()
            .map(|line| line.expect("text"));
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        // The driver's later output has to be read.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = format!("prescient-{name}-{}", std::process::id());
        let mut browser = Self {
            driver,
            host: format!("127.0.0.1:{}", port.expect("chromedriver prints its port")),
            session: String::new(),
            profile: std::env::temp_dir().join(profile),
        };
        let mut arguments: Vec<String> = FLAGS.iter().map(|flag| flag.to_string()).collect();
        arguments.push(format!("--user-data-dir={}", browser.profile.display()));
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": arguments},
            "timeouts": {"script": 60_000},
        }}});
        let session = browser.call("POST", "/session", &wanted);
        let session = session["sessionId"].as_str().expect("a session");
        browser.session = format!("/session/{session}");
        Some(browser)
    }

    /// Opens a page, and returns when it is loaded.
    pub fn open(&self, url: &str) {
        self.command("url", &json!({"url": url}));
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.command("refresh", &json!({}));
    }

    /// The value of an expression.
    pub fn value(&self, expression: &str) -> Value {
        let script = format!("return {expression};");
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until an expression is true.
    pub fn wait_until(&self, expression: &str) {
        let script = format!(
            "const done = arguments[0];
             const look = () => ({expression}) ? done(true) : setTimeout(look, 20);
             look();"
        );
        let done = self.command("execute/async", &json!({"script": script, "args": []}));
        assert_eq!(done, true, "{expression}");
    }

    /// Emulates a window of this size.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.develop("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Emulates the user's preference for a scheme: `light` or `dark`.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.develop("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// The console's output since the last call.
    pub fn console(&self) -> Vec<Value> {
        let log = self.command("se/log", &json!({"type": "browser"}));
        log.as_array().cloned().unwrap_or_default()
    }

    fn develop(&self, command: &str, parameters: &Value) {
        let call = json!({"cmd": command, "params": parameters});
        self.command("goog/cdp/execute", &call);
    }

    fn command(&self, command: &str, body: &Value) -> Value {
        self.call("POST", &format!("{}/{command}", self.session), body)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answered = self.try_call(method, path, body);
        let (head, body) = answered.expect("chromedriver answers");
        let value: Value = serde_json::from_str(&body).unwrap_or_default();
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}\n{body}");
        value["value"].clone()
    }

    fn try_call(&self, method: &str, path: &str, body: &Value) -> io::Result<(String, String)> {
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}",
            self.host,
            body.len()
        );
        answer(&self.host, &head, &body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser with its session. Errors are ignored: the test is over.
        if !self.session.is_empty() {
            let _ = self.try_call("DELETE", &self.session, &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

const FLAGS: [&str; 10] = [
    "--headless",
    // Chromium refuses to run as root otherwise; it opens only our own page.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
];
