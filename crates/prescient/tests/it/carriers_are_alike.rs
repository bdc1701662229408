//! One server with three carriers at once: UDP, TCP and a local client. All three see the same
//! world, exchange events and inputs, and are told why they were closed.

use std::net::SocketAddr;
use std::time::Duration;

use prescient::{
    Change, Client, ClientEvent, ClientId, ClientInfo, ClientOptions, CloseReason, Everything,
    ExchangeConfig, JoinError, LobbyEvent, PeerId, ProtocolId, Reconnect, RequestError, Schema,
    Server, ServerEvent, ServerInfo, ServerOptions, State, TcpClient, TcpError, TcpServer, Text,
    protocol,
};

use crate::common::{join, run, token};

#[derive(Clone, Copy, Debug, PartialEq, State)]
struct Ball {
    #[state(step = 0.25, position)]
    position: [f32; 2],
}

fn schema() -> Schema {
    Schema::of::<Ball>().expect("sound")
}

fn tcp_server(address: &str) -> TcpServer {
    let address = address.parse().expect("an address");
    TcpServer::bind(address, protocol(), ExchangeConfig::default(), 8).expect("a free port")
}

fn tcp_client(address: SocketAddr, protocol: ProtocolId) -> TcpClient {
    let config = ExchangeConfig::default();
    TcpClient::connect(address, protocol, ClientId(7), b"red", &config).expect("a socket")
}

fn server() -> (Server, SocketAddr) {
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a free port");
    let tcp = tcp_server("127.0.0.1:0");
    let address = tcp.address();
    server.add_carrier(tcp);
    (server, address)
}

/// Three clients on three carriers, and the server's ids of them in the same order.
fn three(server: &mut Server, tcp: SocketAddr) -> (Vec<Client>, Vec<PeerId>) {
    let udp = token(server);
    let (udp, mut events) = join(server, move || Client::join(udp, schema()));
    let (tcp, more) = join(server, move || {
        let carrier = tcp_client(tcp, protocol());
        Client::join_with_carrier(carrier, schema(), ClientOptions::default())
    });
    events.extend(more);
    let local = server.local_client();
    events.extend(std::iter::from_fn(|| server.poll()));
    let joined = events.into_iter().filter_map(|event| match event {
        ServerEvent::Joined { peer, client, data } => Some((peer, client, data)),
        _ => None,
    });
    let joined: Vec<_> = joined.collect();
    let ids: Vec<_> = joined.iter().map(|(_, client, _)| client.0).collect();
    assert_eq!(ids, [0, 7, 0]);
    assert_eq!(joined[1].2, b"red");
    let clients = vec![udp.expect("joined"), tcp.expect("joined"), local];
    (clients, joined.into_iter().map(|(peer, ..)| peer).collect())
}

