//! A box slides to and fro, without a network: `cargo run -p prescient --example simple_box_alone`.
//! Compare it with `simple_box`, which is the same game on a server and a client.

#![allow(clippy::disallowed_methods, reason = "it keeps its own pace")]

use std::error::Error;

struct Slider {
    position: [f32; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sliding = Slider {
        position: [0.0, 1.0],
    };
    for tick in 0..90 {
        std::thread::sleep(std::time::Duration::from_millis(33));
        sliding.position[0] = (tick as f32 * 0.1).sin() * 5.0;
        draw(&sliding);
    }
    Ok(())
}

fn draw(slider: &Slider) {
    println!("{:>1$}", "#", (slider.position[0] * 6.0 + 40.0) as usize);
}
