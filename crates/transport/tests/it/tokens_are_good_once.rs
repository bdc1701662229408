//! Which tokens are accepted, and which denials the others get.

use crate::common;

use crate::common::{GOOD, SECOND, UNIX, World, address, config, grant, over_seeds};
use prescient_channels::*;
use prescient_transport::*;

/// Fails if the server does not remember tokens (`self.used.remember` in `Server::accept`).
#[test]
fn one_token_from_many_addresses_is_one_session() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        let token = world.issue(&grant(1));
        for host in 0..20 {
            let link = LinkConfig::default();
            world.join_with(token.clone(), link, &format!("10.0.{host}.1:5000"));
        }
        world.run_for(12 * SECOND);
        assert_eq!(world.connections().len(), 1);
        assert_eq!(world.server.footprint().tokens, 1);
        let connected = world.peers.iter().filter(|peer| peer.connected());
        assert_eq!(connected.count(), 1);
        let used = Some(ConnectError::Denied(Denial::Used));
        assert_eq!(
            world
                .peers
                .iter()
                .filter(|peer| peer.error() == used)
                .count(),
            19
        );

        // Nor after the session has ended.
        let connection = world.connections()[0];
        let now = world.server_time();
        world.server.close(connection, CloseReason::Kicked, now);
        world.run_for(SECOND);
        let again = world.join_with(token.clone(), LinkConfig::default(), "10.0.99.1:1");
        world.run_for(SECOND);
        assert_eq!(world.peers[again].error(), used);
    });
}

fn outcome(world: &mut World, token: ConnectToken) -> Option<ConnectError> {
    let number = world.peers.len();
    let from = format!("10.5.{number}.1:5");
    let peer = world.join_with(token, LinkConfig::default(), &from);
    world.run_for(SECOND);
    assert_eq!(
        world.peers[peer].error().is_none(),
        world.peers[peer].connected()
    );
    world.peers[peer].error()
}

/// Fails if any line of `Server::examine` is left out.
#[test]
fn the_others_are_told_why() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        let denied = |denial| Some(ConnectError::Denied(denial));
        let honest = grant(1);
        let token = world.issue(&honest);
        assert_eq!(outcome(&mut world, token), None);

        let mut old = grant(2);
        old.expires = UnixTime(UNIX.0 - 1);
        let token = world.issue(&old);
        assert_eq!(outcome(&mut world, token), denied(Denial::Expired));
        old.expires = UNIX;
        let token = world.issue(&old);
        assert_eq!(outcome(&mut world, token), denied(Denial::Expired));

        // A token for another server.
        let mut elsewhere = grant(3);
        elsewhere.servers = vec![address("192.0.2.2:4000")];
        let token = world.issue(&elsewhere);
        let mut bytes = token.to_bytes().to_vec();
        let port_and_ip = bytes.len() - 19;
        bytes[port_and_ip + 4] = 1;
        let token = ConnectToken::from_bytes(&bytes).expect("well-formed");
        assert_eq!(token.servers(), [world.server_address]);
        assert_eq!(outcome(&mut world, token), denied(Denial::WrongServer));

        // A token whose expiry was changed.
        let mut expired = grant(4);
        expired.expires = UnixTime(UNIX.0 - 1);
        let mut bytes = world.issue(&expired).to_bytes().to_vec();
        bytes[24..32].copy_from_slice(&(UNIX.0 + 1000).to_le_bytes());
        let token = ConnectToken::from_bytes(&bytes).expect("well-formed");
        assert_eq!(outcome(&mut world, token), denied(Denial::Unreadable));

        // A token of another backend.
        let key = TokenKey::generate(&mut world.random);
        let token = honest.issue(&key, &mut world.random).expect("sound");
        assert_eq!(outcome(&mut world, token), denied(Denial::Unreadable));
    });
}

/// Fails if the client does not compare its protocol with the token, or if the server does not.
#[test]
fn other_protocols_are_refused_on_both_sides() {
    let mut world = World::new(1, GOOD);
    let token = world.issue(&grant(1));
    let now = world.client_time();
    let other = ProtocolId([9; 16]);
    let refused = Client::connect(token, other, LinkConfig::default(), &mut world.random, now);
    assert_eq!(refused.err(), Some(ConnectError::Denied(Denial::Protocol)));

    let key = TokenKey::new(common::KEY).expect("not the public one");
    let config = ServerConfig::new(key, other, vec![common::address("192.0.2.1:4000")]);
    let mut world = World::with(1, GOOD, config);
    let token = world.issue(&grant(1));
    assert_eq!(
        outcome(&mut world, token),
        Some(ConnectError::Denied(Denial::Protocol))
    );
}