/// Every request has exactly one answer, in both directions, or none in time. Fails if a carrier does
/// not forward requests, or if `End::poll` reports a timeout and a late answer.
#[test]
fn three_carriers_ask_and_answer() {
    let (mut server, tcp) = server();
    let (mut clients, peers) = three(&mut server, tcp);
    let patience = Duration::from_secs(20);
    let mut open = Vec::new();
    for (client, &peer) in clients.iter_mut().zip(&peers) {
        let up = client.request(b"up", patience).expect("connected");
        let down = server.request(peer, b"down", patience).expect("connected");
        let late = server.request(peer, b"late", Duration::from_millis(1));
        open.push((up, down, late.expect("connected")));
    }
    let (mut up, mut down, mut late) = (0, 0, 0);
    run(&mut server, &mut clients, |server, clients| {
        for event in std::iter::from_fn(|| server.poll()).collect::<Vec<_>>() {
            match event {
                ServerEvent::Request {
                    peer,
                    request,
                    message,
                } => {
                    assert_eq!(message, b"up");
                    server.respond(peer, request, b"fine").expect("asked");
                    // Only the first counts.
                    let _ = server.respond(peer, request, b"again");
                }
                ServerEvent::Answer {
                    peer,
                    request,
                    answer,
                } => {
                    let at = peers.iter().position(|&it| it == peer).expect("asked");
                    match answer {
                        Ok(answer) => {
                            assert_eq!((request, &answer[..]), (open[at].1, &b"good"[..]));
                            down += 1;
                        }
                        Err(error) => {
                            assert_eq!((request, error), (open[at].2, RequestError::TimedOut));
                            late += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        for (client, open) in clients.iter_mut().zip(&open) {
            while let Some(event) = client.poll() {
                match event {
                    ClientEvent::Request { request, message } if message == b"down" => {
                        client.respond(request, b"good").expect("asked");
                    }
                    ClientEvent::Answer { request, answer } => {
                        assert_eq!((request, answer), (open.0, Ok(b"fine".to_vec())));
                        up += 1;
                    }
                    _ => {}
                }
            }
        }
        (up, down, late) == (3, 3, 3)
    });
    let gone = server.request(peers[2], b"?", patience).expect("connected");
    drop(clients);
    let mut clients = Vec::new();
    run(&mut server, &mut clients, |server, _| {
        std::iter::from_fn(|| server.poll()).any(|event| {
            let answer = Err(RequestError::Closed);
            let (peer, request) = (peers[2], gone);
            event
                == ServerEvent::Answer {
                    peer,
                    request,
                    answer,
                }
        })
    });
}

/// Clients of all carriers meet in one lobby: each sees the message of the day and the names of all
/// that are ready; a restart asks all of them again, and who leaves is gone from the roster. Fails if
/// `send_roster` or `Lobby::leave` does nothing, or if a client's info is not sent on.
#[test]
fn three_carriers_have_one_lobby() {
    let (mut server, tcp) = server();
    let info = |motd: &str| ServerInfo {
        name: Text::new("Test").expect("short"),
        message_of_the_day: Text::new(motd).expect("short"),
        ..ServerInfo::default()
    };
    server.set_info(info("first"));
    let (mut clients, peers) = three(&mut server, tcp);
    for (number, client) in clients.iter_mut().enumerate() {
        client.introduce(ClientInfo {
            name: Text::new(format!("player {number}")).expect("short"),
            ..ClientInfo::default()
        });
    }
    let mut ready = Vec::new();
    let mut restarted = 0;
    let mut again = false;
    run(&mut server, &mut clients, |server, clients| {
        for event in std::iter::from_fn(|| server.poll()) {
            if let ServerEvent::Lobby {
                peer,
                lobby: LobbyEvent::Ready(player),
            } = event
            {
                ready.push((peer, player));
            }
        }
        for client in &mut *clients {
            while let Some(event) = client.poll() {
                match event {
                    ClientEvent::ServerInfo(info) => {
                        assert_eq!(info.message_of_the_day.as_str(), "first");
                        assert_eq!(info.update_period, Duration::from_micros(33_333));
                        client.ready();
                    }
                    ClientEvent::LobbyRestarted(info) => {
                        assert_eq!(info.message_of_the_day.as_str(), "second");
                        restarted += 1;
                        client.ready();
                    }
                    _ => {}
                }
            }
        }
        let names = |client: &Client| -> Vec<String> {
            let players = client.roster().iter();
            players.map(|(_, it)| it.info.name.to_string()).collect()
        };
        let all = ["player 0", "player 1", "player 2"];
        let all_there = clients.iter().all(|client| names(client).len() == 3);
        if all_there && !again {
            for client in clients.iter() {
                let mut names = names(client);
                names.sort();
                assert_eq!(names, all);
            }
            again = true;
            server.restart_lobby(info("second"));
        }
        restarted == 3 && ready.len() == 6
    });
    for &peer in &peers {
        let player = server.player_of(peer).expect("it is ready");
        let of_peer = ready.iter().filter(|ready| **ready == (peer, player));
        assert_eq!(of_peer.count(), 2, "a player keeps its id");
    }
    clients.remove(0).leave();
    run(&mut server, &mut clients, |server, clients| {
        while server.poll().is_some() {}
        for client in &mut *clients {
            while client.poll().is_some() {}
        }
        let counts = clients.iter().map(|client| client.roster().len());
        counts.eq([2, 2]) && server.players().count() == 2
    });
}

/// Fails if `Carriers::poll` skips a carrier, if `Carriers::of` mixes them up, or if
/// `TcpServer::flush` sends nothing.
#[test]
fn three_carriers_show_the_same() {
    let (mut server, tcp) = server();
    let (mut clients, peers) = three(&mut server, tcp);
    let ball = Ball {
        position: [1.25, -3.5],
    };
    server
        .step()
        .expect("in order")
        .spawn(&ball)
        .expect("sound");
    for (number, client) in clients.iter_mut().enumerate() {
        let keys = 1 << number;
        client.press(keys).expect("connected");
        client
            .send_event(None, &[number as u8; 3000])
            .expect("joined");
    }
    let mut received = Vec::new();
    let mut shown = [false; 3];
    run(&mut server, &mut clients, |server, clients| {
        for event in std::iter::from_fn(|| server.poll()) {
            if let ServerEvent::Event { peer, payload, .. } = event {
                assert_eq!(payload, [payload[0]; 3000]);
                received.push((peer, payload[0]));
            }
        }
        for (client, shown) in clients.iter_mut().zip(&mut shown) {
            while let Some(event) = client.poll() {
                assert!(matches!(event, ClientEvent::Change(_)), "{event:?}");
            }
            *shown = client
                .entities()
                .any(|entity| client.get(entity) == Some(ball));
        }
        let keys = peers.iter().map(|peer| server.keys(*peer));
        received.len() == 3 && shown == [true; 3] && keys.eq([1, 2, 4])
    });
    received.sort_unstable_by_key(|(_, number)| *number);
    assert!(
        received
            .into_iter()
            .map(|(peer, _)| peer)
            .eq(peers.iter().copied())
    );
    assert!(
        server
            .statistics(peers[1])
            .expect("connected")
            .link
            .is_some()
    );

    // The end: one leaves, one is kicked, and shutting down tells the last one.
    let mut clients = clients.into_iter();
    let [udp, tcp, local] = std::array::from_fn(|_| clients.next().expect("three"));
    server.kick(peers[1]);
    local.leave();
    let mut rest = [udp, tcp];
    let mut left = Vec::new();
    let mut kicked = false;
    run(&mut server, &mut rest, |server, clients| {
        for event in std::iter::from_fn(|| server.poll()) {
            if let ServerEvent::Left { peer, reason } = event {
                left.push((peer, reason));
            }
        }
        let mut events = std::iter::from_fn(|| clients[1].poll());
        kicked |= events.any(|event| event == ClientEvent::Left(CloseReason::Kicked));
        kicked && left.len() == 2
    });
    left.sort_unstable_by_key(|(peer, _)| *peer);
    let expected = [
        (peers[1], CloseReason::Kicked),
        (peers[2], CloseReason::Finished),
    ];
    assert_eq!(left, expected);
}

/// Fails if the data is cut to the length that a token has room for.
#[test]
fn data_over_tcp_is_as_long_as_in_a_token() {
    let (_server, tcp) = server();
    let connect = |length| {
        let (config, data) = (ExchangeConfig::default(), vec![7; length]);
        TcpClient::connect(tcp, protocol(), ClientId(7), &data, &config)
    };
    assert!(connect(256).is_ok());
    let Err(TcpError::Data(length)) = connect(257) else {
        panic!("it must be refused");
    };
    assert_eq!(length, 257);
}

/// Fails if a TCP server takes clients of another protocol, or if the refusal does not arrive.
#[test]
fn another_protocol_is_refused() {
    let (mut server, tcp) = server();
    let (joined, events) = join(&mut server, move || {
        let carrier = tcp_client(tcp, ProtocolId(*b"another protocol"));
        Client::join_with_carrier(carrier, schema(), ClientOptions::default()).map(drop)
    });
    let Err(JoinError::Connection(why)) = joined else {
        panic!("it must be refused");
    };
    let text = why.to_string();
    assert!(
        text.starts_with("client and server run different protocols"),
        "{text}"
    );
    assert_eq!(events, []);
}

/// Bytes that are no protocol of ours open nothing, and others go on.
///
/// Fails if `Stream::handle_frame` accepts a frame longer than a packet, or a packet before the
/// hello.
#[test]
fn nonsense_over_tcp_opens_nothing() {
    let (mut server, tcp) = server();
    let nonsense: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 100],
        &[0, 0, 0],
        &[4, 0, 3, 1, 0, 0, 0],
        &[2, 0, 1, 9, 9],
    ];
    let mut streams: Vec<_> = nonsense
        .iter()
        .map(|bytes| {
            use std::io::Write;
            let mut stream = std::net::TcpStream::connect(tcp).expect("it listens");
            stream.write_all(bytes).expect("there is room");
            stream
        })
        .collect();
    let (clients, peers) = three(&mut server, tcp);
    assert_eq!((clients.len(), peers.len()), (3, 3));
    for stream in &mut streams {
        use std::io::Read;
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        // A reset is an end as well.
        assert!(matches!(stream.read(&mut [0; 10]), Ok(0) | Err(_)));
    }
}

/// Fails if `Reconnect::with_carriers` is not asked, or if the new carrier is not used.
#[test]
fn a_client_reconnects_over_tcp() {
    let (mut server, tcp) = server();
    let (joined, _) = join(&mut server, move || {
        let again = move || -> Option<Box<dyn prescient::Carrier>> {
            Some(Box::new(tcp_client(tcp, protocol())))
        };
        let options = ClientOptions::default().with_reconnect(Reconnect::with_carriers(again));
        Client::join_with_carrier(tcp_client(tcp, protocol()), schema(), options)
    });
    let mut clients = [joined.expect("joined")];
    let ball = Ball { position: [2.0; 2] };
    server
        .step()
        .expect("in order")
        .spawn(&ball)
        .expect("sound");
    // The server's machine goes down: streams end without a word.
    drop(server);
    let options = ServerOptions::default();
    let carrier = tcp_server(&tcp.to_string());
    let mut server = Server::with_carrier(carrier, schema(), Everything, options).expect("sound");
    let ball = Ball { position: [5.0; 2] };
    server
        .step()
        .expect("in order")
        .spawn(&ball)
        .expect("sound");
    let mut seen = Vec::new();
    run(&mut server, &mut clients, |_, clients| {
        let client = &mut clients[0];
        while let Some(event) = client.poll() {
            if !matches!(
                event,
                ClientEvent::Change(Change::Removed(_) | Change::Updated(_))
            ) {
                seen.push(event);
            }
        }
        client.is_connected() && client.entities().any(|it| client.get(it) == Some(ball))
    });
    let lost = |event: &&ClientEvent| matches!(event, ClientEvent::Disconnected(_));
    assert_eq!(seen.iter().filter(lost).count(), 1);
    assert!(seen.contains(&ClientEvent::Reconnected));
}
