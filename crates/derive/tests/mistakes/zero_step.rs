use prescient_schema::State;

#[derive(State)]
struct Car {
    #[state(step = 0.0)]
    x: f32,
}

fn main() {}
