//! Interactions: the signed packets of named data as Zenoh's queries and replies.

use prescient::named::{
    Data, Decision, Interaction, InteractionError, InteractionOwner, Interactor, Interest, Time,
};
use zenoh::handlers::{FifoChannelHandler, RingChannel, RingChannelHandler};
use zenoh::query::{Query, Queryable, Reply};
use zenoh::{Session, Wait};

use crate::{MAX_WAITING, ZenohError};

/// Carries interactions to an [`InteractionOwner`], under the key `<topic>/interact`.
pub struct ZenohOwner {
    key: String,
    queries: Queryable<RingChannelHandler<Query>>,
}

impl ZenohOwner {
    /// Receives the interactions with entities of a topic.
    pub fn new(session: &Session, topic: &str) -> Result<Self, ZenohError> {
        let key = format!("{topic}/interact");
        let queries = session
            .declare_queryable(key.clone())
            .with(RingChannel::new(MAX_WAITING))
            .wait()?;
        Ok(Self { key, queries })
    }

    /// Has the owner decide about interactions that arrived; see [`InteractionOwner::handle_interest`]. Returns why
    /// some were dropped.
    pub fn poll(
        &mut self,
        owner: &mut InteractionOwner,
        mut decide: impl FnMut(&Interaction<'_>) -> Decision,
    ) -> Result<Vec<InteractionError>, ZenohError> {
        let mut dropped = Vec::new();
        while let Ok(Some(query)) = self.queries.try_recv() {
            let packet = query
                .payload()
                .map(|payload| payload.to_bytes().into_owned());
            let packet = packet.unwrap_or_default();
            let mut answer = Vec::new();
            let handled = match Interest::decode(&packet) {
                Ok(interest) => owner.handle_interest(&interest, &mut decide, &mut answer),
                Err(_) => Err(InteractionError::Malformed),
            };
            match handled {
                Ok(()) => query.reply(self.key.clone(), answer).wait()?,
                Err(error) => dropped.push(error),
            }
        }
        Ok(dropped)
    }
}

/// Carries what an [`Interactor`] sends to the owner of a topic.
pub struct ZenohInteractor {
    session: Session,
    replies: Vec<FifoChannelHandler<Reply>>,
}

impl ZenohInteractor {
    /// Sends interactions by a session.
    pub fn new(session: &Session) -> Self {
        Self {
            session: session.clone(),
            replies: Vec::new(),
        }
    }

    /// Sends what is due, and handles answers; [`Interactor::poll_outcome`] tells of them. `topic_of` returns the topic
    /// of an Interest's name.
    pub fn poll(
        &mut self,
        now: Time,
        interactor: &mut Interactor,
        topic_of: impl Fn(&Interest<'_>) -> Option<String>,
    ) -> Result<(), ZenohError> {
        let mut bytes = Vec::new();
        while interactor.poll_transmit(now, &mut bytes) {
            let topic = Interest::decode(&bytes).ok();
            let Some(topic) = topic.and_then(|interest| topic_of(&interest)) else {
                continue;
            };
            let query = self.session.get(format!("{topic}/interact"));
            self.replies.push(query.payload(&bytes[..]).wait()?);
        }
        self.replies.retain(|replies| {
            loop {
                match replies.try_recv() {
                    Ok(Some(reply)) => {
                        let packet = reply.result().ok();
                        let packet = packet.map(|sample| sample.payload().to_bytes().into_owned());
                        let packet = packet.unwrap_or_default();
                        if let Ok(data) = Data::decode(&packet) {
                            interactor.handle_data(&data);
                        }
                    }
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            }
        });
        Ok(())
    }
}
