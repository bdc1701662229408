//! What bots show over bad links is what the server had at that tick, and nothing that they may not
//! see. Their own tanks move at once, and the server judges shots by what they saw.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prescient::links::Conditions;
use prescient::playout::PredictionStatistics;
use prescient::{Client, EntityHandle, EntityRef, PeerId, Ref, Server, State};
use prescient_example_tanks::{Bot, Bullet, Game, Round, Tank, Turret, distance};

/// An entity: the name of its type, its values, and those of the tank that it refers to.
type Line = (&'static str, Vec<i64>);

/// What every player may see, by tick and account id, sorted.
type Truth = BTreeMap<u64, BTreeMap<u64, Vec<Line>>>;

/// Where all tanks are, by tick and name.
type Places = BTreeMap<u64, BTreeMap<String, [f32; 2]>>;

fn tank_line(tank: &Tank, private: Option<&Tank>) -> Line {
    let mut values = tank.to_row("public");
    values.extend(private.map(|private| i64::from(private.ammo)));
    ("tank", values)
}

/// Of an entity with a reference to a tank, which is its first column.
fn line_with<T: State>(name: &'static str, value: &T, tank: Option<Tank>) -> Line {
    let mut values = value.to_row("default")[1..].to_vec();
    match tank {
        Some(tank) => values.extend(tank.to_row("public")),
        None => values.push(-1),
    }
    (name, values)
}

/// What a player may see at the present tick.
fn truth(server: &Server, peer: PeerId, number: u64) -> Vec<Line> {
    let world = server.world();
    let newest = |entity: EntityRef| {
        let (_, tank) = world.samples(Ref::<Tank>::to(entity)).next_back()?;
        Some(tank)
    };
    let visible = |tank: Ref<Tank>| {
        let entity = tank.entity_ref();
        newest(entity).filter(|_| server.sees(peer, entity))
    };
    let mut lines = Vec::new();
    for slot in world.archive().living_slots() {
        let Some(entity) = world.archive().reference(slot) else {
            continue;
        };
        if !server.sees(peer, entity) {
            continue;
        }
        if let Some(tank) = newest(entity) {
            let owned = Ref::<Tank>::to(entity);
            let private = world.table_samples(owned, "private").next_back();
            let private = private.filter(|_| tank.name == format!("bot {number}"));
            lines.push(tank_line(
                &tank,
                private.as_ref().map(|(_, private)| private),
            ));
        } else if let Some((_, turret)) = world.samples(Ref::<Turret>::to(entity)).next_back() {
            lines.push(line_with("turret", &turret, visible(turret.tank)));
        } else if let Some((_, bullet)) = world.samples(Ref::<Bullet>::to(entity)).next_back() {
            lines.push(line_with("bullet", &bullet, visible(bullet.shooter)));
        } else if let Some((_, round)) = world.samples(Ref::<Round>::to(entity)).next_back() {
            lines.push(("round", round.to_row("default")));
        }
    }
    lines.sort();
    lines
}

/// Where all tanks are at the present tick.
fn places(server: &Server) -> BTreeMap<String, [f32; 2]> {
    let archive = server.world().archive();
    let entities = archive
        .living_slots()
        .filter_map(|slot| archive.reference(slot));
    let tanks = entities.filter_map(|entity| {
        let (_, tank) = server
            .world()
            .samples(Ref::<Tank>::to(entity))
            .next_back()?;
        Some((tank.name, tank.position))
    });
    tanks.collect()
}

/// What a client shows of an entity.
fn shown(client: &Client, entity: EntityHandle) -> Line {
    let tank = |tank: Ref<Tank>| client.get(client.resolve(tank)?);
    if let Some(tank) = client.get::<Tank>(entity) {
        let private = client.get_table(entity, "private");
        tank_line(&tank, private.as_ref())
    } else if let Some(turret) = client.get::<Turret>(entity) {
        line_with("turret", &turret, tank(turret.tank))
    } else if let Some(bullet) = client.get::<Bullet>(entity) {
        line_with("bullet", &bullet, tank(bullet.shooter))
    } else {
        let round: Round = client.get(entity).expect("there are no other types");
        ("round", round.to_row("default"))
    }
}

#[derive(Default)]
struct Count {
    values: usize,
    wrong: usize,
    sets: usize,
    wrong_sets: usize,
    news: usize,
    /// Other tanks that were drawn and in view at the tick that was drawn; those drawn beyond the newest
    /// state; and those that were more than half a tank's radius from where the server had them in that
    /// tick, and in the present.
    drawn: usize,
    guessed: usize,
    wrong_then: usize,
    wrong_now: usize,
    /// Of each bot's tanks.
    predictions: BTreeMap<(u64, EntityHandle), PredictionStatistics>,
}

impl Count {
    /// Compares where a bot sees other tanks with where they were and are.
    fn aim(&mut self, bot: &mut Bot, places: &Places, number: u64) {
        let own = bot.tank.and_then(|tank| {
            let statistics = bot.client.prediction_statistics(tank)?;
            Some(((number, tank), statistics))
        });
        self.predictions.extend(own);
        let (Some(seen), Some((_, now))) = (bot.client.seen_tick(), places.last_key_value()) else {
            return;
        };
        let tick = seen.tick() as u64;
        let (Some(earlier), Some(later)) = (places.get(&tick), places.get(&(tick + 1))) else {
            return;
        };
        let share = seen.tick().fract() as f32;
        for (entity, tank) in bot.client.all_shown::<Tank>() {
            let at = |places: &BTreeMap<String, [f32; 2]>| places.get(&tank.name).copied();
            let (Some(from), Some(to), Some(now)) = (at(earlier), at(later), at(now)) else {
                continue;
            };
            let oldest = bot.client.samples::<Tank>(entity).next();
            let was_in_view = oldest.is_some_and(|(oldest, _)| oldest.0 <= tick);
            // A tank that was hit meanwhile is another one now.
            let is_one = distance(from, to) < 1.0;
            if tank.name == format!("bot {number}") || !was_in_view || !is_one {
                continue;
            }
            let newest = bot.client.tick_of(entity).unwrap_or_default();
            self.guessed += usize::from(newest.0 as f64 <= seen.tick());
            let then = [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]));
            self.drawn += 1;
            self.wrong_then += usize::from(distance(tank.position, then) > 1.5);
            self.wrong_now += usize::from(distance(tank.position, now) > 1.5);
        }
    }

    /// Compares what a bot shows with the truth of that tick.
    fn compare(&mut self, client: &Client, truth: &Truth, number: u64) {
        let of = |tick: prescient::Tick| truth.get(&tick.0)?.get(&number);
        let mut lines = Vec::new();
        for entity in client.entities() {
            let line = shown(client, entity);
            if let Some(truth) = client.tick_of(entity).and_then(of) {
                self.values += line.1.len();
                self.wrong += usize::from(truth.binary_search(&line).is_err());
            }
            lines.push(line);
        }
        lines.sort();
        let whole = client
            .complete_tick()
            .filter(|tick| client.tick() == Some(*tick));
        if let Some(truth) = whole.and_then(of) {
            self.sets += 1;
            self.wrong_sets += usize::from(*truth != lines);
        }
    }
}

