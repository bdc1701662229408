//! The page of `prescient demo` in a headless Chromium, which Debian packages as `chromium` and
//! `chromium-driver`.
#![cfg(unix)]

mod browser;
mod common;

use prescient_tests::skip::skip;
use serde_json::Value;

use browser::Browser;
use common::Demo;

/// A demo and a browser that shows it, or `None` without a browser.
fn visit(name: &str) -> Option<(Demo, Browser)> {
    let Some(browser) = Browser::start(name) else {
        skip("the page in a browser: there is no chromedriver");
        return None;
    };
    let demo = Demo::start(0);
    browser.open(&format!("http://{}/", demo.host));
    browser.wait_until(LIVE);
    Some((demo, browser))
}

/// Fails if a file is missing or the script has errors, if the ponds are drawn only once (`draw`
/// without `requestAnimationFrame`), if the contrast of a text is too low in one of the schemes
/// (`--muted` of `#8aa`), or if something is too wide for a phone (a `min-width` of `30rem` for
/// figures).
#[test]
fn it_moves_without_errors_in_any_scheme_and_width() {
    let Some((_demo, browser)) = visit("moves") else {
        return;
    };
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        for width in [1280, 320u32] {
            browser.resize(width, 800);
            for pond in ["truth", "view"] {
                browser.value(&format!("void (window.before = {})", pixels(pond)));
                browser.wait_until(&format!("{} !== window.before", pixels(pond)));
            }
            let content = browser.value("document.documentElement.scrollWidth");
            assert!(
                content.as_u64() <= Some(width.into()),
                "{content} of {width}"
            );
        }
        let contrasts = browser.value(&CONTRASTS.replace("TEXTS", TEXTS));
        for contrast in contrasts.as_array().expect("a list") {
            assert!(contrast[1].as_f64() >= Some(4.5), "{scheme}: {contrast}");
        }
        grounds.push(browser.value("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(grounds[0], grounds[1], "the schemes look alike");
    assert_eq!(browser.console(), Vec::<Value>::new());
}

/// Fails if `choose` does not request the frames of another client, or if a reload forgets the
/// choice.
#[test]
fn another_client_can_be_chosen_and_stays_so() {
    let Some((_demo, browser)) = visit("chooses") else {
        return;
    };
    let satellite = "document.querySelector('#client').selectedOptions[0]?.textContent
        .startsWith('Satellite') && document.querySelector('tr.chosen button')?.textContent === 'Satellite'";
    assert_ne!(browser.value(satellite), true);
    let choose = "const list = document.querySelector('#client');
        list.value = [...list.options].find((option) => option.text.startsWith('Satellite')).value;
        list.dispatchEvent(new Event('change'));";
    browser.value(&format!("(() => {{ {choose} }})()"));
    // A lag of half a second, at thirty ticks a second.
    let far = "parseInt(document.querySelector('#lag').textContent) >= 8";
    browser.wait_until(&format!("{satellite} && {far} && {LIVE}"));
    browser.reload();
    browser.wait_until(&format!("{satellite} && {far} && {LIVE}"));
    let lan = "[...document.querySelectorAll('#clients button')][0].click()";
    browser.value(&format!("void {lan}"));
    browser.wait_until("document.querySelector('#client').value === '0'");
    browser.wait_until("parseInt(document.querySelector('#lag').textContent) < 8");
    assert_eq!(browser.console(), Vec::<Value>::new());
}

/// Fails if the page ignores `bye`, or does not reconnect.
#[test]
fn the_end_is_said_and_a_new_beginning_noticed() {
    let Some((demo, browser)) = visit("ends") else {
        return;
    };
    let port = demo
        .host
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    let (status, _) = demo.interrupt();
    assert!(status.success(), "{status}");
    browser
        .wait_until("document.querySelector('#notice').textContent.includes('The demo has ended')");
    let again = Demo::start(port.expect("a port"));
    assert_eq!(
        again
            .host
            .rsplit_once(':')
            .and_then(|(_, new)| new.parse().ok()),
        port
    );
    browser.wait_until(&format!(
        "document.querySelector('#notice').hidden && {LIVE}"
    ));
}

/// The pixels of a pond.
fn pixels(canvas: &str) -> String {
    format!("document.querySelector('#{canvas}').toDataURL()")
}

/// A client's frames arrive, with all creatures.
const LIVE: &str =
    "/^([1-9][0-9]*) of \\1$/.test(document.querySelector('#creatures').textContent)";
/// At least one element of every text colour.
const TEXTS: &str = "h1, .brand, .lead, .who, .aside, .legend span, h2, .big, .ratio strong, .ratio span, dt, dd, th, td, \
     td button, footer p, select, #wrong";
/// The contrast of each text with its background, by the definition of WCAG 2.
const CONTRASTS: &str = "[...document.querySelectorAll('TEXTS')].map((element) => {
    const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
    const light = ([red, green, blue]) => {
        const [r, g, b] = [red, green, blue].map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
        const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
        layers.unshift([r, g, b, a]);
    }
    const ground = layers.reduce((below, [r, g, b, a]) =>
        [r, g, b].map((part, index) => part * a + below[index] * (1 - a)), [255, 255, 255]);
    const [ink, back] = [light(numbers(getComputedStyle(element).color)), light(ground)];
    const contrast = (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
    return [element.textContent.trim().slice(0, 30), contrast];
})";
