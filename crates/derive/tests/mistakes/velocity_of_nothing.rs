use prescient_schema::State;

#[derive(State)]
#[state(tick_hz = 60)]
struct Car {
    #[state(step = 0.1, velocity_of = "y")]
    x: f32,
}

fn main() {}
