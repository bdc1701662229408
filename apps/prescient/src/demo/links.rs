//! The links of the demo's clients, from a LAN to a train in tunnels.

use std::time::Duration;

use prescient_sim::link::{Conditions, Time};

/// A simulated link.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Its name on the page.
    pub name: &'static str,
    /// Its conditions, in each direction.
    pub conditions: Conditions,
}

impl Link {
    /// Its round trip and losses as text.
    pub(super) fn description(&self) -> String {
        let Conditions {
            latency,
            jitter,
            loss,
            ref bursts,
            ref blackouts,
            ..
        } = self.conditions;
        let milliseconds = |span: Duration| span.as_secs_f64() * 2e3;
        let mut parts = vec![match jitter > latency {
            true => format!(
                "{:.0} to {:.0} ms",
                milliseconds(latency),
                milliseconds(latency + jitter)
            ),
            false if latency < Duration::from_millis(1) => "under 1 ms".to_owned(),
            false => format!("{:.0} ms", milliseconds(latency)),
        }];
        if loss > 0 {
            parts.push(format!("{} % loss", percent(loss)));
        }
        if let Some(bursts) = bursts {
            parts.push(format!("{} % loss in bursts", percent(bursts.loss)));
        }
        for blackout in blackouts {
            let every = blackout.every.unwrap_or_default().as_secs();
            let length = blackout.length.as_secs();
            parts.push(format!("gone for {length} s of every {every}"));
        }
        parts.join(", ")
    }
}

/// The demo's links, from good to bad.
pub(super) fn links() -> Vec<Link> {
    let preset = |(name, preset)| Link {
        name,
        conditions: Conditions::named(preset).expect("one of the presets"),
    };
    let mut links: Vec<Link> = NAMES.map(preset).into();
    let mut tunnel = preset(("Tunnels", "lte"));
    let [dark, light] = [6, 12].map(Duration::from_secs);
    tunnel.conditions = (tunnel.conditions).with_repeated_blackout(Time::from_secs(9), dark, light);
    links.push(tunnel);
    links
}

/// Parts per million as a percentage.
fn percent(parts: u32) -> f64 {
    f64::from(parts) / 1e4
}

const NAMES: [(&str, &str); 11] = [
    ("LAN", "lan"),
    ("Fibre", "fibre"),
    ("Cable", "cable"),
    ("DSL", "dsl"),
    ("Wi-Fi", "wifi"),
    ("LTE", "lte"),
    ("Low orbit", "low_orbit"),
    ("Bad Wi-Fi", "bad_wifi"),
    ("UMTS", "umts"),
    ("Satellite", "satellite"),
    ("Train", "bad_mobile"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a condition is left out, or if one direction is described as both.
    #[test]
    fn links_are_described_as_they_are() {
        let described: Vec<_> = links()
            .iter()
            .map(|link| format!("{}: {}", link.name, link.description()))
            .collect();
        assert_eq!(described.len(), 12);
        for expected in [
            "LAN: under 1 ms",
            "LTE: 50 ms, 0.3 % loss",
            "Train: 160 to 460 ms, 8 % loss in bursts",
            "Tunnels: 50 ms, 0.3 % loss, gone for 6 s of every 18",
        ] {
            assert!(
                described.iter().any(|link| link == expected),
                "{described:?}"
            );
        }
    }
}
