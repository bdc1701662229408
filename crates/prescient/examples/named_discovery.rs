//! Peers without a server find those around them, and interact with what others own. Every region of the world has a
//! group; a peer is a member of its own region's and observes those that it can see. The forwarder in the middle lives in
//! the same process, on a virtual clock.

use std::collections::BTreeMap;
use std::time::Duration;

use prescient::named::{
    Data, Decision, DiscoveryConfig, DiscoveryEvent, FaceConfig, FaceId, Forwarder,
    ForwarderConfig, Grid, Interaction, InteractionOwner, Interactor, Interest, LinkPacket, Member,
    Name, Outcome, OwnerRef, PrefixChange, Profile, Regions, Signer, Strategy, Time, Verifier,
    first_version,
};

type Failure = Box<dyn std::error::Error>;

struct Peer {
    name: &'static str,
    position: [f64; 2],
    face: FaceId,
    regions: Regions,
    owner: InteractionOwner,
    interactor: Interactor,
    /// The peers around this one, and their keys.
    around: BTreeMap<Member, Verifier>,
    health: u8,
}

/// Real peers take the time of their start.
const BOOT: u64 = 1_700_000_000;

fn main() -> Result<(), Failure> {
    let mut now = Time::from_micros(0);
    let grid = Grid::new(100.0, 30.0)?;
    let mut forwarder = Forwarder::new(ForwarderConfig::default(), *b"from the system!");
    let group: Name = "/game/0/players".parse()?;
    forwarder.set_strategy(group.view(), Some(Strategy::Multicast));
    let mut peers = Vec::new();
    for (seed, (name, x)) in [("anna", 10.0), ("ben", 90.0), ("carl", 350.0)]
        .into_iter()
        .enumerate()
    {
        peers.push(Peer::new(
            &mut forwarder,
            &group,
            name,
            [x, 50.0],
            seed as u8,
        )?);
    }
    for step in 0..1200 {
        // Carl walks towards the others.
        if let [.., carl] = &mut peers[..] {
            carl.position[0] -= if step < 600 { 0.5 } else { 0.0 };
        }
        for peer in &mut peers {
            let (region, near) = (grid.region(peer.position), grid.near(peer.position));
            peer.regions.enter(now, &region, &near)?;
            peer.regions.handle_timeout(now);
            peer.update(&mut forwarder)?;
        }
        if step == 100 {
            peers[0].attack(now, "/game/0/ben")?;
        }
        exchange(&mut forwarder, &mut peers, now)?;
        now = now.after(Duration::from_millis(20));
    }
    println!("ben has {} of 10 health left", peers[1].health);
    Ok(())
}

impl Peer {
    fn new(
        forwarder: &mut Forwarder,
        group: &Name,
        name: &'static str,
        position: [f64; 2],
        seed: u8,
    ) -> Result<Self, Failure> {
        let own: Name = format!("/game/0/{name}").parse()?;
        // Real peers draw their keys from the system's randomness.
        let signer = || Signer::ed25519(&[seed; 32], Some(own.clone()));
        let profile = Profile {
            key: signer()
                .verifier()
                .public_key()
                .ok_or("a key pair has one")?,
            fingerprint: [0; 16],
            details: Vec::new(),
        };
        let config = DiscoveryConfig::new(group.clone(), own.clone(), BOOT, profile)?;
        let config = config.key(b"what all players of the game share");
        let face = forwarder.add_face(&FaceConfig::local())?;
        forwarder.add_route(own.view(), face, 0)?;
        Ok(Self {
            name,
            position,
            face,
            regions: Regions::new(Time::from_micros(0), BOOT, config, [seed; 16]),
            owner: InteractionOwner::new(own.view(), BOOT, signer())?,
            interactor: Interactor::new(signer(), first_version(BOOT), [seed; 16]),
            around: BTreeMap::new(),
            health: 10,
        })
    }

    /// Registers prefixes, and notes who has come and gone.
    fn update(&mut self, forwarder: &mut Forwarder) -> Result<(), Failure> {
        while let Some(change) = self.regions.poll_prefix() {
            match change {
                PrefixChange::Register(prefix) => {
                    forwarder.add_route(prefix.view(), self.face, 0)?;
                }
                PrefixChange::Unregister(prefix) => {
                    forwarder.remove_route(prefix.view(), self.face);
                }
            }
        }
        while let Some(event) = self.regions.poll_event() {
            match event {
                DiscoveryEvent::Joined { member, profile } => {
                    println!("{} at {} sees {}", self.name, self.position[0], member.name);
                    let verifier = Verifier::ed25519(profile.key);
                    self.owner.trust(member.name.clone(), verifier.clone());
                    self.around.insert(member, verifier);
                }
                DiscoveryEvent::Left { member } => {
                    println!("{} no longer sees {}", self.name, member.name);
                    self.around.remove(&member);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn attack(&mut self, now: Time, target: &str) -> Result<(), Failure> {
        let target: Name = target.parse()?;
        let mut around = self.around.iter();
        let found = around.find(|(member, _)| member.name == target);
        let (member, verifier) = found.ok_or("it is not around")?;
        let owner = OwnerRef {
            topic: member.name.view(),
            boot: member.boot,
            verifier,
        };
        self.interactor.send(now, owner, 0, b"attack", &[3])?;
        Ok(())
    }

    fn handle(&mut self, now: Time, packet: &[u8], answer: &mut Vec<u8>) {
        if let Ok(data) = Data::decode(packet) {
            if !self.interactor.handle_data(&data) {
                self.regions.handle_data(now, &data);
            }
            while let Some(outcome) = self.interactor.poll_outcome() {
                if let Outcome::Decided { decision, .. } = outcome {
                    println!("{} was told: {decision:?}", self.name);
                }
            }
        } else if let Ok(interest) = Interest::decode(packet) {
            let health = &mut self.health;
            // The owner decides what an attack does.
            let decide = |it: &Interaction<'_>| match (it.command, it.parameters) {
                (b"attack", [damage @ 1..=5]) => {
                    *health = health.saturating_sub(*damage);
                    Decision::Accepted(Vec::new())
                }
                _ => Decision::Refused(Vec::new()),
            };
            // A forged or repeated interaction is an error, and not answered.
            if interest.name().starts_with(self.owner.prefix()) {
                let _ = self.owner.handle_interest(&interest, decide, answer);
            } else {
                self.regions.handle_interest(now, &interest);
            }
        }
    }
}

/// Carries packets between the peers and the forwarder until there are none.
fn exchange(forwarder: &mut Forwarder, peers: &mut [Peer], now: Time) -> Result<(), Failure> {
    forwarder.handle_timeout(now);
    let mut bytes = Vec::new();
    loop {
        for peer in peers.iter_mut() {
            while peer.regions.poll_transmit(&mut bytes)
                || peer.interactor.poll_transmit(now, &mut bytes)
            {
                forwarder.handle_packet(now, peer.face, &bytes)?;
            }
        }
        let Some(face) = forwarder.poll_transmit(&mut bytes) else {
            return Ok(());
        };
        let packet = LinkPacket::decode(&bytes)?.packet;
        let mut answer = Vec::new();
        for peer in peers.iter_mut().filter(|peer| peer.face == face) {
            peer.handle(now, packet, &mut answer);
        }
        if !answer.is_empty() {
            forwarder.handle_packet(now, face, &answer)?;
        }
    }
}