/// Plays over a link until 100,000 values were compared.
fn play(preset: &'static str) -> Count {
    let (truths, is_over) = (
        Arc::<Mutex<(Truth, Places)>>::default(),
        Arc::<AtomicBool>::default(),
    );
    let mut game = Game::new("127.0.0.1:0").expect("a server");
    let link = Conditions::named(preset).expect("a preset");
    let link = game.server.simulate_link(link, 7).expect("a link");
    let address = link.address().to_string();
    let (recorded, ends) = (truths.clone(), is_over.clone());
    let serving = std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            game.tick().expect("a tick");
            let Some(tick) = game.server.world().tick() else {
                continue;
            };
            let peers: Vec<_> = game.server.peers().collect();
            let seen = peers.into_iter().filter_map(|peer| {
                let client = game.server.client_of(peer)?;
                Some((client.0, truth(&game.server, peer, client.0)))
            });
            let seen = seen.collect();
            let mut recorded = recorded.lock().expect("no panic");
            recorded.0.insert(tick.0, seen);
            recorded.1.insert(tick.0, places(&game.server));
        }
    });
    let mut count = Count::default();
    let mut bots = Vec::new();
    for turn in 0.. {
        assert!(turn < 20_000, "{preset}: only {} values", count.values);
        if bots.len() < 8 && turn % 20 == 0 {
            let number = turn / 20 + 1;
            bots.push((number, Bot::join(&address, number).expect("it joins")));
        }
        if turn == 300 {
            // Somebody leaves, and another one comes.
            let (_, bot) = bots.remove(2);
            bot.client.leave();
        }
        let share = Duration::from_millis(33) / bots.len() as u32;
        for (number, bot) in &mut bots {
            bot.client.wait(share);
            count.news += bot.poll().expect("connected").len();
            bot.play().expect("connected");
            let truths = truths.lock().expect("no panic");
            count.compare(&bot.client, &truths.0, *number);
            count.aim(bot, &truths.1, *number);
        }
        if count.values >= 100_000 && turn > 400 {
            break;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    serving.join().expect("no panic");
    count
}

/// Fails if a client predicts where it should show (a `Tank` one step off), if `Distance` shows what is
/// far, or if the private table reaches others; if the client's tank is moved by another step than the
/// server's, or if `SeenTick` is not the tick that was drawn.
#[test]
fn bots_show_the_truth() {
    let playing = ["wifi", "lte", "bad_wifi"].map(|preset| {
        let play = std::thread::spawn(move || play(preset));
        (preset, play)
    });
    for (preset, playing) in playing {
        let count = playing.join().expect("no panic");
        let Count {
            values,
            wrong,
            sets,
            wrong_sets,
            news,
            ..
        } = count;
        println!(
            "{preset}: {values} values, {wrong} wrong; {sets} sets, {wrong_sets} wrong; {news} news"
        );
        let own = count.predictions.values();
        let (confirmed, largest) = own.fold((0, 0.0_f64), |(confirmed, largest), own| {
            (confirmed + own.confirmed, largest.max(own.largest))
        });
        println!("{preset} own: {confirmed} states as predicted, within {largest:.2}");
        let share = |part: usize| 100.0 * part as f64 / count.drawn as f64;
        let (then, now) = (share(count.wrong_then), share(count.wrong_now));
        println!(
            "{preset} aim: {} tanks drawn, {then:.2} % not where they are rewound to, {now:.2} % not where they \
             are; {:.2} % drawn ahead",
            count.drawn,
            share(count.guessed)
        );
        assert_eq!((wrong, wrong_sets), (0, 0), "{preset}");
        assert!(values >= 100_000 && sets > 500 && news > 8, "{preset}");
        assert!(confirmed > 1000 && largest < 0.05, "{preset}");
        assert!(then < 1.0 && now > 5.0 * then, "{preset}");
    }
}
