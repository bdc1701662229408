//! Two peers without a server: each publishes its ship by name, and shows the ship of the other. A forwarder in the
//! middle aggregates and caches; here it lives in the same process, on a virtual clock.

use std::time::Duration;

use prescient::named::{
    ConsumerConfig, Data, DeadReckoning, FaceConfig, FaceId, Forwarder, ForwarderConfig, Interest,
    LinkPacket, Motion, Name, ProducerConfig, Signer, Time, UpdateCheck, UpdatePolicy,
};
use prescient::{EntityConsumer, EntityProducer, EntitySet, EntitySetCodec, State};

#[derive(State, Clone, Debug, PartialEq)]
#[state(tick_hz = 30)]
struct Ship {
    #[state(step = 0.01, position)]
    position: [f32; 2],
    #[state(step = 0.01, velocity_of = "position")]
    velocity: [f32; 2],
}

impl Ship {
    fn motion(&self) -> Motion {
        let three = |[x, y]: [f32; 2]| [f64::from(x), f64::from(y), 0.0];
        Motion {
            position: three(self.position),
            velocity: three(self.velocity),
        }
    }
}

struct Peer {
    face: FaceId,
    ship: Ship,
    own: EntityProducer<Ship>,
    other: EntityConsumer<Ship>,
    checks: [u32; 2],
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut forwarder = Forwarder::new(ForwarderConfig::default(), *b"from the system!");
    let mut now = Time::from_micros(0);
    let codec = EntitySetCodec::<Ship>::new()?;
    let topics: [Name; 2] = ["/game/0/anna/ship".parse()?, "/game/0/ben/ship".parse()?];
    let mut peers = Vec::new();
    for own in 0..2 {
        let face = forwarder.add_face(&FaceConfig::local())?;
        forwarder.add_route(topics[own].view(), face, 0)?;
        // Real peers draw their keys, and learn those of others by discovery.
        let signers = [1, 2].map(|seed| Signer::ed25519(&[seed; 32], None));
        let verifier = signers[1 - own].verifier();
        let [anna, ben] = signers;
        let config = ProducerConfig::new(if own == 0 { anna } else { ben });
        peers.push(Peer {
            face,
            ship: Ship {
                position: [0.0, 10.0 * own as f32],
                velocity: [3.0, 0.0],
            },
            own: EntityProducer::new(topics[own].view(), config, 1, codec.clone())?,
            other: EntityConsumer::new(
                now,
                topics[1 - own].view(),
                ConsumerConfig::new(verifier),
                1,
                codec.clone(),
                [own as u8; 16],
            )?,
            checks: [0; 2],
        });
    }
    for tick in 1..=90 {
        for peer in &mut peers {
            if tick == 45 {
                peer.ship.velocity = [0.0, 3.0];
            }
            for (place, speed) in peer.ship.position.iter_mut().zip(peer.ship.velocity) {
                *place += speed / 30.0;
            }
            peer.publish(now, tick);
        }
        exchange(&mut forwarder, &mut peers, now)?;
        now = now.after(Duration::from_millis(33));
    }
    for (peer, name) in peers.iter().zip(["anna", "ben"]) {
        let shown = peer.other.set();
        let ship = shown.entities.get(&0).ok_or("nothing arrived")?;
        println!(
            "{name} shows the other ship of tick {} at {:.2}, {:.2}",
            shown.tick, ship.position[0], ship.position[1]
        );
        println!(
            "{name} published {} updates and skipped {}",
            peer.checks[0], peer.checks[1]
        );
    }
    Ok(())
}

impl Peer {
    /// Publishes if what the other peer extrapolates is wrong.
    fn publish(&mut self, now: Time, tick: u64) {
        let policy = DeadReckoning::default();
        let motion = self.ship.motion();
        let checks = self.own.seen(now).map(|seen| {
            let held = seen
                .held
                .and_then(|(at, set)| Some((at, set.entities.get(&0)?)));
            let held = held.map(|(at, ship)| ship.motion().after(now.since(at)));
            match policy.check(held.as_ref(), &motion) {
                UpdateCheck::Skip if seen.answer_by <= now => UpdateCheck::Expiring,
                check => check,
            }
        });
        match checks.max() {
            None => {}
            Some(UpdateCheck::Skip) => self.checks[1] += 1,
            Some(_) => {
                self.checks[0] += 1;
                let entities = [(0, self.ship.clone())].into();
                self.own.publish(now, EntitySet { tick, entities });
            }
        }
    }
}

/// Carries packets between the peers and the forwarder until there are none.
fn exchange(
    forwarder: &mut Forwarder,
    peers: &mut [Peer],
    now: Time,
) -> Result<(), Box<dyn std::error::Error>> {
    forwarder.handle_timeout(now);
    let mut bytes = Vec::new();
    loop {
        let mut is_quiet = true;
        for peer in peers.iter_mut() {
            while peer.other.poll_transmit(now, &mut bytes)
                || peer.own.poll_transmit(now, &mut bytes)
            {
                forwarder.handle_packet(now, peer.face, &bytes)?;
                is_quiet = false;
            }
        }
        while let Some(face) = forwarder.poll_transmit(&mut bytes) {
            is_quiet = false;
            let packet = LinkPacket::decode(&bytes)?.packet;
            let Some(peer) = peers.iter_mut().find(|peer| peer.face == face) else {
                continue;
            };
            if let Ok(interest) = Interest::decode(packet) {
                peer.own.handle_interest(now, &interest);
            } else if let Ok(data) = Data::decode(packet) {
                peer.other.handle_data(now, &data)?;
            }
        }
        if is_quiet {
            return Ok(());
        }
    }
}
