//! Interaction with entities that another peer owns: signed, with parameters, decided by the owner.
//!
//! A peer sends an Interest `/<topic>/interact/<id>/<command>` with parameters and its signature. The owner
//! checks the signature with the key that the peer has in its [`Profile`](crate::Profile), asks the program
//! whether the interaction is valid, and answers with its decision. The effect reaches everybody as a new version
//! of the entity.
//!
//! A command takes effect once. Every Interest has a sequence number of its sender and the boot time of the
//! owner, both signed. An owner accepts a number once; if the answer was lost, the repeated Interest gets the
//! same answer again. Commands to an earlier life of the owner are refused.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use prescient_channels::Time;
use thiserror::Error;

use crate::data::{Data, DataBuilder};
use crate::error::{DecodeError, EncodeError, NameError, VerifyError};
use crate::interest::{Interest, InterestBuilder};
use crate::name::{ComponentKind, Name, NameRef};
use crate::signature::{KeyLocator, SignatureStamp, Signer, Verifier};
use crate::sync::Random;
use crate::tlv::{self, Reader};

/// The most bytes of a command's parameters, and of an answer.
pub const MAX_PARAMETERS: usize = 1024;

/// The most peers whose interactions an owner accepts.
const MAX_SENDERS: usize = 4096;

/// The most answers that an owner keeps for each peer.
const MAX_ANSWERS: usize = 16;

/// The most interactions that wait for an answer.
const MAX_PENDING: usize = 256;

/// The time from one Interest of an interaction to the next, and the lifetime of each.
const RETRY: Duration = Duration::from_millis(250);

/// How often an interaction is sent before it fails.
const TRIES: u32 = 8;

/// A command of another peer, before it takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interaction<'a> {
    /// The peer that sent it.
    pub sender: &'a Name,
    /// The entity, among those of the topic.
    pub id: u64,
    /// What to do with it.
    pub command: &'a [u8],
    /// Further bytes.
    pub parameters: &'a [u8],
}

/// An owner's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The command took effect.
    Accepted(Vec<u8>),
    /// It did not.
    Refused(Vec<u8>),
}

