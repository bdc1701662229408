//! Events, questions and inputs of the program's own types, to the server.

use prescient_channels::{ChannelId, Input, InputError, InputTick, MAX_FIELDS, SendError};
use prescient_replication::{Delivery, EventError, QuestionId, ReplyTo, Transmit};
use prescient_schema::{Event, Request};

use crate::client::Client;
use crate::protocol::{EVENTS, STATE};

/// Typed events. The types are part of the schema
/// ([`Schema::with_events`](prescient_schema::Schema::with_events)), so both ends have the same ones.
///
/// A reference to an entity that this client does not show is empty. The server refuses a client that
/// forges one.
impl Client {
    /// Sends the server an event, which it gets as [`Typed`](crate::ServerEvent::Typed).
    pub fn tell<T: Event>(&mut self, event: &T) -> Result<(), EventError> {
        self.check_room()?;
        let transmit = self.view.tell(event)?;
        self.send_typed(&transmit)
    }

    /// Asks the server. Its answer is a [`Replied`](crate::ClientEvent::Replied) with the returned
    /// number; there is none if the connection is lost before.
    pub fn ask<T: Request>(&mut self, question: &T) -> Result<QuestionId, EventError> {
        self.check_room()?;
        let (number, transmit) = self.view.ask(question)?;
        self.send_typed(&transmit)?;
        Ok(number)
    }

    /// Answers what the server [asked](crate::ClientEvent::Asked).
    pub fn reply<T: Request>(
        &mut self,
        to: ReplyTo<T>,
        answer: &T::Answer,
    ) -> Result<(), EventError> {
        self.check_room()?;
        let transmit = self.view.reply(to, answer)?;
        self.send_typed(&transmit)
    }

    /// Sends what the player does as a typed input, with the keys that are held down; call it once
    /// per tick of the game instead of [`press`](Self::press). The server gets it as
    /// [`Input`](crate::ServerEvent::Input) and reads it with
    /// [`read_input`](crate::Server::read_input). It may take 32 bytes.
    ///
    /// ```
    /// use prescient::{Event, Everything, Schema, Server, ServerEvent, State};
    ///
    /// #[derive(State)]
    /// struct Tank { #[state(step = 0.01)] x: f32 }
    ///
    /// #[derive(Event, Debug, PartialEq)]
    /// struct Drive { #[event(step = 0.01)] throttle: f32, #[event(step = 0.01)] turn: f32 }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = Schema::of::<Tank>()?.with_events::<Drive>()?;
    /// let mut server = Server::offline(schema, Everything)?;
    /// let mut client = server.local_client();
    /// let drive = Drive { throttle: 1.0, turn: -0.25 };
    /// client.steer(&drive)?;
    /// while let Some(event) = server.poll() {
    ///     if let ServerEvent::Input { peer, input, .. } = event {
    ///         assert_eq!(server.read_input(peer, &input), Some(drive));
    ///         return Ok(());
    ///     }
    /// }
    /// # panic!("it arrives");
    /// # }
    /// ```
    pub fn steer<T: Event>(&mut self, input: &T) -> Result<InputTick, EventError> {
        let input = Input {
            keys_down: self.keys_down(),
            ..self.input(input)?
        };
        self.act(input).map_err(|error| match error {
            InputError::Fields(length) => EventError::TooLong(length),
            _ => EventError::NotConnected,
        })
    }

    /// A typed input without keys, for [`act`](Self::act).
    pub fn input<T: Event>(&mut self, input: &T) -> Result<Input, EventError> {
        Ok(Input {
            fields: self.view.input_fields(input, MAX_FIELDS)?,
            ..Input::default()
        })
    }

    fn check_room(&mut self) -> Result<(), EventError> {
        if !self.is_connected() {
            return Err(EventError::NotConnected);
        }
        match self.is_backlogged() {
            true => Err(EventError::Backlogged),
            false => Ok(()),
        }
    }

    fn send_typed(&mut self, transmit: &Transmit) -> Result<(), EventError> {
        let channel = channel_of(transmit.delivery);
        self.send(channel, transmit.message()).map_err(|error| {
            // The stream's model has learned from a message that does not arrive.
            self.view.restart_events();
            match error {
                SendError::Backlogged => EventError::Backlogged,
                SendError::TooLong { length, .. } => EventError::TooLong(length),
                _ => EventError::NotConnected,
            }
        })
    }
}

/// The channel of messages with this delivery.
pub(crate) fn channel_of(delivery: Delivery) -> ChannelId {
    match delivery {
        Delivery::Reliable => EVENTS,
        Delivery::Unordered => ChannelId::UNORDERED,
        Delivery::Unreliable => STATE,
        Delivery::Sequenced => ChannelId::SEQUENCED,
    }
}