/// The part of a token that is sent is useless without the secret. Fails if `Server::admit` does
/// not check `is_from_holder`: the thief would use the token up.
#[test]
fn who_saw_a_request_cannot_use_its_token() {
    over_seeds(20, |seed| {
        let mut world = World::new(seed, GOOD);
        let token = world.issue(&grant(1));
        let mut stolen = token.to_bytes().to_vec();
        let secret = stolen.len() - 19 - 1 - 32;
        stolen[secret..secret + 32].fill(0);
        let stolen = ConnectToken::from_bytes(&stolen).expect("well-formed");
        let thief = world.join_with(stolen, LinkConfig::default(), "10.6.6.6:6");
        world.run_for(SECOND);
        assert_eq!(world.server.footprint().connections, 0);
        assert_eq!(outcome(&mut world, token), None);
        world.run_for(12 * SECOND);
        assert_eq!(world.peers[thief].error(), Some(ConnectError::TimedOut));
    });
}

/// Fails if the game's admission is not asked, or its answer is ignored.
#[test]
fn the_game_has_the_last_word() {
    let mut world = World::new(1, GOOD);
    world.server.set_admission(Box::new(|applicant| {
        assert_eq!(applicant.data, [7; 3]);
        match applicant.client {
            ClientId(2) => Err(404),
            _ => Ok(()),
        }
    }));
    let tokens = [1, 2].map(|client| world.issue(&grant(client)));
    let [good, bad] = tokens.map(|token| outcome(&mut world, token));
    assert_eq!(good, None);
    assert_eq!(bad, Some(ConnectError::Denied(Denial::Refused(404))));
    // The token of a refused client is still valid.
    assert_eq!(world.server.footprint().tokens, 1);
}

/// Fails if `examine` does not check bans, if `ban` does not close present connections, or if bans
/// are not limited.
#[test]
fn who_is_banned_stays_out_whatever_the_token() {
    over_seeds(20, |seed| {
        let few = Limits::default().with_memory(6);
        let mut world = World::with(seed, GOOD, config().with_limits(few));
        for _ in 0..3 {
            world.join();
        }
        world.connect_all();
        let connection = world.connection_of(1).expect("connected");
        let now = world.server_time();
        assert_eq!(world.server.ban(ClientId(1), now), Ok(()));
        world.run_for(SECOND);
        assert_eq!(world.closed(), [(connection, CloseReason::Kicked)]);
        assert_eq!(world.peers[1].closed(), Some(CloseReason::Kicked));
        assert_eq!(world.connections().len(), 2);

        let token = world.issue(&grant(1));
        let banned = Some(ConnectError::Denied(Denial::Banned));
        assert_eq!(outcome(&mut world, token.clone()), banned);
        assert!(world.server.unban(ClientId(1)));
        assert!(!world.server.unban(ClientId(1)));
        assert_eq!(outcome(&mut world, token), None);

        for client in 10..16 {
            assert_eq!(world.server.ban(ClientId(client), now), Ok(()));
        }
        let full = Err(BanError::Full(6));
        assert_eq!(world.server.ban(ClientId(16), now), full);
        assert_eq!(world.server.ban(ClientId(10), now), Ok(()), "once more");
        assert_eq!(world.server.banned().count(), 6);
    });
}

/// Fails if a client gives up at its first server (`try_next`).
#[test]
fn servers_are_tried_one_after_the_other() {
    let mut world = World::new(1, GOOD);
    let mut grant = grant(1);
    grant.servers.insert(0, address("192.0.2.200:4000"));
    let token = world.issue(&grant);
    let peer = world.join_with(token, LinkConfig::default(), "10.0.0.1:1");
    world.run_for(9 * SECOND);
    assert!(world.peers[peer].events.is_empty());
    world.run_for(2 * SECOND);
    let server = world.server_address;
    assert_eq!(
        world.peers[peer].events,
        [ClientEvent::Connected { server }]
    );
}

/// Fails if a server with the public key answers other machines, or if that key can be used by
/// accident.
#[test]
fn the_insecure_mode_has_to_be_asked_for_and_stays_at_home() {
    let public = *b"insecure: only for loopback test";
    assert_eq!(TokenKey::new(public).err(), Some(TokenError::PublicKey));
    for (from, connects) in [
        ("127.0.0.1:9", true),
        ("[::1]:9", true),
        ("10.0.0.1:9", false),
    ] {
        let key = TokenKey::insecure_for_loopback_tests();
        let server = address("127.0.0.1:4000");
        let config = ServerConfig::new(key.clone(), common::PROTOCOL, vec![server]);
        let mut world = World::with(1, GOOD, config);
        let mut grant = grant(1);
        grant.servers = vec![server];
        let token = grant.issue(&key, &mut world.random).expect("sound");
        let peer = world.join_with(token, LinkConfig::default(), from);
        world.run_for(SECOND);
        assert_eq!(world.peers[peer].connected(), connects);
    }
}
