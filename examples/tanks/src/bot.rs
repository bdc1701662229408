//! A player that hunts the nearest enemy it sees.

use prescient::{Client, ClientEvent, ClientId, EntityHandle};

use crate::{Drive, News, Result, Tank, distance, schema};

pub struct Bot {
    pub client: Client,
    pub tank: Option<EntityHandle>,
}

impl Bot {
    pub fn join(address: &str, number: u64) -> Result<Self> {
        let client = Client::loopback_as(address, ClientId(number), schema()?)?;
        Ok(Self { client, tank: None })
    }

    /// Handles what has arrived, and returns the news.
    pub fn poll(&mut self) -> Result<Vec<String>> {
        let mut news = Vec::new();
        while let Some(event) = self.client.poll() {
            match event {
                ClientEvent::Typed(event) => news.extend(event.read().map(|it| self.describe(it))),
                ClientEvent::Left(reason) => return Err(reason.into()),
                _ => {}
            }
        }
        news.into_iter().collect()
    }

    fn describe(&mut self, news: News) -> Result<String> {
        let tank = |tank| self.client.get::<Tank>(self.client.resolve(tank)?);
        let name = |it| tank(it).map_or("somebody".into(), |tank| tank.name);
        Ok(match news {
            News::Kill(killer, victim) => format!("{} hit {}", name(killer), name(victim)),
            News::Chat(from, text) => format!("{}: {text}", name(from)),
            News::Welcome(own) => {
                self.tank = self.client.resolve(own);
                let predict = |own| self.client.predict_typed(own, Tank::drive);
                self.tank.map(predict).transpose()?;
                self.client.tell(&News::Chat(own, "here I am".into()))?;
                "a new tank".into()
            }
        })
    }

    /// Hunts, once per tick.
    pub fn play(&mut self) -> Result {
        self.client.begin_frame();
        let own = self.tank.and_then(|tank| self.client.shown::<Tank>(tank));
        let Some(own) = own else { return Ok(()) };
        let away = |at: &[f32; 2]| distance(*at, own.position);
        let tanks = self.client.all_shown::<Tank>().into_iter();
        let enemies = tanks.filter(|(_, tank)| tank.team != own.team);
        let places = enemies.map(|(_, tank)| tank.position);
        let nearest = places.min_by(|a, b| away(a).total_cmp(&away(b)));
        let [x, y] = nearest.unwrap_or_default();
        let offset = [x - own.position[0], y - own.position[1]];
        self.client.steer(&Drive {
            velocity: offset.map(|offset| offset / 10.0),
            aim: offset[1].atan2(offset[0]),
            fire: nearest.is_some(),
            seen: self.client.seen_tick().unwrap_or_default(),
        })?;
        Ok(())
    }
}
