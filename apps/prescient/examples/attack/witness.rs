//! An honest client that records when each tick arrives.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::net::SocketAddr;
use std::time::Duration;

use prescient::{Client, ClientEvent};
use prescient_net::Clock;

use crate::walkers::schema;

pub struct Witness {
    client: Client,
}

/// What the client measured.
pub struct Seen {
    /// Ticks per second of the server's world.
    pub rate: f64,
    /// Milliseconds between two packets of state.
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    /// Why the connection ended, if it did.
    pub left: Option<String>,
}

impl Witness {
    pub fn join(server: SocketAddr) -> Self {
        let client = Client::loopback(&server.to_string(), schema());
        Self {
            client: client.expect("a server that lets this machine in"),
        }
    }

    pub fn watch(&mut self, span: Duration) -> Seen {
        let clock = Clock::start();
        let (mut first, mut last) = (None, None);
        let (mut gaps, mut left) = (Vec::new(), None);
        while clock.now().since(prescient_channels::Time::default()) < span && left.is_none() {
            self.client.wait(Duration::from_millis(1));
            while let Some(event) = self.client.poll() {
                if let ClientEvent::Left(reason) = event {
                    left = Some(reason.to_string());
                }
            }
            let now = clock.now();
            let Some(tick) = self.client.tick() else {
                continue;
            };
            first.get_or_insert((tick, now));
            if let Some((known, at)) = last
                && known != tick
            {
                gaps.push(now.since(at).as_secs_f64() * 1e3);
            }
            if last.is_none_or(|(known, _)| known != tick) {
                last = Some((tick, now));
            }
        }
        gaps.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (gaps.len() as f64 * share) as usize;
            gaps.get(index.min(gaps.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0.0)
        };
        let ticks = first
            .zip(last)
            .map_or(0.0, |((first, begun), (last, ended))| {
                let span = ended
                    .since(begun)
                    .as_secs_f64()
                    .max(span.as_secs_f64() / 2.0);
                (last.0 - first.0) as f64 / span
            });
        Seen {
            rate: ticks,
            p50: at(0.5),
            p99: at(0.99),
            max: at(1.0),
            left,
        }
    }
}
