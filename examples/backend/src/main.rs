//! `prescient-example-backend KEYFILE HTTP-ADDRESS GAME-SERVER…`; then
//! `curl -d alice http://HTTP-ADDRESS/token` prints a token.

use std::error::Error;

use prescient_example_backend::{Backend, router};
use prescient_net::{key_from_text, resolve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [key, http, servers @ ..] = &arguments[..] else {
        return Err("usage: prescient-example-backend KEYFILE HTTP-ADDRESS GAME-SERVER…".into());
    };
    let key = key_from_text(&std::fs::read_to_string(key)?)?;
    let servers = servers.iter().map(|server| resolve(server));
    let servers = servers.collect::<Result<Vec<_>, _>>()?.concat();
    let next = 1.into();
    let listener = tokio::net::TcpListener::bind(http).await?;
    println!("http://{}/token", listener.local_addr()?);
    let backend = Backend { key, servers, next };
    Ok(axum::serve(listener, router(backend)).await?)
}
