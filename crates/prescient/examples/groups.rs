//! A tank and its turret are two entities, and a turret that lags behind its tank looks wrong. If a
//! tick has no room for all entities, those of one group are sent together.
//!
//! This server's ticks have room for a few of sixteen tanks. It runs the same battle with and
//! without groups: `cargo run --release -p prescient --example groups`.

use std::error::Error;
use std::thread;
use std::time::Duration;

use prescient::{
    Client, ClientEvent, Everything, Ref, SchemaBuilder, Server, ServerEvent, ServerOptions, State,
    TokenKey, WorldError,
};

#[derive(State, Clone)]
struct Hull {
    /// Entities with the same group number are sent together, whatever their types; 0 means no
    /// group.
    #[state(group)]
    tank: u16,
    /// The tank's number, with or without a group.
    #[state(only_on_spawn)]
    number: u16,
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

#[derive(State, Clone)]
struct Turret {
    #[state(group)]
    tank: u16,
    #[state(only_on_spawn)]
    number: u16,
    #[state(step = 0.01, position)]
    position: [f32; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let (apart, looks) = battle(true)?;
    println!("in groups: of {looks} looks at a tank, {apart} saw its turret elsewhere");
    let (apart, looks) = battle(false)?;
    println!("without:   of {looks} looks at a tank, {apart} saw its turret elsewhere");
    Ok(())
}

/// Returns how many samples saw a turret apart from its tank, and the number of samples.
fn battle(grouped: bool) -> Result<(u32, u32), Box<dyn Error>> {
    let schema = SchemaBuilder::new()
        .state::<Hull>()
        .state::<Turret>()
        .build()?;
    // Bytes; the default uses what the connection carries.
    let options = ServerOptions::default()
        .with_packet(60)
        .with_state_per_tick(60);
    let key = TokenKey::insecure_for_loopback_tests();
    let server = Server::bind("127.0.0.1:0", key, schema.clone(), Everything, options)?;
    let address = server.address().expect("it has a socket").to_string();
    let serving = thread::spawn(move || serve(server, grouped));
    let mut client = Client::loopback(&address, schema)?;
    let (mut apart, mut looks) = (0, 0);
    while looks < 5000 {
        client.wait(Duration::from_millis(2));
        while let Some(event) = client.poll() {
            if let ClientEvent::Left(reason) = event {
                return Err(reason.into());
            }
        }
        let (wrong, all) = look(&client);
        (apart, looks) = (apart + wrong, looks + all);
    }
    client.leave();
    serving.join().expect("it does not panic")?;
    Ok((apart, looks))
}

/// Moves sixteen tanks until the client leaves.
fn serve(mut server: Server, grouped: bool) -> Result<(), WorldError> {
    let mut tanks: Vec<(Ref<Hull>, Ref<Turret>)> = Vec::new();
    for tick in 1u32.. {
        server.wait(Duration::from_millis(2));
        if let Some(ServerEvent::Left { .. }) = server.poll() {
            break;
        }
        let mut step = server.step()?;
        for number in 1..=16u16 {
            // An unpredictable motion.
            let angle = (tick * u32::from(number)) as f32;
            let position = [angle.sin() * 10.0, (angle * 1.7).cos() * 10.0];
            let tank = if grouped { number } else { 0 };
            let hull = Hull {
                tank,
                number,
                position,
            };
            let turret = Turret {
                tank,
                number,
                position,
            };
            match tanks.get(usize::from(number) - 1) {
                Some(&(lower, upper)) => {
                    step.set(lower, &hull)?;
                    step.set(upper, &turret)?;
                }
                None => tanks.push((step.spawn(&hull)?, step.spawn(&turret)?)),
            }
        }
        step.finish();
        server.send();
    }
    Ok(())
}

/// Counts the visible tanks whose turret is elsewhere, and all visible tanks.
fn look(client: &Client) -> (u32, u32) {
    let all = |entity| client.get::<Turret>(entity);
    let turrets: Vec<Turret> = client.entities().filter_map(all).collect();
    let (mut apart, mut looks) = (0, 0);
    for hull in client
        .entities()
        .filter_map(|entity| client.get::<Hull>(entity))
    {
        if let Some(turret) = turrets.iter().find(|turret| turret.number == hull.number) {
            looks += 1;
            apart += u32::from(turret.position != hull.position);
        }
    }
    (apart, looks)
}
