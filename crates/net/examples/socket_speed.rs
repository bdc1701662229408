//! The throughput of a server through real sockets of this host, with all its clients on the same
//! thread: `cargo run --release -p prescient-net --example socket_speed`. Both ends share the
//! thread, so the server's time is measured separately.

use std::time::Duration;

use prescient_channels::*;
use prescient_net::{BlockingClient, BlockingServer, Clock, Socket, insecure_token};
use prescient_transport::*;

const PROTOCOL: ProtocolId = ProtocolId(*b"speed, version 1");

fn main() {
    let cases = [
        (64, 64, 1),
        (64, 64, 4),
        (64, 1000, 1),
        (1, 64, 64),
        (1, 1000, 64),
        (1, 64, 1),
    ];
    for (clients, length, burst) in cases {
        let mut arena = Arena::new(clients);
        let mut rounds = 0;
        while arena.clock.now() < Time::from_micros(SPAN) {
            arena.round(&vec![7; length], burst);
            rounds += 1;
        }
        let all = 2 * rounds * burst as u64 * clients;
        let statistics = arena.server.statistics();
        let datagrams = statistics.datagrams_sent + statistics.datagrams_received;
        let spent = arena.spent_by_server.as_secs_f64();
        println!(
            "{clients:>2} clients, {length:>4} bytes, {burst:>2} in a row: server {:>7.0} packets and \
             {:>7.0} messages a second in and out, {:>4.1} sent and {:>5.1} received in a call; \
             {} of {all} messages lost",
            datagrams as f64 / spent,
            arena.received as f64 / spent,
            statistics.datagrams_sent as f64 / statistics.send_calls as f64,
            statistics.datagrams_received as f64 / statistics.receive_calls as f64,
            all - arena.received,
        );
    }
}

struct Arena {
    server: BlockingServer,
    clients: Vec<BlockingClient>,
    clock: Clock,
    spent_by_server: Duration,
    /// Messages that arrived, at either end.
    received: u64,
}

impl Arena {
    fn new(clients: u64) -> Self {
        let address = "127.0.0.1:0".parse().expect("an address");
        let socket = Socket::bind(address).expect("a free port");
        let address = socket.address();
        let key = TokenKey::insecure_for_loopback_tests();
        let limits = Limits::default()
            .with_connections_per_address(usize::MAX)
            .with_handshakes_per_address(u32::MAX);
        // Each client stands for many.
        let exchange = ExchangeConfig::default().with_messages_per_second(u32::MAX);
        let config = ServerConfig::new(key, PROTOCOL, vec![address])
            .with_limits(limits)
            .with_link(LinkConfig::default().with_exchange(exchange));
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
            clock: Clock::start(),
            spent_by_server: Duration::ZERO,
            received: 0,
        }
    }

    /// Every client sends a burst, and the server answers with as many.
    fn round(&mut self, payload: &[u8], burst: usize) {
        for client in &mut self.clients {
            client.with(|client, now| {
                for _ in 0..burst {
                    client
                        .send(ChannelId::UNRELIABLE, payload, now)
                        .expect("connected");
                }
            });
            client.flush();
        }
        let start = self.clock.now();
        while let Some(event) = self.server.poll() {
            self.received += u64::from(matches!(event, ServerEvent::Received { .. }));
        }
        self.server.with(|server, now| {
            let everybody: Vec<_> = server.clients().map(|(connection, _)| connection).collect();
            for connection in everybody {
                for _ in 0..burst {
                    server
                        .send(connection, ChannelId::UNRELIABLE, payload, now)
                        .expect("connected");
                }
            }
        });
        self.server.flush();
        self.spent_by_server += self.clock.now().since(start);
        for client in &mut self.clients {
            while let Some(event) = client.poll() {
                self.received += u64::from(matches!(event, ClientEvent::Received(_)));
            }
        }
    }
}

/// Microseconds for each case.
const SPAN: u64 = 2_000_000;
