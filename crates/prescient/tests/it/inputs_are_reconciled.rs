//! A client moves its own entity at once and corrects it by the server's state: with the input tick
//! that comes with every state, it knows which of its inputs the state lacks.

use crate::common;

use std::collections::VecDeque;
use std::time::Duration;

use prescient::links::{Conditions, UdpConditioner};
use prescient::{
    Client, ClientId, Everything, ExchangeConfig, Grant, InputTick, LinkConfig, Schema, Server,
    ServerEvent, ServerOptions, State, TokenKey, UnixTime, protocol,
};
use prescient_net::{Clock, SystemEntropy};

use crate::common::{bind, join, run};

#[derive(Clone, Copy, Debug, PartialEq, State)]
struct Runner {
    #[state(step = 1.0, position)]
    position: [f64; 2],
}

/// What a tick of input does to the runner; both ends have this code.
fn move_by(runner: &mut Runner, keys: u64) {
    runner.position[0] += (keys & 7) as f64;
    runner.position[1] -= (keys >> 3 & 7) as f64;
}

/// A client that predicts itself.
#[derive(Default)]
struct Prediction {
    /// Inputs that no state has consumed yet.
    pending: VecDeque<(InputTick, u64)>,
    shown: Option<Runner>,
    corrections: u32,
}

impl Prediction {
    fn act(&mut self, client: &mut Client, keys: u64) {
        let tick = client.press(keys).expect("connected");
        self.pending.push_back((tick, keys));
        if let Some(shown) = &mut self.shown {
            move_by(shown, keys);
        }
    }

    /// Starts from the server's state and applies what it lacks.
    fn reconcile(&mut self, client: &Client) {
        let state = client
            .entities()
            .find_map(|entity| client.get::<Runner>(entity));
        let Some(mut state) = state else {
            return;
        };
        let consumed = client.consumed_input();
        while self
            .pending
            .front()
            .is_some_and(|(tick, _)| Some(*tick) <= consumed)
        {
            self.pending.pop_front();
        }
        for (_, keys) in &self.pending {
            move_by(&mut state, *keys);
        }
        if self.shown.is_some_and(|shown| shown != state) {
            self.corrections += 1;
        }
        self.shown = Some(state);
    }
}

/// A thousand ticks of input over 5 % loss: the prediction is always what the server arrives at, so
/// nothing is ever corrected, although states are behind by many inputs.
///
/// Fails if `Peer::begin_tick` does not note the input, if `Server::poll` notes an input before the
/// program is given it (in `handle_input`), or if `Client::consumed_input` is off by one.
#[test]
fn nothing_is_corrected_when_both_ends_agree() {
    let exchange = ExchangeConfig::default().with_inputs_per_second(u32::MAX);
    let link = LinkConfig::default().with_exchange(exchange);
    let options = ServerOptions::default().with_link(link);
    let mut server = bind(Schema::of::<Runner>().expect("sound"), options);
    let address = server.address().expect("it has a socket");
    let bad = Conditions {
        latency: Duration::from_millis(10),
        loss: 50_000,
        ..Conditions::default()
    };
    let relay = UdpConditioner::start(address, 3, bad.clone(), bad).expect("a relay");
    let grant = Grant {
        client: ClientId(1),
        protocol: protocol(),
        servers: vec![relay.address(), address],
        expires: UnixTime(Clock::unix().0 + 60),
        data: Vec::new(),
    };
    let key = TokenKey::insecure_for_loopback_tests();
    let mut entropy = SystemEntropy::new().expect("randomness");
    let token = grant.issue(&key, &mut entropy).expect("sound");
    let (client, _) = join(&mut server, move || {
        Client::join(token, Schema::of::<Runner>().expect("sound"))
    });
    let mut clients = [client.expect("joined")];

    let mut runner = Runner { position: [0.0; 2] };
    let entity = server
        .step()
        .expect("in order")
        .spawn(&runner)
        .expect("sound");
    let mut prediction = Prediction::default();
    let (mut acted, mut lag) = (0_u64, 0);
    run(&mut server, &mut clients, |server, clients| {
        while let Some(event) = server.poll() {
            if let ServerEvent::Input { input, .. } = event {
                move_by(&mut runner, input.keys_down.bits());
            }
        }
        let mut step = server.step().expect("in order");
        step.set(entity, &runner).expect("it lives");
        step.finish();
        let client = &mut clients[0];
        while client.poll().is_some() {}
        prediction.reconcile(client);
        lag = lag.max(prediction.pending.len());
        if acted < 1000 && prediction.shown.is_some() {
            acted += 1;
            prediction.act(client, ((acted * 2_654_435_761) >> 7) & 63);
        }
        acted == 1000 && prediction.pending.is_empty()
    });
    assert_eq!(prediction.shown, Some(runner));
    assert_eq!(prediction.corrections, 0);
    assert!(lag > 1, "states lagged by at most {lag} inputs");
}

/// Both clients know the server's tick between two states; the one in the process exactly.
///
/// Fails if `Server::send_clocks` does not convert to the carrier's clock, or if a client that joins
/// later is not told (`without_clock.insert` left out in `handle_message`).
#[test]
fn clients_know_the_tick_of_the_server() {
    let schema = || Schema::of::<Runner>().expect("sound");
    let mut server = Server::loopback("127.0.0.1:0", schema(), Everything).expect("a free port");
    server.next_tick();
    server.step().expect("in order").finish();
    server.send();
    let token = common::token(&server);
    let (client, _) = join(&mut server, move || Client::join(token, schema()));
    let mut clients = [client.expect("joined"), server.local_client()];
    let mut is_known = false;
    for _ in 0..600 {
        server.next_tick();
        while server.poll().is_some() {}
        server.step().expect("in order").finish();
        let tick = server.world().tick().expect("it has begun").0;
        server.send();
        for client in &mut clients {
            client.wait(Duration::ZERO);
            while client.poll().is_some() {}
        }
        let [over_udp, local] = &mut clients;
        let exact = local.server_tick();
        let near = over_udp.server_tick();
        if let Some(exact) = exact {
            assert!(exact >= tick as f64, "{exact} before tick {tick} was due");
            let interval = local.tick_interval().expect("it has a clock");
            assert_eq!(interval, Duration::from_micros(33_333));
        }
        if let (Some(exact), Some(near)) = (exact, near)
            && (exact - near).abs() < 0.5
        {
            is_known = true;
            break;
        }
    }
    assert!(is_known);
}
