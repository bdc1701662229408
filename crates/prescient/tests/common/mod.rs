//! A server that keeps running while a client joins it.
#![allow(dead_code, unreachable_pub, reason = "every test uses another part")]

use std::thread;
use std::time::Duration;

use prescient::{
    Client, ConnectToken, Everything, Schema, Server, ServerEvent, ServerOptions, TokenKey,
    loopback_token,
};

pub fn bind(schema: Schema, options: ServerOptions) -> Server {
    let key = TokenKey::insecure_for_loopback_tests();
    let server = Server::bind("127.0.0.1:0", key, schema, Everything, options);
    server.expect("a server")
}

pub fn token(server: &Server) -> ConnectToken {
    let address = server.address().expect("it has a socket");
    loopback_token(&address.to_string()).expect("an address of this machine")
}

/// The result of a join, and the server's events meanwhile.
pub fn join<T: Send + 'static>(
    server: &mut Server,
    join: impl FnOnce() -> T + Send + 'static,
) -> (T, Vec<ServerEvent>) {
    let joining = thread::spawn(join);
    let mut events = Vec::new();
    for _ in 0..10_000 {
        if joining.is_finished() {
            return (joining.join().expect("no panic"), events);
        }
        server.wait(Duration::from_millis(2));
        events.extend(std::iter::from_fn(|| server.poll()));
    }
    panic!("the join does not end");
}

/// Runs tick by tick until a condition holds.
pub fn run(
    server: &mut Server,
    clients: &mut [Client],
    mut done: impl FnMut(&mut Server, &mut [Client]) -> bool,
) {
    for _ in 0..20_000 {
        if done(server, clients) {
            return;
        }
        server.step().expect("in order").finish();
        server.send();
        server.wait(Duration::from_millis(2));
        for client in &mut *clients {
            client.wait(Duration::ZERO);
        }
    }
    panic!("the condition never holds");
}
