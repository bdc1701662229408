//! Waiting for ticks and packets in programs on tokio.

use std::time::Duration;

use crate::client::{Client, ClientEvent};
use crate::error::JoinError;
use crate::server::Server;

impl Server {
    /// Like [`next_tick`](Self::next_tick), without blocking the thread: other tasks run meanwhile.
    /// Looks for packets every millisecond. If it is dropped before the tick is due, the next call
    /// waits for the same tick.
    ///
    /// ```
    /// # use prescient::{Client, Everything, Schema, Server, State, loopback_token};
    /// # #[derive(State)]
    /// # struct Slider { #[state(step = 0.01)] x: f32 }
    /// # async fn game() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::loopback("127.0.0.1:0", Schema::of::<Slider>()?, Everything)?;
    /// let address = server.address().ok_or("no socket")?.to_string();
    /// tokio::spawn(async move {
    ///     loop {
    ///         server.next_tick_async().await;
    ///         while server.poll().is_some() {}
    ///         server.send();
    ///     }
    /// });
    /// let client = Client::join_async(loopback_token(&address)?, Schema::of::<Slider>()?).await?;
    /// assert!(client.is_connected());
    /// # Ok(())
    /// # }
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    /// # runtime.unwrap().block_on(game()).unwrap();
    /// ```
    pub async fn next_tick_async(&mut self) {
        let due = self.next_due();
        wait(|| self.receive_until(due)).await;
        self.begin_scheduled(due);
    }

    /// Like [`wait`](Self::wait), without blocking the thread: `server.wait_async(span).await`.
    ///
    /// ```
    /// # use prescient::{Everything, Schema, Server, State};
    /// # #[derive(State)]
    /// # struct Slider { #[state(step = 0.01)] x: f32 }
    /// # async fn game() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Server::loopback("127.0.0.1:0", Schema::of::<Slider>()?, Everything)?;
    /// server.wait_async(std::time::Duration::from_millis(5)).await;
    /// # Ok(())
    /// # }
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    /// # runtime.unwrap().block_on(game()).unwrap();
    /// ```
    pub async fn wait_async(&mut self, span: Duration) {
        let until = self.now().after(span);
        wait(|| self.receive_until(until)).await;
    }
}

impl Client {
    /// Like [`join`](Self::join), without blocking the thread. Dropping it ends the attempt.
    #[cfg(feature = "udp")]
    pub async fn join_async(
        token: prescient_transport::ConnectToken,
        schema: prescient_schema::Schema,
    ) -> Result<Self, JoinError> {
        let mut client = Self::start(token, schema)?;
        loop {
            client.wait_async(TURN).await;
            match client.poll() {
                Some(ClientEvent::Joined) => return Ok(client),
                Some(ClientEvent::Failed(error)) => return Err(client.why_not_joined(error)),
                Some(ClientEvent::OtherSchema(differences)) => {
                    return Err(JoinError::OtherSchema(differences));
                }
                Some(ClientEvent::OtherSettings(mismatch)) => {
                    return Err(JoinError::OtherSettings(mismatch));
                }
                Some(ClientEvent::Left(reason)) => return Err(JoinError::Closed(reason)),
                _ => {}
            }
        }
    }

    /// Like [`wait`](Self::wait), without blocking the thread. Looks for packets every millisecond.
    pub async fn wait_async(&mut self, span: Duration) {
        let until = self.now().after(span);
        wait(|| self.receive_until(until)).await;
    }
}

/// Receives until no time is left.
async fn wait(mut receive: impl FnMut() -> Duration) {
    loop {
        let left = receive();
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(TURN)).await;
    }
}

/// How often arrivals are looked for.
const TURN: Duration = Duration::from_millis(1);
