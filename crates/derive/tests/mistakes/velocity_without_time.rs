use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 0.1)]
    x: f32,
    #[state(step = 0.1, velocity_of = "x")]
    v: f32,
}

fn main() {}
