//! What bots show over bad links is what the server had at that tick, and nothing that they may not
//! see.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prescient::links::Conditions;
use prescient::{Client, EntityHandle, EntityRef, PeerId, Ref, Server, State};
use prescient_example_tanks::{Bot, Bullet, Game, Round, Tank, Turret};

/// An entity: the name of its type, its values, and those of the tank that it refers to.
type Line = (&'static str, Vec<i64>);

/// What every player may see, by tick and account id, sorted.
type Truth = BTreeMap<u64, BTreeMap<u64, Vec<Line>>>;

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
}

impl Count {
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
    let (truths, is_over) = (Arc::<Mutex<Truth>>::default(), Arc::<AtomicBool>::default());
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
            recorded.lock().expect("no panic").insert(tick.0, seen);
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
        let share = Duration::from_millis(16) / bots.len() as u32;
        for (number, bot) in &mut bots {
            bot.client.wait(share);
            count.news += bot.poll().expect("connected").len();
            bot.play().expect("connected");
            let truths = truths.lock().expect("no panic");
            count.compare(&bot.client, &truths, *number);
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
/// far, or if the private table reaches others.
#[test]
fn bots_show_the_truth() {
    let playing = ["wifi", "lte", "bad_wifi"].map(|preset| {
        let play = std::thread::spawn(move || play(preset));
        (preset, play)
    });
    for (preset, playing) in playing {
        let Count {
            values,
            wrong,
            sets,
            wrong_sets,
            news,
        } = playing.join().expect("no panic");
        println!(
            "{preset}: {values} values, {wrong} wrong; {sets} sets, {wrong_sets} wrong; {news} news"
        );
        assert_eq!((wrong, wrong_sets), (0, 0), "{preset}");
        assert!(values >= 100_000 && sets > 500 && news > 8, "{preset}");
    }
}