/// Why an interaction was dropped without a decision. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InteractionError {
    /// It is not an Interest of this protocol.
    #[error("not an interaction")]
    Malformed,
    /// It names no sender, or one that is not known.
    #[error("the sender is not known")]
    UnknownSender,
    /// The signature is not valid.
    #[error(transparent)]
    Untrusted(#[from] VerifyError),
    /// It was sent to an earlier life of this owner.
    #[error("sent to an earlier life of this owner")]
    OtherLife,
    /// Its number was used already, and its answer is forgotten.
    #[error("a repeated interaction")]
    Replayed,
    /// The answer is too long.
    #[error(transparent)]
    Answer(#[from] EncodeError),
}

/// Accepts interactions with the entities under a topic of a peer, without sockets and clocks.
///
/// 1. [`InteractionOwner::new`], and register [`prefix`](Self::prefix).
/// 2. [`trust`](Self::trust) every peer that joins, and [`forget`](Self::forget) those that leave.
/// 3. [`handle_interest`](Self::handle_interest) with received Interests, and send the answer.
#[derive(Debug)]
pub struct InteractionOwner {
    prefix: Name,
    boot: u64,
    signer: Signer,
    senders: BTreeMap<Name, Sender>,
}

#[derive(Debug)]
struct Sender {
    verifier: Verifier,
    /// The highest accepted number, and which of the 64 below it were accepted.
    highest: u64,
    accepted: u64,
    answers: VecDeque<(u64, Vec<u8>)>,
}

impl InteractionOwner {
    /// The owner of `/<topic>`, which started at `boot` and signs its answers.
    pub fn new(topic: NameRef<'_>, boot: u64, signer: Signer) -> Result<Self, NameError> {
        Ok(Self {
            prefix: interact_name(topic)?,
            boot,
            signer,
            senders: BTreeMap::new(),
        })
    }

    /// `/<topic>/interact`.
    pub fn prefix(&self) -> NameRef<'_> {
        self.prefix.view()
    }

    /// Accepts interactions of a peer with this key. A peer that is known with the same key keeps its numbers.
    pub fn trust(&mut self, sender: Name, verifier: Verifier) {
        let known = self.senders.get(&sender);
        let is_same = known.is_some_and(|known| known.verifier.is_same(&verifier));
        if is_same || (known.is_none() && self.senders.len() == MAX_SENDERS) {
            return;
        }
        let sender_state = Sender {
            verifier,
            highest: 0,
            accepted: 0,
            answers: VecDeque::new(),
        };
        self.senders.insert(sender, sender_state);
    }

    /// Accepts no further interactions of a peer. If it is trusted again later with the same key, its old
    /// interactions could be replayed: give each life of a peer a key of its own.
    pub fn forget(&mut self, sender: &Name) {
        self.senders.remove(sender);
    }

    /// Handles an Interest below [`prefix`](Self::prefix) and appends the answer. `decide` is called at most
    /// once for each interaction.
    pub fn handle_interest(
        &mut self,
        interest: &Interest<'_>,
        decide: impl FnOnce(&Interaction<'_>) -> Decision,
        bytes: &mut Vec<u8>,
    ) -> Result<(), InteractionError> {
        let name = interest.name();
        let rest = name.starts_with(self.prefix.view());
        let rest = rest.then(|| name.suffix(self.prefix.view().len()));
        let mut components = rest.ok_or(InteractionError::Malformed)?.components();
        let (id, command) = (components.next(), components.next());
        let id = id.and_then(|id| id.number());
        let command = command.filter(|it| it.kind == ComponentKind::GENERIC);
        let digest = components.next();
        let is_whole = digest.is_some_and(|it| it.kind == ComponentKind::PARAMETERS_DIGEST)
            && components.next().is_none();
        let (Some(id), Some(command), true) = (id, command, is_whole) else {
            return Err(InteractionError::Malformed);
        };
        let signature = interest.signature().ok_or(InteractionError::Malformed)?;
        let sequence = signature.stamp.sequence;
        let sequence = sequence
            .filter(|it| *it > 0)
            .ok_or(InteractionError::Malformed)?;
        let Some(KeyLocator::Name(sender_name)) = signature.key else {
            return Err(InteractionError::UnknownSender);
        };
        let sender_name = sender_name.to_name();
        let sender = self.senders.get_mut(&sender_name);
        let sender = sender.ok_or(InteractionError::UnknownSender)?;
        interest.verify(&sender.verifier)?;
        let parameters = interest.parameters().unwrap_or_default();
        let (boot, parameters) =
            read_parameters(parameters).map_err(|_| InteractionError::Malformed)?;
        if boot != self.boot {
            return Err(InteractionError::OtherLife);
        }
        let mut answers = sender.answers.iter();
        if let Some((_, answer)) = answers.find(|(number, _)| *number == sequence) {
            bytes.extend_from_slice(answer);
            return Ok(());
        }
        if !sender.is_new(sequence) || parameters.len() > MAX_PARAMETERS {
            return Err(InteractionError::Replayed);
        }
        sender.accept(sequence);
        let decision = decide(&Interaction {
            sender: &sender_name,
            id,
            command: command.value,
            parameters,
        });
        let (is_accepted, text) = match &decision {
            Decision::Accepted(text) => (1, text),
            Decision::Refused(text) => (0, text),
        };
        let text = &text[..text.len().min(MAX_PARAMETERS)];
        let mut answer = Vec::new();
        DataBuilder::new(name)
            .content(&[&[is_accepted], text].concat())
            .sign(&self.signer, &mut answer)?;
        bytes.extend_from_slice(&answer);
        if sender.answers.len() == MAX_ANSWERS {
            sender.answers.pop_front();
        }
        sender.answers.push_back((sequence, answer));
        Ok(())
    }
}

impl Sender {
    fn is_new(&self, sequence: u64) -> bool {
        match self.highest.checked_sub(sequence) {
            None => true,
            Some(back) => (1..=64).contains(&back) && self.accepted >> (back - 1) & 1 == 0,
        }
    }

    fn accept(&mut self, sequence: u64) {
        match sequence.checked_sub(self.highest) {
            Some(ahead @ 1..) => {
                let shift = |bits: u64, by: u64| match by {
                    0..64 => bits << by,
                    _ => 0,
                };
                let before = u64::from(self.highest > 0);
                self.accepted = shift(self.accepted, ahead) | shift(before, ahead - 1);
                self.highest = sequence;
            }
            _ => self.accepted |= 1 << (self.highest - sequence).saturating_sub(1).min(63),
        }
    }
}

/// The result of an interaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The owner has decided.
    Decided {
        /// The number that [`Interactor::send`] returned.
        interaction: u64,
        /// The decision.
        decision: Decision,
    },
    /// The owner has not answered. It is not known whether the command took effect.
    NoAnswer {
        /// The number that [`Interactor::send`] returned.
        interaction: u64,
    },
}

