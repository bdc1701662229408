use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 0.1)]
    x: f32,
    #[state(exact, velocity_of = "x", per_tick)]
    v: f32,
}

fn main() {}
