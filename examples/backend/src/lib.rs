//! A backend that hands out tokens: `POST /token` with a player's name gives one as text.
//!
//! What is missing for a real one is the login: it would look up who is asking, and serve HTTPS,
//! because a token holds a secret.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use prescient_channels::ClientId;
use prescient_net::{Clock, OpenError, SystemEntropy, token_to_text};
use prescient_transport::{Grant, ProtocolId, TokenKey, UnixTime};

/// What both ends of the game speak.
pub const PROTOCOL: ProtocolId = ProtocolId(*b"example, week 12");

/// What a backend knows.
pub struct Backend {
    /// What it seals tokens with; its servers have the same.
    pub key: TokenKey,
    /// Where it sends players.
    pub servers: Vec<SocketAddr>,
    /// The number of the next player.
    pub next: AtomicU64,
}

/// The backend as a service.
pub fn router(backend: Backend) -> Router {
    Router::new()
        .route("/token", post(token))
        .with_state(Arc::new(backend))
}

async fn token(State(backend): State<Arc<Backend>>, name: String) -> Result<String, Refusal> {
    if name.is_empty() {
        return Err((
            StatusCode::BAD_REQUEST,
            "send your name as the body\n".into(),
        ));
    }
    let grant = Grant {
        client: ClientId(backend.next.fetch_add(1, Ordering::Relaxed)),
        protocol: PROTOCOL,
        servers: backend.servers.clone(),
        expires: UnixTime(Clock::unix().0 + 30),
        data: name.into_bytes(),
    };
    let mut entropy = SystemEntropy::new().map_err(no_randomness)?;
    match grant.issue(&backend.key, &mut entropy) {
        Ok(token) => Ok(token_to_text(&token).to_string()),
        Err(error) => Err((StatusCode::BAD_REQUEST, format!("{error}\n"))),
    }
}

type Refusal = (StatusCode, String);

fn no_randomness(error: OpenError) -> Refusal {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
}