/// Why an interaction was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendInteractionError {
    /// Too many interactions wait for an answer.
    #[error("{MAX_PENDING} interactions wait for an answer: wait for some of them")]
    Full,
    /// The parameters are longer than [`MAX_PARAMETERS`].
    #[error("{0} bytes of parameters: give at most {MAX_PARAMETERS}")]
    ParametersLength(usize),
    /// The name has too many components, or is too long.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The packet would be too long.
    #[error(transparent)]
    Packet(#[from] EncodeError),
}

/// The owner of an entity, as another peer knows it.
#[derive(Clone, Copy, Debug)]
pub struct OwnerRef<'a> {
    /// `/<topic>`, what it publishes.
    pub topic: NameRef<'a>,
    /// Its boot time, from its [`Member`](crate::Member).
    pub boot: u64,
    /// Its key, from its [`Profile`](crate::Profile).
    pub verifier: &'a Verifier,
}

/// Sends interactions to other peers, repeats them until they are answered, and never sends two with one number.
#[derive(Debug)]
pub struct Interactor {
    signer: Signer,
    next: u64,
    pending: BTreeMap<u64, Pending>,
    outcomes: VecDeque<Outcome>,
    random: Random,
}

#[derive(Debug)]
struct Pending {
    name: Name,
    parameters: Vec<u8>,
    verifier: Verifier,
    /// The name with the digest, once it was sent.
    full_name: Name,
    due: Time,
    tries: u32,
}

impl Interactor {
    /// A sender. `signer` has the sender's name as its locator. `first` must be higher than any number that an
    /// earlier life with the same key has used; see [`first_version`](crate::first_version). `key` must be
    /// unpredictable.
    pub fn new(signer: Signer, first: u64, key: [u8; 16]) -> Self {
        Self {
            signer,
            next: first.max(1),
            pending: BTreeMap::new(),
            outcomes: VecDeque::new(),
            random: Random::new(key),
        }
    }

    /// Sends a command to the owner of an entity, and returns the number of the interaction.
    pub fn send(
        &mut self,
        now: Time,
        owner: OwnerRef<'_>,
        id: u64,
        command: &[u8],
        parameters: &[u8],
    ) -> Result<u64, SendInteractionError> {
        if self.pending.len() >= MAX_PENDING {
            return Err(SendInteractionError::Full);
        }
        if parameters.len() > MAX_PARAMETERS {
            return Err(SendInteractionError::ParametersLength(parameters.len()));
        }
        let mut name = interact_name(owner.topic)?;
        name.push_number(ComponentKind::SEQUENCE, id)?;
        name.push(ComponentKind::GENERIC, command)?;
        let mut pending = Pending {
            name,
            parameters: write_parameters(owner.boot, parameters),
            verifier: owner.verifier.clone(),
            full_name: Name::new(),
            due: now,
            tries: 0,
        };
        let number = self.next;
        let packet = pending.packet(&self.signer, number, [0; 4])?;
        if let Ok(interest) = Interest::decode(&packet) {
            pending.full_name = interest.name().to_name();
        }
        self.next += 1;
        self.pending.insert(number, pending);
        Ok(number)
    }

