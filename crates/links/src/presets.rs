//! Typical links, by name.
//!
//! Round figures for one direction, of the size of published measurements, for trying out a game.
//! They are not measurements; a [`RecordedLink`](crate::RecordedLink) is.

use std::time::Duration;

use crate::Conditions;

/// A kind of link.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Its name for [`Conditions::named`].
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
    /// Its conditions, for each direction.
    conditions: fn() -> Conditions,
}

impl Preset {
    /// Its conditions, for each direction.
    pub fn conditions(&self) -> Conditions {
        (self.conditions)()
    }
}

/// No preset has this name; the message lists all names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown link {name:?}; there are {}", names())]
pub struct UnknownPreset {
    /// The unknown name.
    pub name: String,
}

impl Conditions {
    /// The conditions of a [preset](PRESETS).
    ///
    /// ```
    /// use prescient_links::Conditions;
    ///
    /// let lte = Conditions::named("lte")?.with_loss(50_000);
    /// let refused = Conditions::named("carrier pigeon").unwrap_err();
    /// assert!(refused.to_string().contains("satellite"));
    /// # Ok::<(), prescient_links::UnknownPreset>(())
    /// ```
    pub fn named(name: &str) -> Result<Self, UnknownPreset> {
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        preset.map(Preset::conditions).ok_or_else(|| UnknownPreset {
            name: name.to_owned(),
        })
    }
}

/// All presets, from good to bad.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "loopback",
        description: "the same machine: perfect",
        conditions: Conditions::default,
    },
    Preset {
        name: "lan",
        description: "a cable in the same house: 1 Gbit/s, 0.2 ms",
        conditions: || line(200, 1_000_000_000, 1_000_000).with_jitter(micros(100)),
    },
    Preset {
        name: "fibre",
        description: "fibre to the home: 200 Mbit/s, 5 ms",
        conditions: || line(5_000, 200_000_000, 1_000_000).with_jitter(micros(500)),
    },
    Preset {
        name: "cable",
        description: "cable television: 20 Mbit/s, 12 ms, a queue of 200 ms, 0.1 % loss",
        conditions: || {
            let cable = line(12_000, 20_000_000, 500_000);
            cable.with_jitter(micros(4_000)).with_loss(1_000)
        },
    },
    Preset {
        name: "dsl",
        description: "a telephone line: 5 Mbit/s, 15 ms, a queue of 160 ms, 0.1 % loss",
        conditions: || {
            let dsl = line(15_000, 5_000_000, 100_000);
            dsl.with_jitter(micros(2_000)).with_loss(1_000)
        },
    },
    Preset {
        name: "wifi",
        description: "a good wireless network: 30 Mbit/s, 4 ms, jitter to 8 ms, 0.5 % loss in bursts of 3",
        conditions: || {
            let wifi = line(4_000, 30_000_000, 250_000);
            wifi.with_jitter(micros(8_000)).with_bursts(5_000, 3)
        },
    },
    Preset {
        name: "lte",
        description: "a phone standing still: 8 Mbit/s, 25 ms, jitter to 15 ms, 0.3 % loss",
        conditions: || {
            let lte = line(25_000, 8_000_000, 500_000);
            lte.with_jitter(micros(15_000)).with_loss(3_000)
        },
    },
    Preset {
        name: "low_orbit",
        description: "low satellites: 15 Mbit/s, 25 ms, jitter to 25 ms, 1 % loss in bursts of 8",
        conditions: || {
            let orbit = line(25_000, 15_000_000, 400_000);
            orbit.with_jitter(micros(25_000)).with_bursts(10_000, 8)
        },
    },
    Preset {
        name: "bad_wifi",
        description: "wireless through walls: 4 Mbit/s, 8 ms, jitter to 60 ms, 4 % loss in bursts of 6",
        conditions: || {
            let wifi = line(8_000, 4_000_000, 250_000);
            wifi.with_jitter(micros(60_000)).with_bursts(40_000, 6)
        },
    },
    Preset {
        name: "umts",
        description: "an older phone network: 1 Mbit/s, 60 ms, jitter to 40 ms, 1 % loss",
        conditions: || {
            let umts = line(60_000, 1_000_000, 250_000);
            umts.with_jitter(micros(40_000)).with_loss(10_000)
        },
    },
    Preset {
        name: "satellite",
        description: "a geostationary satellite: 3 Mbit/s, 300 ms, 1 % loss in bursts of 4",
        conditions: || {
            let satellite = line(300_000, 3_000_000, 300_000);
            satellite.with_jitter(micros(20_000)).with_bursts(10_000, 4)
        },
    },
    Preset {
        name: "bad_mobile",
        description: "a phone on a train: 0.5 Mbit/s, 80 ms, jitter to 150 ms, 8 % loss in bursts of 10, some reordering",
        conditions: || {
            line(80_000, 500_000, 200_000)
                .with_jitter(micros(150_000))
                .with_bursts(80_000, 10)
                .with_reordering(10_000, micros(50_000))
                .with_duplication(1_000, micros(100_000))
        },
    },
];

/// A link with a latency, a rate and a queue, for UDP over IPv4.
fn line(latency: u64, bits_per_second: u64, queue: usize) -> Conditions {
    Conditions::default()
        .with_latency(micros(latency))
        .with_bandwidth(bits_per_second)
        .with_queue_limit(queue)
        .with_overhead(28)
        .with_mtu(1500)
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn names() -> String {
    let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    names.join(", ")
}
