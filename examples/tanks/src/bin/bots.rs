//! Eight players who join one after the other: `bots ADDRESS`.

use std::time::Duration;

use prescient_example_tanks::{Bot, Result};

fn main() -> Result {
    let address = std::env::args().nth(1).ok_or("usage: bots ADDRESS")?;
    let mut bots = vec![Bot::join(&address, 1)?];
    for tick in 1.. {
        if bots.len() < 8 && tick % 60 == 0 {
            bots.push(Bot::join(&address, bots.len() as u64 + 1)?);
        }
        bots[0].client.wait(Duration::from_millis(33));
        for bot in &mut bots {
            bot.poll()?.iter().for_each(|news| println!("{news}"));
            bot.play()?;
        }
    }
    Ok(())
}
