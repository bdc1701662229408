use prescient_schema::State;

#[derive(State)]
enum Gear {
    Neutral,
    Forward(u8),
}

fn main() {}
