//! The server, which decides everything.

use std::collections::BTreeMap;

use prescient::{Distance, PeerId, Ref, Rewind, Server, ServerEvent, playout::SeenTick};

use crate::{Bullet, Drive, News, Result, Round, Tank, Turret, distance, schema};

pub struct Game {
    pub server: Server,
    scoreboard: Ref<Round>,
    round: Round,
    players: BTreeMap<PeerId, Player>,
    bullets: Vec<(Ref<Bullet>, Bullet)>,
}

#[derive(Default)]
struct Player {
    entity: Ref<Tank>,
    tank: Tank,
    mounted: Ref<Turret>,
    turret: Turret,
    drive: Drive,
}

impl Game {
    pub fn new(address: &str) -> Result<Self> {
        let fog = Distance::new(50.0, 55.0)?.and_team();
        let mut server = Server::loopback(address, schema()?, fog)?;
        let scoreboard = server.step()?.spawn(&Round::default())?;
        Ok(Self {
            server,
            scoreboard,
            round: Round::default(),
            players: BTreeMap::new(),
            bullets: Vec::new(),
        })
    }

    /// Waits for the next tick and plays it.
    pub fn tick(&mut self) -> Result {
        self.server.next_tick();
        while let Some(event) = self.server.poll() {
            self.handle(event)?;
        }
        self.score()?;
        self.fire()?;
        self.fly()?;
        self.server.send();
        Ok(())
    }

    fn handle(&mut self, event: ServerEvent) -> Result {
        match event {
            ServerEvent::Joined { peer, .. } => self.enter(peer)?,
            ServerEvent::Left { peer, .. } => self.leave(peer)?,
            ServerEvent::Input { peer, input, .. } => {
                let drive = self.server.read_input(peer, &input);
                if let Some((player, drive)) = self.players.get_mut(&peer).zip(drive) {
                    player.tank.drive(&drive);
                    player.drive = drive;
                }
            }
            ServerEvent::Typed { peer, event } => {
                if let Some(News::Chat(_, text)) = event.read() {
                    let from = self.players[&peer].entity;
                    self.server.broadcast(&News::Chat(from, text))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives a player a new tank.
    fn enter(&mut self, peer: PeerId) -> Result {
        let number = self.server.client_of(peer).map_or(0, |client| client.0);
        let mut player = Player::default();
        player.tank.name = format!("bot {number}");
        player.tank.team = 1 + (number % 2) as u8;
        player.tank.position = [40.0 * (number % 4) as f32, 10.0 * number as f32];
        (player.tank.health, player.tank.ammo) = (100, 20);
        self.server.set_team(peer, player.tank.team.into())?;
        let mut step = self.server.step()?;
        player.entity = step.spawn_for(peer, &player.tank)?;
        player.turret.tank = player.entity;
        player.mounted = step.spawn_for(peer, &player.turret)?;
        step.set_parent(player.mounted, Some(player.entity.into()))?;
        step.finish();
        self.server.follow(peer, player.entity)?;
        self.server.tell(peer, &News::Welcome(player.entity))?;
        self.players.insert(peer, player);
        Ok(())
    }

    fn leave(&mut self, peer: PeerId) -> Result {
        if let Some(player) = self.players.remove(&peer) {
            self.server.step()?.despawn(player.mounted)?;
            self.server.step()?.despawn(player.entity)?;
        }
        Ok(())
    }

    /// Ends the round when its time is up.
    fn score(&mut self) -> Result {
        let Round { kills, number, .. } = self.round;
        if self.round.ticks_left == 0 {
            let winner = if kills[0] > kills[1] { 1 } else { 2 };
            for Player { tank, .. } in self.players.values_mut() {
                tank.ammo = 20;
                tank.rounds_won
                    .extend((tank.team == winner).then_some(number));
            }
            self.round.banner = format!("team {winner} wins");
            (self.round.number, self.round.ticks_left) = (number + 1, 300);
            self.round.kills = [0, 0];
        }
        self.round.ticks_left -= 1;
        Ok(self.server.step()?.set(self.scoreboard, &self.round)?)
    }

    fn fire(&mut self) -> Result {
        let mut step = self.server.step()?;
        for player in self.players.values_mut() {
            let Player { tank, drive, .. } = player;
            player.turret.angle = drive.aim;
            if drive.fire && tank.ammo > 0 && self.round.ticks_left.is_multiple_of(10) {
                tank.ammo -= 1;
                let bullet = Bullet {
                    shooter: player.entity,
                    position: tank.position,
                    velocity: [60.0 * drive.aim.cos(), 60.0 * drive.aim.sin()],
                    seen: drive.seen.tick(),
                };
                self.bullets.push((step.spawn(&bullet)?, bullet));
            }
            step.set(player.entity, &player.tank)?;
            step.set(player.mounted, &player.turret)?;
        }
        Ok(())
    }

    /// Moves bullets, and judges them by where tanks were when their shooters saw them.
    fn fly(&mut self) -> Result {
        for (entity, mut bullet) in std::mem::take(&mut self.bullets) {
            let [x, y] = bullet.position;
            bullet.position = [x + bullet.velocity[0] / 30.0, y + bullet.velocity[1] / 30.0];
            bullet.seen += 1.0;
            let past = Rewind::of(self.server.world(), 30.0, SeenTick::new(bullet.seen))?;
            let hit = self.players.iter_mut().find(|(_, it)| {
                let then = past.get(it.entity).filter(|_| it.entity != bullet.shooter);
                then.is_some_and(|tank| distance(tank.position, bullet.position) < 3.0)
            });
            if hit.is_none() && distance(bullet.position, [0.0; 2]) < 150.0 {
                self.server.step()?.set(entity, &bullet)?;
                self.bullets.push((entity, bullet));
                continue;
            }
            self.server.step()?.despawn(entity)?;
            if let Some((&peer, Player { tank, .. })) = hit {
                tank.health -= 25;
                if tank.health == 0 {
                    self.round.kills[usize::from(tank.team % 2)] += 1;
                    let kill = News::Kill(bullet.shooter, self.players[&peer].entity);
                    self.server.broadcast(&kill)?;
                    self.leave(peer)?;
                    self.enter(peer)?;
                }
            }
        }
        Ok(())
    }
}
