//! Prefix registration: the forwarder's side of the NFD management protocol.
//!
//! Commands are answered at once and not forwarded: they have no entries in PIT and content store.

use prescient_channels::Time;

use super::Forwarder;
use super::config::CommandTrust;
use super::face::FaceId;
use super::fib::Route;
use crate::control::{CAPTURE, CHILD_INHERIT, ControlParameters, ControlResponse};
use crate::data::DataBuilder;
use crate::interest::Interest;
use crate::link::LinkHeader;
use crate::name::{Component, ComponentKind, Name, NameRef};
use crate::signature::Signer;

/// The verb and the parameters of a command; `None` if the name is not one.
pub(super) fn command(name: NameRef<'_>) -> Option<(&[u8], Option<Component<'_>>)> {
    let mut components = name.components();
    let mut word = || {
        let component = components.next()?;
        (component.kind == ComponentKind::GENERIC).then_some(component.value)
    };
    let is_command =
        matches!(word()?, b"localhost" | b"localhop") && word()? == b"nfd" && word()? == b"rib";
    let verb = is_command.then(|| word().unwrap_or_default())?;
    Some((verb, components.next()))
}

/// A refusal: status code and text.
type Refusal = (u64, &'static str);

const UNKNOWN: Refusal = (501, "no such command");

impl Forwarder {
    /// Executes a command and answers it.
    pub(super) fn handle_command(
        &mut self,
        now: Time,
        face: FaceId,
        interest: &Interest<'_>,
        header: LinkHeader,
    ) {
        let outcome = self.execute(now, face, interest);
        let response = match outcome {
            Ok(parameters) => ControlResponse {
                code: 200,
                text: "OK".into(),
                parameters: Some(parameters),
            },
            Err((code, text)) => ControlResponse {
                code,
                text: text.into(),
                parameters: None,
            },
        };
        let (mut content, mut packet) = (Vec::new(), Vec::new());
        response.encode(&mut content);
        let data = DataBuilder::new(interest.name()).content(&content);
        // It fails only if the name leaves no room for the answer in a packet.
        if data.sign(&Signer::digest(), &mut packet).is_ok() {
            let back = LinkHeader {
                pit_token: header.pit_token,
                ..LinkHeader::default()
            };
            self.statistics.commands += 1;
            self.send_data(face, back, &packet.into());
        }
    }

    fn execute(
        &mut self,
        now: Time,
        face: FaceId,
        interest: &Interest<'_>,
    ) -> Result<ControlParameters, Refusal> {
        let (verb, component) = command(interest.name()).ok_or(UNKNOWN)?;
        let execute = match verb {
            b"register" => Self::register,
            b"unregister" => Self::unregister,
            _ => return Err(UNKNOWN),
        };
        let parameters = component.ok_or((400, "parameters are missing"))?;
        let parameters = ControlParameters::decode(parameters.value)
            .map_err(|_| (400, "parameters are malformed"))?;
        self.authorize(face, interest)?;
        execute(self, now, face, parameters)
    }

    fn authorize(&mut self, face: FaceId, interest: &Interest<'_>) -> Result<(), Refusal> {
        let refusal = Err((403, "not allowed"));
        let face = self.faces.get(&face);
        if !face.is_some_and(|face| face.may_register) {
            return refusal;
        }
        let CommandTrust::Keys(keys) = &self.config.commands else {
            return Ok(());
        };
        let Some(key) = keys.iter().position(|key| interest.verify(key).is_ok()) else {
            return refusal;
        };
        let time = interest.signature().and_then(|info| info.stamp.time);
        let last = &mut self.command_times[key];
        match time {
            Some(time) if time > *last => *last = time,
            _ => return refusal,
        }
        Ok(())
    }

    fn register(
        &mut self,
        now: Time,
        from: FaceId,
        parameters: ControlParameters,
    ) -> Result<ControlParameters, Refusal> {
        let (prefix, face) = self.target(from, &parameters)?;
        let origin = parameters.origin.unwrap_or(0);
        let flags = parameters.flags.unwrap_or(CHILD_INHERIT);
        let route = Route {
            face,
            origin,
            cost: parameters.cost.unwrap_or(0),
            inherit: flags & CHILD_INHERIT != 0,
            capture: flags & CAPTURE != 0,
            expires: parameters.expiration.map(|period| now.after(period)),
        };
        self.insert_route(prefix.view(), route)
            .map_err(|_| (507, "too many routes"))?;
        Ok(ControlParameters {
            name: Some(prefix),
            face: Some(face.0),
            origin: Some(origin),
            cost: Some(route.cost),
            flags: Some(flags),
            expiration: parameters.expiration,
        })
    }

    fn unregister(
        &mut self,
        _now: Time,
        from: FaceId,
        parameters: ControlParameters,
    ) -> Result<ControlParameters, Refusal> {
        let (prefix, face) = self.target(from, &parameters)?;
        let origin = parameters.origin.unwrap_or(0);
        // A route that does not exist counts as removed.
        self.delete_route(prefix.view(), face, origin);
        Ok(ControlParameters {
            name: Some(prefix),
            face: Some(face.0),
            origin: Some(origin),
            ..ControlParameters::default()
        })
    }

    /// The prefix and the face of a command. Remote faces may name only themselves.
    fn target(
        &self,
        from: FaceId,
        parameters: &ControlParameters,
    ) -> Result<(Name, FaceId), Refusal> {
        let prefix = parameters.name.clone().ok_or((400, "no name"))?;
        let face = match parameters.face {
            None | Some(0) => from,
            Some(number) => FaceId(number),
        };
        if !self.faces.contains_key(&face) {
            return Err((410, "no such face"));
        }
        let is_local = self.faces.get(&from).is_some_and(|face| face.is_local);
        if face != from && !is_local {
            return Err((403, "not allowed"));
        }
        Ok((prefix, face))
    }
}