    /// Replaces the content of `bytes` by the next Interest to send. False if there is none at this time.
    pub fn poll_transmit(&mut self, now: Time, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        let is_over = |pending: &Pending| pending.due <= now && pending.tries == TRIES;
        while let Some((&interaction, _)) = self.pending.iter().find(|(_, it)| is_over(it)) {
            self.pending.remove(&interaction);
            self.outcomes.push_back(Outcome::NoAnswer { interaction });
        }
        let nonce = self.random.nonce();
        let mut pending = self.pending.iter_mut();
        let Some((number, pending)) = pending.find(|(_, pending)| pending.due <= now) else {
            return false;
        };
        pending.tries += 1;
        pending.due = now.after(RETRY + Duration::from_millis(1));
        match pending.packet(&self.signer, *number, nonce) {
            Ok(packet) => *bytes = packet,
            // It could be encoded when it was sent first.
            Err(_) => return false,
        }
        true
    }

    /// When to call [`poll_transmit`](Self::poll_transmit).
    pub fn next_timeout(&self) -> Option<Time> {
        self.pending.values().map(|pending| pending.due).min()
    }

    /// Handles Data. False if it is not an answer to an interaction, or its signature is not the owner's.
    pub fn handle_data(&mut self, data: &Data<'_>) -> bool {
        let mut pending = self.pending.iter();
        let found = pending.find(|(_, pending)| pending.full_name.view() == data.name());
        let Some((&interaction, pending)) = found else {
            return false;
        };
        if data.verify(&pending.verifier).is_err() {
            return false;
        }
        let decision = match data.content().split_first() {
            Some((1, text)) => Decision::Accepted(text.to_vec()),
            Some((0, text)) => Decision::Refused(text.to_vec()),
            _ => return false,
        };
        self.pending.remove(&interaction);
        self.outcomes.push_back(Outcome::Decided {
            interaction,
            decision,
        });
        true
    }

    /// The next result.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }
}

impl Pending {
    fn packet(&self, signer: &Signer, number: u64, nonce: [u8; 4]) -> Result<Vec<u8>, EncodeError> {
        let stamp = SignatureStamp {
            sequence: Some(number),
            ..SignatureStamp::default()
        };
        let mut bytes = Vec::new();
        InterestBuilder::new(self.name.view())
            .lifetime(RETRY)
            .nonce(nonce)
            .parameters(&self.parameters)
            .sign(signer, stamp, &mut bytes)?;
        Ok(bytes)
    }
}

/// `/<topic>/interact`.
fn interact_name(topic: NameRef<'_>) -> Result<Name, NameError> {
    let mut name = topic.to_name();
    name.push(ComponentKind::GENERIC, b"interact")?;
    Ok(name)
}

/// Parameters on the wire: the boot time of the owner as a number, then those of the program.
fn write_parameters(boot: u64, parameters: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(9 + parameters.len());
    tlv::write_number(&mut bytes, boot);
    bytes.extend_from_slice(parameters);
    bytes
}

fn read_parameters(bytes: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    let mut reader = Reader::new(bytes);
    let boot = reader.number()?;
    Ok((boot, &bytes[bytes.len() - reader.left()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Fails if `accept` shifts by one too few, or `is_new` accepts what is below the window.
    #[test]
    fn every_number_is_accepted_once() {
        let mut sender = Sender {
            verifier: Verifier::digest(),
            highest: 0,
            accepted: 0,
            answers: VecDeque::new(),
        };
        let mut random = Random::new(*b"any key will do.");
        let mut accepted = BTreeSet::new();
        for step in 0..5000_u64 {
            let number = 1 + step / 2 + random.draw() % 80;
            let highest = accepted.last().copied().unwrap_or(0);
            let is_reachable = number + 64 >= highest;
            assert_eq!(
                sender.is_new(number),
                is_reachable && !accepted.contains(&number),
                "{number} after {highest}"
            );
            if sender.is_new(number) {
                sender.accept(number);
                accepted.insert(number);
            }
        }
    }
}
