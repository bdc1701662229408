//! A client that connects and then sends packets that no honest client would.
#![allow(unreachable_pub, reason = "a module of a program of its own")]

use std::net::SocketAddr;
use std::time::Duration;

use prescient::loopback_token;
use prescient_channels::{ChannelId, Received, Time};
use prescient_net::{BlockingClient, Clock};
use prescient_replication::{Client as View, ClientConfig};
use prescient_transport::{ClientEvent, LinkConfig};

use crate::bodies::Bodies;
use crate::walkers::schema;
use crate::{AttackKind, Sent};

/// Sends at this rate, and reconnects whenever the server closes the connection.
pub fn attack(server: SocketAddr, kind: AttackKind, rate: f64, span: Duration) -> Sent {
    let clock = Clock::start();
    let until = Time::default().after(span);
    let mut sent = Sent::default();
    while clock.now() < until {
        let Some(mut attacker) = Attacker::join(server, kind, &clock, until) else {
            // After many connections the server delays new ones.
            crate::rest(Duration::from_millis(20));
            continue;
        };
        let reason = attacker.run(kind, rate, &clock, until, &mut sent);
        sent.closed += u64::from(reason.is_some());
        sent.reason = reason.or(sent.reason);
    }
    sent.seconds = span.as_secs_f64();
    sent
}

struct Attacker {
    net: BlockingClient,
    view: View,
    bodies: Bodies,
}

impl Attacker {
    /// Joins; without the `hello` message if that is the attack.
    fn join(server: SocketAddr, kind: AttackKind, clock: &Clock, until: Time) -> Option<Self> {
        let token = loopback_token(&server.to_string()).expect("a server on this machine");
        let protocol = prescient::protocol();
        let net = BlockingClient::connect(token, protocol, LinkConfig::default()).ok()?;
        let view = View::new(schema(), ClientConfig::default()).expect("a sound schema");
        let mut attacker = Self {
            net,
            view,
            bodies: Bodies::default(),
        };
        let is_ready = |view: &View| match kind {
            AttackKind::Ungreeted => true,
            _ => view.is_welcome() && view.tick().is_some(),
        };
        while !is_ready(&attacker.view) {
            if clock.now() >= until || attacker.receive().is_some() {
                return None;
            }
            attacker
                .net
                .wait(Duration::from_millis(5))
                .map(|event| attacker.take(event));
        }
        Some(attacker)
    }

    /// Attacks until the connection is closed, and returns the reason, or until the time is over.
    fn run(
        &mut self,
        kind: AttackKind,
        rate: f64,
        clock: &Clock,
        until: Time,
        sent: &mut Sent,
    ) -> Option<String> {
        let (begun, mut bytes) = (clock.now(), 0);
        while clock.now() < until {
            if kind != AttackKind::Ungreeted
                && let Some(reason) = self.receive()
            {
                return Some(reason);
            }
            if kind == AttackKind::Ungreeted
                && let Some(ClientEvent::Closed(reason)) = self.net.poll()
            {
                return Some(reason.to_string());
            }
            if f64::from(bytes) > rate * clock.now().since(begun).as_secs_f64() {
                self.net.flush();
                crate::rest(Duration::from_micros(200));
                continue;
            }
            for _ in 0..BATCH {
                let body = self.bodies.next(kind, &mut self.view);
                self.net.with(|client, now| client.send_raw(&body, now));
                let length = body.len() + OVERHEAD;
                bytes += length as u32;
                sent.packets += 1;
                sent.bytes += length as u64;
            }
            self.net.flush();
        }
        None
    }

    /// Handles received messages like an honest client; returns the reason if the connection ended.
    fn receive(&mut self) -> Option<String> {
        while let Some(message) = self.view.poll_message() {
            let sent = |client: &mut prescient_transport::Client, now| {
                client.send(ChannelId::ORDERED, &message, now)
            };
            if self.net.with(sent).is_err() {
                break;
            }
        }
        while let Some(event) = self.net.poll() {
            if let Some(reason) = self.take(event) {
                return Some(reason);
            }
        }
        None
    }

    fn take(&mut self, event: ClientEvent) -> Option<String> {
        match event {
            ClientEvent::Received(Received::Message { channel, message }) => {
                let _ = self.view.handle(&message);
                while self.view.poll_change().is_some() {}
                if channel == ChannelId::UNRELIABLE
                    && let Some(ack) = self.view.acknowledgement()
                {
                    let _ = self.net.with(|client, now| client.send(channel, &ack, now));
                }
            }
            ClientEvent::Closed(reason) => return Some(reason.to_string()),
            _ => {}
        }
        None
    }
}

/// Packets per flush.
const BATCH: usize = 8;
/// Bytes of a sealed packet in addition to its body.
const OVERHEAD: usize = 29;
