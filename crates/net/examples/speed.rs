//! How many packets a second go through real sockets of this machine, sealed by one end and opened
//! by the other, with everything on one thread: `cargo run --release -p prescient-net --example speed`.

use std::time::Duration;

use prescient_net::{BlockingClient, BlockingServer, Clock, Socket, insecure_token};
use prescient_transport::*;

const PROTOCOL: ProtocolId = ProtocolId(*b"speed, version 1");

fn main() {
    for (clients, length, burst) in [
        (1, 64, 64),
        (1, 64, 1),
        (1, 1000, 64),
        (64, 64, 1),
        (64, 64, 8),
    ] {
        let mut arena = Arena::new(clients);
        let before = arena.packets();
        let clock = Clock::start();
        let mut rounds = 0;
        while clock.now() < Time::from_micros(SPAN) {
            arena.round(&vec![7; length], burst);
            rounds += 1;
        }
        let seconds = clock.now().as_micros() as f64 / 1e6;
        let packets = arena.packets() - before;
        let wanted = 2 * rounds * burst as u64 * clients;
        let lost = wanted.saturating_sub(packets);
        let statistics = arena.server.statistics();
        println!(
            "{clients:>3} clients, {length:>4} bytes, {burst:>2} in a row: {:>7.0} packets a second \
             through both ends, {:>7.0} in and out of one; {:.1} sent and {:.1} received in a call \
             of the server; {lost} of {wanted} lost",
            packets as f64 / seconds,
            // Each packet is sealed and sent by one end, received and opened by the other.
            2.0 * packets as f64 / seconds,
            statistics.datagrams_sent as f64 / statistics.send_calls as f64,
            statistics.datagrams_received as f64 / statistics.receive_calls as f64,
        );
    }
}

struct Arena {
    server: BlockingServer,
    clients: Vec<BlockingClient>,
    heard_by_server: u64,
    heard_by_clients: u64,
}

impl Arena {
    fn new(clients: u64) -> Self {
        let address = "127.0.0.1:0".parse().expect("an address");
        let socket = Socket::bind(address).expect("a free port");
        let address = socket.address();
        let key = TokenKey::insecure_for_loopback_tests();
        let mut config = ServerConfig::new(key, PROTOCOL, vec![address]);
        config.limits.connections_per_address = usize::MAX;
        config.limits.handshakes_per_address = u32::MAX;
        let mut server = BlockingServer::new(socket, config).expect("a server");
        let start = |number| {
            let token = insecure_token(&address.to_string(), PROTOCOL, ClientId(number));
            let token = token.expect("loopback");
            BlockingClient::start(token, PROTOCOL, LinkConfig::default()).expect("a socket")
        };
        let mut clients: Vec<_> = (0..clients).map(start).collect();
        while server.machine().clients().count() < clients.len() {
            clients
                .iter_mut()
                .for_each(|client| while client.poll().is_some() {});
            let _ = server.wait(Duration::from_millis(1));
        }
        Self {
            server,
            clients,
            heard_by_server: 0,
            heard_by_clients: 0,
        }
    }

    /// Every client sends a burst, and the server answers with as many.
    fn round(&mut self, payload: &[u8], burst: usize) {
        for client in &mut self.clients {
            client.with(|client, now| {
                for _ in 0..burst {
                    client.send(payload, now).expect("connected");
                }
            });
            client.flush();
        }
        while let Some(event) = self.server.poll() {
            self.heard_by_server += u64::from(matches!(event, ServerEvent::Received { .. }));
        }
        self.server.with(|server, now| {
            let everybody: Vec<_> = server.clients().map(|(connection, _)| connection).collect();
            for connection in everybody {
                for _ in 0..burst {
                    server.send(connection, payload, now).expect("connected");
                }
            }
        });
        self.server.flush();
        for client in &mut self.clients {
            while let Some(event) = client.poll() {
                self.heard_by_clients += u64::from(matches!(event, ClientEvent::Received { .. }));
            }
        }
    }

    fn packets(&self) -> u64 {
        self.heard_by_server + self.heard_by_clients
    }
}

/// Microseconds for each.
const SPAN: u64 = 2_000_000;
