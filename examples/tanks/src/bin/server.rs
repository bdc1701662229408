//! The game's server, behind a simulated link: `server [PRESET]`.

use prescient::links::Conditions;
use prescient_example_tanks::{Game, Result};

fn main() -> Result {
    let preset = std::env::args().nth(1).unwrap_or("lan".into());
    let mut game = Game::new("127.0.0.1:0")?;
    let link = game.server.simulate_link(Conditions::named(&preset)?, 1)?;
    println!("{}", link.address());
    loop {
        game.tick()?;
    }
}
